"""Offsets of queues and groups: 14, 15, 29 to 32, and our own request that explains a first position.

`rules.py` decides what 14 answers; this file turns the decision into an answer. Mirrors `ConsumerManageProcessor` and
the offset part of `AdminBrokerProcessor`.
"""

from pocketmq.protocol.requests.offset import (
    ExplainFirstPosition,
    GetEarliestMsgStoreTime,
    GetEarliestMsgStoreTimeReply,
    GetMaxOffset,
    GetMinOffset,
    OffsetReply,
    QueryConsumerOffset,
    SearchOffsetByTimestamp,
    UpdateConsumerOffset,
    encode_verdicts,
)
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store.reading.time_search import Boundary

from ..errors import Refusal
from ..network.dispatch import Answer, Call, handles
from ..time.slices import in_slices
from .first_position import FirstPosition
from .rules import Rule
from .verdict import decide_first_position, explain

_NOT_FOUND = "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
_NOT_FOUND_NO_DEFAULT = "Not found, do not set to zero, maybe this group boot first"


@handles(QueryConsumerOffset)
def query_consumer_offset(
    first_position: FirstPosition, request: QueryConsumerOffset, call: Call
) -> OffsetReply:
    """The offset at which the group continues or starts: the rules B0 to B7."""
    decision = decide_first_position(
        first_position.state,
        request.consumer_group,
        request.topic,
        request.queue_id,
        request.set_zero_if_not_found,
    )
    if decision.offset is None:
        first_position.skipped.record_not_found(
            call.connection, request.consumer_group, request.topic, request.queue_id, decision.rule
        )
        remark = _NOT_FOUND_NO_DEFAULT if decision.rule is Rule.DEFAULT_FORBIDDEN else _NOT_FOUND
        raise Refusal(ResponseCode.QUERY_NOT_FOUND, remark)
    return OffsetReply(offset=decision.offset)


@handles(UpdateConsumerOffset)
def update_consumer_offset(first_position: FirstPosition, request: UpdateConsumerOffset) -> Answer:
    """Store a group's offset, even a lower one. 5.x ignores it while a reset waits for the group's next pull."""
    group, topic, queue_id = request.consumer_group, request.topic, request.queue_id
    if first_position.is_5:
        if group not in first_position.groups:
            raise Refusal(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} not exist!")
        if topic not in first_position.topics:
            raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
        if first_position.config.use_server_side_reset_offset and first_position.offsets.has_reset(
            topic, group, queue_id
        ):
            return Answer(remark="Offset has been previously reset")
    first_position.offsets.commit(topic, group, queue_id, request.commit_offset)
    return Answer()


@handles(SearchOffsetByTimestamp)
def search_offset_by_timestamp(
    first_position: FirstPosition, request: SearchOffsetByTimestamp
) -> OffsetReply:
    """The offset at a store time. boundaryType `UPPER`, in any case, selects the last message up to that time."""
    boundary: Boundary = "UPPER" if (request.boundary_type or "").upper() == "UPPER" else "LOWER"
    offset = first_position.store.search_offset(request.topic, request.queue_id, request.timestamp, boundary)
    return OffsetReply(offset=offset)


@handles(GetMaxOffset)
def get_max_offset(first_position: FirstPosition, request: GetMaxOffset, call: Call) -> OffsetReply:
    """The offset after the last message; 0 for an unknown queue."""
    end = first_position.store.max_offset(request.topic, request.queue_id)
    first_position.skipped.record_end(call.connection, request.topic, request.queue_id, end)
    return OffsetReply(offset=end)


@handles(GetMinOffset)
def get_min_offset(first_position: FirstPosition, request: GetMinOffset) -> OffsetReply:
    """The offset of the oldest message; 0 for an unknown queue."""
    return OffsetReply(offset=first_position.store.min_offset(request.topic, request.queue_id))


@handles(GetEarliestMsgStoreTime)
def get_earliest_msg_storetime(
    first_position: FirstPosition, request: GetEarliestMsgStoreTime
) -> GetEarliestMsgStoreTimeReply:
    """Store time of the oldest message, in ms; -1 if the queue is empty."""
    return GetEarliestMsgStoreTimeReply(
        timestamp=first_position.store.earliest_store_time(request.topic, request.queue_id)
    )


@handles(ExplainFirstPosition)
async def explain_first_position(first_position: FirstPosition, request: ExplainFirstPosition) -> Answer:
    """One verdict for each read queue of the topic."""
    topic_config = first_position.topics.find(request.topic)
    if topic_config is None:
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"topic[{request.topic}] not exist")
    state = first_position.state
    async with state.reports:
        verdicts = [
            explain(state, request.consumer_group, request.topic, queue_id)
            async for queue_id in in_slices(range(topic_config.read_queue_nums))
        ]
        return Answer(body=encode_verdicts(verdicts))
