"""UpdateOffset, GetOffset and QueryOffset: the offsets of groups and queues.

No published client asks, and the official proxy of one process does not know them. The meaning is that of the remoting
requests which the proxy of a cluster would send: 15, 14, and 29 to 31.
"""

from pocketmq.broker.errors import Refusal
from pocketmq.broker.first_position.offset_handlers import query_consumer_offset, update_consumer_offset
from pocketmq.protocol.requests.offset import QueryConsumerOffset, UpdateConsumerOffset
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..calls.refusals import GrpcStatus, RpcFailed, RpcRefused
from ..calls.registry import rpc
from ..calls.rpc_call import RpcCall
from ..forms.names import checked_group, checked_topic
from ..messages import (
    OK,
    Code,
    GetOffsetRequest,
    GetOffsetResponse,
    MessageQueue,
    QueryOffsetPolicy,
    QueryOffsetRequest,
    QueryOffsetResponse,
    UpdateOffsetRequest,
    UpdateOffsetResponse,
)
from .consuming import Consuming
from .handler_call import HandlerCall
from .receive_handlers import check_readable


def refuse_if_strict(consuming: Consuming, call: RpcCall) -> None:
    """The official proxy of one process does not have these rpcs. Raises `RpcFailed` with UNIMPLEMENTED."""
    if consuming.settings.strict:
        text = f"Method {call.rpc.path[1:]} is unimplemented"
        raise RpcFailed(GrpcStatus.UNIMPLEMENTED, text)


def checked_queue(consuming: Consuming, queue: MessageQueue) -> tuple[str, int]:
    """Topic and id of a queue of this broker; an empty broker name is this one. Raises `RpcRefused`."""
    topic = checked_topic(queue.topic, consuming.broker.topics)
    check_readable(consuming, topic)
    own_name = consuming.broker.config.broker_name
    if queue.broker.name not in ("", own_name):
        text = f"the queue must be one of broker {own_name}, got broker {queue.broker.name!r}"
        raise RpcRefused(Code.BAD_REQUEST, text)
    config = consuming.broker.topics.find(topic)
    count = 0 if config is None else config.read_queue_nums
    if not 0 <= queue.id < count:
        text = f"the queue of topic {topic} must be 0 to {count - 1}, got {queue.id}"
        raise RpcRefused(Code.BAD_REQUEST, text)
    return topic, queue.id


@rpc(UpdateOffsetRequest)
def update_offset(consuming: Consuming, request: UpdateOffsetRequest, call: RpcCall) -> UpdateOffsetResponse:
    """Store where the group continues, even if that is a lower offset. Refuses an unknown group."""
    consuming.clients.checked(call, request)
    refuse_if_strict(consuming, call)
    topic, queue_id = checked_queue(consuming, request.message_queue)
    group = checked_group(request.group)
    if request.offset < 0:
        raise RpcRefused(Code.ILLEGAL_OFFSET, f"the offset must not be negative, got {request.offset}")
    update_consumer_offset(
        consuming.broker.first_position,
        UpdateConsumerOffset(
            consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=request.offset
        ),
    )
    return UpdateOffsetResponse(status=OK)


@rpc(GetOffsetRequest)
def get_offset(consuming: Consuming, request: GetOffsetRequest, call: RpcCall) -> GetOffsetResponse:
    """Where the group continues or starts; OFFSET_NOT_FOUND if the client has to decide."""
    consuming.clients.checked(call, request)
    refuse_if_strict(consuming, call)
    topic, queue_id = checked_queue(consuming, request.message_queue)
    group = checked_group(request.group)
    query = QueryConsumerOffset(consumer_group=group, topic=topic, queue_id=queue_id)
    try:
        reply = query_consumer_offset(
            consuming.broker.first_position, query, HandlerCall.of(call, query.code)
        )
    except Refusal as refusal:
        if refusal.code == ResponseCode.QUERY_NOT_FOUND:
            raise RpcRefused(Code.OFFSET_NOT_FOUND, refusal.remark) from None
        raise
    return GetOffsetResponse(status=OK, offset=reply.offset)


@rpc(QueryOffsetRequest)
def query_offset(consuming: Consuming, request: QueryOffsetRequest, call: RpcCall) -> QueryOffsetResponse:
    """The oldest offset of a queue, the one after the newest, or the first stored at or after a time."""
    consuming.clients.checked(call, request)
    refuse_if_strict(consuming, call)
    topic, queue_id = checked_queue(consuming, request.message_queue)
    store, policy = consuming.broker.store, request.query_offset_policy
    if policy == QueryOffsetPolicy.BEGINNING:
        offset = store.min_offset(topic, queue_id)
    elif policy == QueryOffsetPolicy.END:
        offset = store.max_offset(topic, queue_id)
    elif policy == QueryOffsetPolicy.TIMESTAMP and request.timestamp is not None:
        offset = store.search_offset(topic, queue_id, request.timestamp.ms, "LOWER")
    elif policy == QueryOffsetPolicy.TIMESTAMP:
        raise RpcRefused(Code.BAD_REQUEST, "the policy TIMESTAMP needs a timestamp")
    else:
        text = f"the policy must be BEGINNING, END or TIMESTAMP, got {int(policy)}"
        raise RpcRefused(Code.BAD_REQUEST, text)
    return QueryOffsetResponse(status=OK, offset=offset)
