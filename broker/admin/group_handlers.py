"""Consumer groups for administrators: settings (200, 225, 201, 352, 353, 207), members (203, 204, 328, 345), and
progress: of one group in offsets (208) and in time (303), and of all groups (317).

Mirrors the group part of `AdminBrokerProcessor`.
"""

from collections.abc import Iterator
from typing import Any, Final

from pocketmq.protocol.bodies.client_state import (
    Connection,
    ConsumerConnection,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
)
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig, SubscriptionGroupList
from pocketmq.protocol.bodies.offsets import (
    GroupForbidden,
    QueryConsumeTimeSpanBody,
    QuerySubscriptionResponseBody,
    QueueTimeSpan,
)
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import group_refusal
from pocketmq.protocol.requests.group import (
    DeleteSubscriptionGroup,
    GetAllSubscriptionGroupConfig,
    GetAllSubscriptionGroupConfigReply,
    GetBrokerConsumeStats,
    GetConsumeStats,
    GetSubscriptionGroupConfig,
    QuerySubscriptionByConsumer,
    UpdateAndCreateSubscriptionGroup,
    UpdateAndCreateSubscriptionGroupList,
    UpdateAndGetGroupForbidden,
)
from pocketmq.protocol.requests.membership import (
    GetAllProducerInfo,
    GetConsumerConnectionList,
    GetProducerConnectionList,
)
from pocketmq.protocol.requests.topic import QueryConsumeTimeSpan
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..broker import Broker
from ..errors import Refusal
from ..membership.consumer_groups import Client
from ..network.dispatch import Answer, CallWithBody, handles
from ..state.part import invalid_parameter
from ..tables.attributes import AttributeRefusedError
from ..time.slices import encode_json, in_slices

MAX_PAGE_SIZE: Final = 2000
"""Topics or groups in one page, the official default of splitMetadataSize."""
MAX_QUEUES: Final = 16_384
"""Most queues of a topic, or of a group's retry topic: a report about as many fits into a frame. The official broker
has no limit; there a report about a million queues, created by a typing mistake, takes ten seconds."""

MAX_RETRY_STEPS: Final = 1000
"""Most delays of a group's retry policy: each gRPC member of the group gets them all. The official broker has no
limit."""


def refuse_on_slave(broker: Broker) -> None:
    """A slave of the 4.9 line refuses changes of topics and groups; one of the 5.x line accepts them."""
    if not broker.is_5 and broker.is_slave:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR,
            "Can't modify topic or subscription group from slave broker, please execute it from master broker.",
        )


def tps_of(broker: Broker, name: str, key: str) -> float:
    """Messages a second over the last minute of one series; 0 if nothing was counted."""
    series = broker.statistics.find(name, key)
    return 0.0 if series is None or series.stats_minute is None else series.stats_minute.tps


# -- settings


@handles(UpdateAndCreateSubscriptionGroup)
async def update_and_create_subscription_group(
    broker: Broker, request: UpdateAndCreateSubscriptionGroup, call: CallWithBody[SubscriptionGroupConfig]
) -> None:
    """Create a group or replace its settings. In 5.x a request without a body changes nothing."""
    refuse_on_slave(broker)
    if not call.body and broker.is_5:
        return
    group_config = call.read_body()
    _check_group(broker, group_config)
    _update(broker, group_config)
    await broker.tables.wait_until_saved(broker.groups)


@handles(UpdateAndCreateSubscriptionGroupList)
async def update_and_create_subscription_group_list(
    broker: Broker, request: UpdateAndCreateSubscriptionGroupList, call: CallWithBody[SubscriptionGroupList]
) -> None:
    """Create or change several groups: none if one name is bad; only those before the first with bad attributes."""
    group_configs = call.read_body().group_config_list or []
    async for group_config in in_slices(group_configs):
        _check_group(broker, group_config)
    async for group_config in in_slices(group_configs):
        _update(broker, group_config)
    await broker.tables.wait_until_saved(broker.groups)


