"""Offsets for administrators and slaves: cloning a group's (314), the whole tables (43, 45), the groups' lowest (308),
the topics a group has offsets in (343, 5.x), and resets of a group's offsets (222), in one of two ways:

    5.x     the broker keeps the new offset of each queue and answers it to the next pull (`OffsetTable.assign_reset`);
            the consumers may be offline
    4.9     the broker pushes the new offsets (220) to every online member, which moves to them and commits them;
            5.x does the same without useServerSideResetOffset

Requests of consumers are in `first_position/offset_handlers.py`. Mirrors the offset part of `AdminBrokerProcessor` and
`Broker2Client.resetOffset`.
"""

from typing import Final

from pocketmq.protocol.bodies.offsets import QueryCorrectionOffsetBody, ResetOffsetBody
from pocketmq.protocol.bodies.routes import TopicList
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.java_strings import hash_map_order
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.group import QueryTopicsByConsumer
from pocketmq.protocol.requests.offset import (
    CloneGroupOffset,
    InvokeBrokerToResetOffset,
    QueryCorrectionOffset,
)
from pocketmq.protocol.requests.replication import GetAllConsumerOffset, GetAllDelayOffset
from pocketmq.protocol.requests.to_client import ResetConsumerClientOffset
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..broker import Broker
from ..errors import Refusal
from ..network.dispatch import Answer, Call, handles
from ..state.part import UNSET_REMARK
from ..time.slices import encode_json, in_slices
from .client_relay_handlers import refuse_old_client

OFFSET_AT_END: Final = -1
"""A timestamp of 222 that means the end of the queue."""
_LONG_MAX: Final = (1 << 63) - 1


@handles(CloneGroupOffset)
def clone_group_offset(broker: Broker, request: CloneGroupOffset) -> None:
    """Copy the offsets of one group to another, in one topic or in all topics in which it has offsets.

    Skips unknown topics, and unless the request says `offline`, topics to which the online members of the source group
    do not subscribe. Without a topic the official broker clones nothing, by mistake.
    """
    source = request.src_group
    topics = (
        {request.topic} if request.topic and not request.topic.isspace() else broker.offsets.topics_of(source)
    )
    for topic in topics:
        if topic in broker.topics and (
            request.offline or broker.membership.consumers.may_read(source, topic)
        ):
            broker.offsets.clone(source, request.dest_group, topic)


@handles(GetAllConsumerOffset)
async def get_all_consumer_offset(broker: Broker, request: GetAllConsumerOffset) -> Answer:
    """The table of committed offsets, for a slave."""
    async with broker.reports:
        text = broker.offsets.text()
        async for _ in in_slices(text.parts()):
            pass  # each step has made a part
        return Answer(body=text.whole())


@handles(GetAllDelayOffset)
def get_all_delay_offset(broker: Broker, request: GetAllDelayOffset) -> Answer:
    """How far each delay level has been delivered, for a slave."""
    return Answer(body=broker.delays.to_json(pretty=False))


@handles(QueryCorrectionOffset)
def query_correction_offset(broker: Broker, request: QueryCorrectionOffset) -> QueryCorrectionOffsetBody:
    """The lowest offset of all groups in each queue; `Long.MAX_VALUE` if the compared group has a lower one.

    The 4.9 line looks up the compared group under a wrong key, so there it has no effect.
    """
    topic = request.topic
    filter_groups = request.filter_groups.split(",") if request.filter_groups else ()
    lowest = broker.offsets.min_offsets(
        topic, lambda queue_id: broker.store.min_offset(topic, queue_id), filter_groups
    )
    compared = None if not broker.is_5 else broker.offsets.offsets(topic, request.compare_group)
    for queue_id, offset in (compared or {}).items():
        if lowest.get(queue_id, offset) > offset:
            lowest[queue_id] = _LONG_MAX
    return QueryCorrectionOffsetBody(correction_offsets=lowest)


@handles(QueryTopicsByConsumer)
def query_topics_by_consumer(broker: Broker, request: QueryTopicsByConsumer) -> TopicList:
    topics = hash_map_order(sorted(broker.offsets.topics_of(request.group)))
    return TopicList(topic_list=list(topics), broker_addr=broker.identity.address)


# -- resets


@handles(InvokeBrokerToResetOffset)
async def invoke_broker_to_reset_offset(
    broker: Broker, request: InvokeBrokerToResetOffset, call: Call
) -> Answer:
    """Reset a group to a time, to the end of the queues, or (5.x) to an offset of one queue. The new offsets of all
    queues are found in slices, and then take effect together."""
    async with broker.reports:
        if broker.is_5 and broker.config.use_server_side_reset_offset:
            return await _reset_here(broker, request)
        return await _reset_at_clients(broker, request, is_cpp=call.command.language == "CPP")


