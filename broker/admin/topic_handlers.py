"""Topics for administrators: 17 and 18, 215, 21, 351, 202, 300, 305; and the deletion of old data: log files (329),
queues without messages (306) or without a topic (316).

`tables/topic_table.py` has the topics. The checks are those of the official broker, in its order and with its remarks.
Mirrors the topic and cleaning parts of `AdminBrokerProcessor`.
"""

from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.offsets import GroupList, TopicOffset, TopicStatsTable
from pocketmq.protocol.bodies.registration import TopicConfigAndMappingSerializeWrapper
from pocketmq.protocol.bodies.routes import TopicList
from pocketmq.protocol.bodies.topic_config import (
    MULTI_TAG,
    SINGLE_TAG,
    CreateTopicListRequestBody,
    TopicConfig,
)
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import is_lmq, pop_retry_topic, topic_refusal
from pocketmq.protocol.requests.topic import (
    CleanExpiredConsumeQueue,
    CleanUnusedTopic,
    DeleteExpiredCommitLog,
    DeleteTopicInBroker,
    GetAllTopicConfig,
    GetAllTopicConfigReply,
    GetSystemTopicListFromBroker,
    GetTopicConfig,
    GetTopicStatsInfo,
    QueryTopicConsumeByWho,
    UpdateAndCreateTopic,
    UpdateAndCreateTopicList,
)
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..broker import Broker
from ..errors import Refusal
from ..network.dispatch import Answer, CallWithBody, handles
from ..state.part import UNSET_REMARK, invalid_parameter
from ..tables.attributes import parse_attributes
from ..time.slices import encode_json, in_slices
from .group_handlers import MAX_QUEUES, page_size, refuse_on_slave, tps_of

# -- changes


@handles(UpdateAndCreateTopic)
async def update_and_create_topic(broker: Broker, request: UpdateAndCreateTopic) -> Answer:
    """Create or change a topic; the answer is sent once the name servers know the topic."""
    refuse_on_slave(broker)
    if request.topic_filter_type not in (SINGLE_TAG, MULTI_TAG):
        raise Refusal(
            ResponseCode.SYSTEM_ERROR,
            "org.apache.rocketmq.remoting.exception.RemotingCommandException: "
            f"topicFilterType = [{request.topic_filter_type}] value invalid",
        )
    _check_topic_name(broker, request.topic)
    topic_config = _make_config(broker, request)
    _check_config(broker, topic_config)
    if broker.is_5 and topic_config == broker.topics.topics.get(request.topic):
        return Answer(remark=UNSET_REMARK)
    broker.topics.update(topic_config)
    await broker.cluster.registration.wait_until_sent()
    await broker.tables.wait_until_saved(broker.topics)
    return Answer(remark=UNSET_REMARK)


@handles(UpdateAndCreateTopicList)
async def update_and_create_topic_list(
    broker: Broker, request: UpdateAndCreateTopicList, call: CallWithBody[CreateTopicListRequestBody]
) -> Answer:
    """Create or change several topics: none if one is bad, and as in the official broker none if one already exists
    with the same settings."""
    topic_configs = call.read_body().topic_config_list or []
    async for topic_config in in_slices(topic_configs):
        _check_topic_name(broker, topic_config.name)
        _check_config(broker, topic_config)
        if topic_config == broker.topics.topics.get(topic_config.name):
            return Answer(remark=UNSET_REMARK)
    async for topic_config in in_slices(topic_configs):
        broker.topics.update(topic_config)
    await broker.cluster.registration.wait_until_sent()
    await broker.tables.wait_until_saved(broker.topics)
    return Answer(remark=UNSET_REMARK)


def _make_config(broker: Broker, request: UpdateAndCreateTopic) -> TopicConfig:
    return TopicConfig(
        topic_name=request.topic,
        read_queue_nums=request.read_queue_nums,
        write_queue_nums=request.write_queue_nums,
        perm=request.perm,
        topic_filter_type=request.topic_filter_type,
        topic_sys_flag=request.topic_sys_flag or 0,
        order=request.order and broker.is_5,
        attributes={} if not broker.is_5 else parse_attributes(request.attributes),
    )


def _check_topic_name(broker: Broker, topic: str) -> None:
    refusal = topic_refusal(topic, emulate=broker.config.emulate)
    if refusal is not None:
        raise Refusal(invalid_parameter(broker.config), refusal)
    _check_not_system(broker, topic)


def _check_not_system(broker: Broker, topic: str) -> None:
    is_checked = not broker.is_5 or broker.config.validate_system_topic_when_update_topic
    if is_checked and broker.topics.is_system_topic(topic):
        remark = f"The topic[{topic}] is conflict with system topic."
        raise Refusal(invalid_parameter(broker.config), remark)


def _check_config(broker: Broker, topic_config: TopicConfig) -> None:
    queue_nums = max(topic_config.read_queue_nums, topic_config.write_queue_nums)
    if queue_nums > MAX_QUEUES:
        remark = f"The topic[{topic_config.name}] must have at most {MAX_QUEUES} queues, got {queue_nums}."
        raise Refusal(invalid_parameter(broker.config), remark)
    is_mixed = topic_config.attributes.get("+message.type") == "MIXED"
    if is_mixed and not broker.config.enable_mixed_message_type:
        raise Refusal(ResponseCode.INVALID_PARAMETER, "MIXED message type is not supported.")