def _check_group(broker: Broker, group_config: SubscriptionGroupConfig) -> None:
    if group_config.retry_queue_nums > MAX_QUEUES:
        remark = f"retryQueueNums must be at most {MAX_QUEUES}, got {group_config.retry_queue_nums}."
        raise Refusal(invalid_parameter(broker.config), remark)
    if not broker.is_5:
        if group_config.group_name is None:
            raise Refusal(ResponseCode.SYSTEM_ERROR, "java.lang.NullPointerException: groupName")
        return
    refusal = group_refusal(group_config.name)
    if refusal is not None:
        raise Refusal(ResponseCode.INVALID_PARAMETER, refusal)
    steps = group_config.group_retry_policy.customized_retry_policy
    if steps is not None and len(steps.next) > MAX_RETRY_STEPS:
        remark = f"a retry policy has at most {MAX_RETRY_STEPS} delays, got {len(steps.next)}."
        raise Refusal(ResponseCode.INVALID_PARAMETER, remark)


def _update(broker: Broker, group_config: SubscriptionGroupConfig) -> None:
    try:
        broker.groups.update(group_config)
    except AttributeRefusedError as refusal:
        remark = f"java.lang.RuntimeException: {refusal}"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark) from refusal


@handles(GetAllSubscriptionGroupConfig)
async def get_all_subscription_group_config(broker: Broker, request: GetAllSubscriptionGroupConfig) -> Answer:
    """The whole group table, or one page of it if the request names a page (5.x)."""
    groups = broker.groups
    async with broker.reports:
        if not broker.is_5:
            return Answer(body=await encode_json(groups.copy(), len(groups)))
        reply = GetAllSubscriptionGroupConfigReply(total_group_num=len(groups))
        if (request.group_seq, request.data_version, request.max_group_num) == (None, None, None):
            return Answer(reply=reply, body=await encode_json(groups.copy(), len(groups)))
        page = groups.page(request.data_version, request.group_seq or 0, page_size(request.max_group_num))
        return Answer(reply=reply, body=await encode_json(page, len(page.subscription_group_table)))


def page_size(requested: int | None) -> int:
    """Entries in one page of 21 or 201: the requested number, within limits."""
    return MAX_PAGE_SIZE if requested is None else min(MAX_PAGE_SIZE, max(0, requested))


@handles(GetSubscriptionGroupConfig)
def get_subscription_group_config(broker: Broker, request: GetSubscriptionGroupConfig) -> Answer:
    """The settings of one group. Creates the group if groups are created automatically, as in the official broker."""
    group_config = broker.groups.find_or_create(request.group)
    if group_config is None:
        raise Refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker")
    return Answer(body=fastjson.dumps(group_config))


@handles(DeleteSubscriptionGroup)
def delete_subscription_group(broker: Broker, request: DeleteSubscriptionGroup) -> None:
    """Delete a group, and its offsets if the request has the flag for it; each line has a flag of its own.

    If the offsets stay and groups are created automatically, 5.x creates the group again at once.
    """
    refuse_on_slave(broker)
    is_5, name = broker.is_5, request.group_name
    broker.groups.delete(name)
    if request.clean_offset if is_5 else request.remove_offset:
        broker.offsets.remove_group(name)
    elif is_5:
        broker.groups.find_or_create(name)
    broker.statistics.forget(groups={name})


@handles(UpdateAndGetGroupForbidden)
async def update_and_get_group_forbidden(broker: Broker, request: UpdateAndGetGroupForbidden) -> Answer:
    """Forbid a group to read one topic, or allow it again; without `readable` only answer whether it is allowed."""
    group, topic = request.group, request.topic
    if request.readable is not None:
        broker.groups.set_forbidden(group, topic, forbidden=not request.readable)
        await broker.tables.wait_until_saved(broker.groups)
    body = GroupForbidden(group=group, topic=topic, readable=not broker.groups.is_forbidden(group, topic))
    return Answer(remark="", body=body.encode())


# -- members