async def _reset_here(broker: Broker, request: InvokeBrokerToResetOffset) -> Answer:
    """Keep the new offsets until the next pull of each queue (resetOffsetInner)."""
    topic, group = request.topic, request.group
    if broker.is_slave:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "Can not reset offset in slave broker")
    topic_config = broker.topics.find(topic)
    if topic_config is None:
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} does not exist")
    if group not in broker.groups:
        raise Refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} does not exist")
    if request.queue_id >= 0:
        offsets = {request.queue_id: _target_of_queue(broker, request)}
    else:
        offsets = {
            queue_id: _offset_at(broker, topic, queue_id, request.timestamp)
            async for queue_id in in_slices(range(topic_config.read_queue_nums))
        }
    if not offsets:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
    for queue_id, offset in offsets.items():
        broker.offsets.assign_reset(topic, group, queue_id, offset)
    table = {
        MessageQueue(topic, broker.config.broker_name, queue_id): offset
        for queue_id, offset in offsets.items()
    }
    return Answer(body=await encode_json(ResetOffsetBody(offset_table=table), len(table)))


def _target_of_queue(broker: Broker, request: InvokeBrokerToResetOffset) -> int:
    """The new offset of the queue that a request names. One past the end is accepted, as in the official broker."""
    topic, queue_id, offset = request.topic, request.queue_id, request.offset
    if offset is None or offset == OFFSET_AT_END:
        return _offset_at(broker, topic, queue_id, request.timestamp)
    low, high = broker.store.min_offset(topic, queue_id), broker.store.max_offset(topic, queue_id)
    if not low <= offset <= high + 1:
        remark = f"Target offset {offset} not in consume queue range [{low}-{high}]"
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
    return offset


def _offset_at(broker: Broker, topic: str, queue_id: int, timestamp_ms: int) -> int:
    if timestamp_ms < 0:
        return broker.store.max_offset(topic, queue_id)
    return broker.store.search_offset(topic, queue_id, timestamp_ms, "LOWER")


async def _reset_at_clients(broker: Broker, request: InvokeBrokerToResetOffset, *, is_cpp: bool) -> Answer:
    """Push the new offsets to the online members (Broker2Client.resetOffset)."""
    topic, group = request.topic, request.group
    topic_config = broker.topics.find(topic)
    if topic_config is None:
        code = ResponseCode.SYSTEM_ERROR if not broker.is_5 else ResponseCode.TOPIC_NOT_EXIST
        remark = f"[reset-offset] reset offset failed, no topic in this broker. topic={topic}"
        raise Refusal(code, remark)
    body = ResetOffsetBody(offset_table=await _pushed_offsets(broker, request, topic_config))
    members = broker.membership.consumers.get(group)
    if members is None:
        raise Refusal(
            ResponseCode.CONSUMER_NOT_ONLINE,
            f"Consumer not online, so can not reset offset, Group: {group} Topic: {topic} "
            f"Timestamp: {request.timestamp}",
        )
    # The push has no isForce, as in the official broker: it is applied here.
    push = ResetConsumerClientOffset(topic=topic, group=group, timestamp=request.timestamp)
    text = await encode_json(body, len(body.offset_table))
    pushed_body = await encode_json(body.for_c(), len(body.offset_table)) if is_cpp else text
    for client in members.clients():
        refuse_old_client(client)
        client.connection.notify(push, pushed_body)
    return Answer(remark=UNSET_REMARK, body=text)


async def _pushed_offsets(
    broker: Broker, request: InvokeBrokerToResetOffset, topic_config: TopicConfig
) -> dict[MessageQueue, int]:
    table = {}
    async for queue_id in in_slices(range(topic_config.write_queue_nums)):
        consumed = broker.offsets.query(request.topic, request.group, queue_id)
        if consumed == -1:
            remark = f"THe consumer group <{request.group}> not exist"  # the official spelling
            raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
        # Unlike `_reset_here`, only -1 means the end; other times before 1970 find the first message.
        if request.timestamp == OFFSET_AT_END:
            offset = broker.store.max_offset(request.topic, queue_id)
        else:
            offset = broker.store.search_offset(request.topic, queue_id, request.timestamp, "LOWER")
        offset = max(0, offset)
        queue = MessageQueue(request.topic, broker.config.broker_name, queue_id)
        table[queue] = offset if request.is_force or offset < consumed else consumed
    return table