@handles(DeleteTopicInBroker)
async def delete_topic_in_broker(broker: Broker, request: DeleteTopicInBroker) -> None:
    """Delete a topic with its queues; 5.x also deletes its offsets and its pop retry topics, one for each group, whose
    queues are deleted in slices at the end."""
    refuse_on_slave(broker)
    topic = request.topic
    if not broker.is_5:
        _check_topic_name(broker, topic)
        if not is_lmq(topic):
            broker.topics.delete(topic)
        broker.store.delete_topic_queues(topic)
        broker.statistics.forget({topic})
        return
    if not topic or topic.isspace():
        raise Refusal(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
    _check_not_system(broker, topic)
    retry_topics = _pop_retry_topics(broker, topic)
    names = {topic, *retry_topics}
    for name in names:
        broker.topics.delete(name)
    broker.offsets.remove_topics(names)
    broker.statistics.forget(names)
    broker.store.delete_topic_queues(topic)
    async for name in in_slices(retry_topics):
        if name not in broker.topics:
            broker.store.delete_topic_queues(name)


def _pop_retry_topics(broker: Broker, topic: str) -> list[str]:
    if not broker.config.clear_retry_topic_when_delete_topic:
        return []
    groups = broker.offsets.groups_of(topic)
    names = (pop_retry_topic(topic, group, v2=v2) for group in groups for v2 in (True, False))
    return [name for name in names if name in broker.topics]


@handles(DeleteExpiredCommitLog)
def delete_expired_commit_log(broker: Broker, request: DeleteExpiredCommitLog) -> None:
    """Delete log files older than `fileReservedTime`: at most ten now, the rest in the next rounds of the retention."""
    broker.retention.request_manual()
    broker.retention.run()


@handles(CleanExpiredConsumeQueue)
def clean_expired_consume_queue(broker: Broker, request: CleanExpiredConsumeQueue) -> None:
    """Delete the queues whose messages are all deleted from the log, except those of built-in topics."""
    broker.store.delete_expired_queues(broker.topics.is_system_topic)


@handles(CleanUnusedTopic)
async def clean_unused_topic(broker: Broker, request: CleanUnusedTopic) -> None:
    """Delete the queues of topics that are not in the topic table, except built-in topics and light queues."""
    deleted = set()
    try:
        async for topic in in_slices(list(broker.store.topics_with_queues())):
            if topic in broker.topics or broker.topics.is_system_topic(topic) or is_lmq(topic):
                continue
            broker.store.delete_topic_queues(topic)
            deleted.add(topic)
    finally:
        broker.statistics.forget(deleted)


# -- queries


@handles(GetAllTopicConfig)
async def get_all_topic_config(broker: Broker, request: GetAllTopicConfig) -> Answer:
    """The whole topic table, or one page of it if the request names a page (5.x)."""
    topics = broker.topics
    async with broker.reports:
        if not broker.is_5:
            return Answer(body=await encode_json(topics.copy(), len(topics)))
        if (request.topic_seq, request.data_version, request.max_topic_num) == (None, None, None):
            table = dict(topics.topics)
        else:
            table = topics.page(
                request.data_version, request.topic_seq or 0, page_size(request.max_topic_num)
            )
        reply = GetAllTopicConfigReply(total_topic_num=len(topics))
        body = TopicConfigAndMappingSerializeWrapper(
            topic_config_table=table,
            data_version=topics.data_version,
            mapping_data_version=DataVersion(timestamp=broker.identity.boot_time_ms),
        )
        return Answer(reply=reply, body=await encode_json(body, len(table)))


@handles(GetTopicConfig)
def get_topic_config(broker: Broker, request: GetTopicConfig) -> Answer:
    topic_config = broker.topics.find(request.topic)
    if topic_config is None:
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {request.topic}")
    return Answer(body=fastjson.dumps(topic_config))


@handles(GetTopicStatsInfo)
async def get_topic_stats_info(broker: Broker, request: GetTopicStatsInfo) -> Answer:
    """The min and max offset of each queue, and the store time of its last message."""
    topic, store = request.topic, broker.store
    topic_config = broker.topics.find(topic)
    if topic_config is None:
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
    queue_nums = topic_config.write_queue_nums
    if broker.is_5:
        queue_nums = max(queue_nums, topic_config.read_queue_nums)
    table: dict[MessageQueue, TopicOffset] = {}
    async with broker.reports:
        async for queue_id in in_slices(range(queue_nums)):
            max_offset = store.max_offset(topic, queue_id)
            table[MessageQueue(topic, broker.config.broker_name, queue_id)] = TopicOffset(
                min_offset=store.min_offset(topic, queue_id),
                max_offset=max_offset,
                last_update_timestamp=store.store_time(topic, queue_id, max_offset - 1) if max_offset else 0,
            )
        body: object = {"offsetTable": table}
        if broker.is_5:
            body = TopicStatsTable(offset_table=table, topic_put_tps=tps_of(broker, "TOPIC_PUT_NUMS", topic))
        return Answer(body=await encode_json(body, len(table)))


@handles(QueryTopicConsumeByWho)
def query_topic_consume_by_who(broker: Broker, request: QueryTopicConsumeByWho) -> GroupList:
    """The groups that subscribe to a topic now or have offsets in it."""
    groups = broker.offsets.groups_of(request.topic)
    groups.update(broker.membership.consumers.groups_reading(request.topic))
    return GroupList(group_list=sorted(groups))


@handles(GetSystemTopicListFromBroker)
def get_system_topic_list_from_broker(broker: Broker, request: GetSystemTopicListFromBroker) -> TopicList:
    """The built-in topics, whose names an administrator cannot use."""
    return TopicList(topic_list=sorted(broker.topics.system_topics))