@handles(GetConsumerConnectionList)
def get_consumer_connection_list(broker: Broker, request: GetConsumerConnectionList) -> ConsumerConnection:
    group = broker.membership.consumers.get(request.consumer_group)
    if group is None:
        remark = f"the consumer group[{request.consumer_group}] not online"
        raise Refusal(ResponseCode.CONSUMER_NOT_ONLINE, remark)
    return ConsumerConnection(
        connection_set=[_connection_of(client) for client in group.clients()],
        subscription_table=dict(group.subscriptions),
        consume_type=group.consume_type,
        message_model=group.message_model,
        consume_from_where=group.consume_from_where,
    )


@handles(GetProducerConnectionList)
def get_producer_connection_list(broker: Broker, request: GetProducerConnectionList) -> ProducerConnection:
    members = broker.membership.producers.get(request.producer_group)
    if members is None:
        remark = f"the producer group[{request.producer_group}] not exist"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    connections = [_connection_of(client) for client in members.values()]
    return ProducerConnection(connection_set=connections)


@handles(GetAllProducerInfo)
def get_all_producer_info(broker: Broker, request: GetAllProducerInfo) -> ProducerTableInfo:
    data = {
        group: [
            ProducerInfo(
                client_id=client.client_id,
                remote_ip=f"/{client.connection.peer}",  # as Java writes a socket address
                language=client.language,
                version=client.version,
                last_update_timestamp=client.last_update_ms,
            )
            for client in clients
        ]
        for group, clients in broker.membership.producers.all().items()
    }
    return ProducerTableInfo(data=data)


def _connection_of(client: Client) -> Connection:
    return Connection(
        client_id=client.client_id,
        client_addr=client.connection.peer,
        language=client.language,
        version=client.version,
    )


@handles(QuerySubscriptionByConsumer)
def query_subscription_by_consumer(
    broker: Broker, request: QuerySubscriptionByConsumer
) -> QuerySubscriptionResponseBody:
    """The subscription of an online group to a topic; without `subscriptionData` if the group is offline."""
    group = broker.membership.consumers.get(request.group)
    subscription = None if group is None or request.topic is None else group.subscriptions.get(request.topic)
    return QuerySubscriptionResponseBody(
        group=request.group, topic=request.topic, subscription_data=subscription
    )


# -- progress


@handles(GetConsumeStats)
async def get_consume_stats(broker: Broker, request: GetConsumeStats) -> Answer:
    """The group's offset in each queue of its topics, and how fast it reads."""
    group = request.consumer_group
    table: dict[MessageQueue, dict[str, int]] = {}
    async with broker.reports:
        topics = [topic for topic in _topics_to_report(broker, request) if topic in broker.topics]
        async for topic, queue_id in in_slices(_read_queues(broker, topics)):
            row = table[MessageQueue(topic, broker.config.broker_name, queue_id)] = _progress(
                broker, group, topic, queue_id
            )
            if broker.is_5:
                pulled = broker.offsets.query_pull(topic, group, queue_id)
                row["pullOffset"] = max(row["consumerOffset"], pulled)
        consume_tps = sum(
            (tps_of(broker, "GROUP_GET_NUMS", f"{topic}@{group}") for topic in topics), start=0.0
        )
        return Answer(body=await encode_json({"consumeTps": consume_tps, "offsetTable": table}, len(table)))


def _read_queues(broker: Broker, topics: list[str]) -> Iterator[tuple[str, int]]:
    for topic in topics:
        topic_config = broker.topics.find(topic)
        for queue_id in range(topic_config.read_queue_nums if topic_config is not None else 0):
            yield topic, queue_id


def _topics_to_report(broker: Broker, request: GetConsumeStats) -> set[str]:
    """The named topics, or all topics in which the group has offsets; without those that an online group does not
    subscribe to."""
    group, topic = request.consumer_group, request.topic
    listed = {name for name in (request.topic_list or "").split(";") if name}
    if broker.is_5 and listed:
        return listed
    topics = broker.offsets.topics_of(group) if not topic or topic.isspace() else {topic}
    return {name for name in topics if broker.membership.consumers.may_read(group, name)}


def _progress(broker: Broker, group: str, topic: str, queue_id: int) -> dict[str, int]:
    consumed = max(0, broker.offsets.query(topic, group, queue_id))
    return {
        "brokerOffset": broker.store.max_offset(topic, queue_id),
        "consumerOffset": consumed,
        "lastTimestamp": max(0, broker.store.store_time(topic, queue_id, consumed - 1)) if consumed else 0,
    }


@handles(GetBrokerConsumeStats)
async def get_broker_consume_stats(broker: Broker, request: GetBrokerConsumeStats) -> Answer:
    """The progress of every group in every topic in which it has offsets, or only in the ordered topics."""
    async with broker.reports:
        rows: dict[str, list[dict[str, Any]]] = {group: [] for group in broker.groups.groups}
        total_diff = total_inflight_diff = count = 0
        async for group, topic_config, queue_id in in_slices(_queues_of_groups(broker, request, list(rows))):
            topic = topic_config.name
            if not queue_id:
                tps = tps_of(broker, "GROUP_GET_NUMS", f"{topic}@{group}")
                rows[group].append({"consumeTps": tps, "offsetTable": {}})
            row = _progress(broker, group, topic, queue_id)
            total_diff += row["brokerOffset"] - row["consumerOffset"]
            if broker.is_5:  # the official broker leaves the pull offset at zero here and subtracts from it
                row["pullOffset"] = 0
                total_inflight_diff -= row["consumerOffset"]
            rows[group][-1]["offsetTable"][MessageQueue(topic, broker.config.broker_name, queue_id)] = row
            count += 1
        body: dict[str, Any] = {
            "brokerAddr": broker.identity.address,
            "consumeStatsList": [{group: topics} for group, topics in rows.items()],
            "totalDiff": total_diff,
        }
        if broker.is_5:
            body["totalInflightDiff"] = total_inflight_diff
        return Answer(body=await encode_json(body, count + len(rows)))


def _queues_of_groups(
    broker: Broker, request: GetBrokerConsumeStats, groups: list[str]
) -> Iterator[tuple[str, TopicConfig, int]]:
    """Each write queue of the existing topics in which a group has offsets, without those to which its online members
    do not subscribe."""
    for group in groups:
        for topic in sorted(broker.offsets.topics_of(group)):
            config = broker.topics.find(topic)
            if config is None or (request.is_order and not config.order):
                continue
            if broker.membership.consumers.may_read(group, topic):
                for queue_id in range(config.write_queue_nums):
                    yield group, config, queue_id


@handles(QueryConsumeTimeSpan)
async def query_consume_time_span(broker: Broker, request: QueryConsumeTimeSpan) -> Answer:
    """For each write queue: store times of its oldest, its newest and the last consumed message, and the delay."""
    topic_config = broker.topics.find(request.topic)
    if topic_config is None:
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"topic[{request.topic}] not exist")
    async with broker.reports:
        spans = [
            _time_span(broker, request.group, request.topic, queue_id)
            async for queue_id in in_slices(range(topic_config.write_queue_nums))
        ]
        body = QueryConsumeTimeSpanBody(consume_time_span_set=spans)
        return Answer(body=await encode_json(body, len(spans)))


def _time_span(broker: Broker, group: str, topic: str, queue_id: int) -> QueueTimeSpan:
    store = broker.store
    oldest_ms = store.earliest_store_time(topic, queue_id)
    max_offset = store.max_offset(topic, queue_id)
    consumed = broker.offsets.query(topic, group, queue_id)
    delay_ms = 0
    if consumed < max_offset:
        # A group without an offset: the store time of message -1 is -1, so the delay is the whole time since 1970.
        delay_ms = broker.clock.now_ms() - store.store_time(topic, queue_id, consumed)
    return QueueTimeSpan.of(
        MessageQueue(topic, broker.config.broker_name, queue_id),
        min_time_stamp=oldest_ms,
        max_time_stamp=store.store_time(topic, queue_id, max_offset - 1),
        consume_time_stamp=store.store_time(topic, queue_id, consumed - 1) if consumed > 0 else oldest_ms,
        delay_time=delay_ms,
    )
