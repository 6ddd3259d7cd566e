"""Facts from the calls of gRPC consumers: receives, acknowledgements, changed invisible times, dead letters.

A handle says where a message lies: the queue, the offset and the position of its record. Loaded with the first such
call (`reading.py`).
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from pocketmq.grpc_endpoint import messages
from pocketmq.grpc_endpoint.calls.refusals import RpcRefused
from pocketmq.grpc_endpoint.calls.watching import RPC_CODES, messages_of
from pocketmq.grpc_endpoint.consuming.receipt_handle import ReceiptHandle, parse_handle
from pocketmq.grpc_endpoint.messages.service import BY_NAME
from pocketmq.grpc_endpoint.wire.decoding import decode
from pocketmq.grpc_endpoint.wire.limits import MalformedMessage
from pocketmq.protocol.bodies.client import SQL92, TAG
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.wire.command import Command

from ..requests.logged_request import Kept
from .facts import Acked, Delivery, Fact, Place, Queue, SentBack

RECEIVE: Final = RPC_CODES["ReceiveMessage"]
_BY_CODE: Final = {code: BY_NAME[name] for name, code in RPC_CODES.items()}
_DEAD_LETTER: Final = -1
"""The delay level by which remoting clients ask for a dead letter."""


def delivered(kept: Kept, body: bytes) -> list[Fact]:
    """The messages of a receive. A reply that a fault made unreadable delivers nothing."""
    request = _request(kept)
    try:
        replies = [
            decode(messages.ReceiveMessageResponse, one) for one in messages_of(_BY_CODE[RECEIVE], body)
        ]
        group = request.group.name
        return [_delivery(kept, group, one.message) for one in replies if one.message is not None]
    except (MalformedMessage, RpcRefused, ProtocolError):
        return []


def _delivery(kept: Kept, group: str, message: messages.Message) -> Delivery:
    properties = message.system_properties
    handle = parse_handle(properties.receipt_handle or "")
    broker = kept.connection.broker or ""
    return Delivery(
        group=group,
        queue=_queue(kept, group, message.topic, handle),
        offset=handle.receipt.offset,
        place=Place(broker, handle.position),
        message_id=properties.message_id,
        sharding_key=properties.message_group,
        store_timestamp=0 if properties.store_timestamp is None else properties.store_timestamp.ms,
        is_retry=(properties.delivery_attempt or 1) > 1,
        request=kept,
        popped_ms=handle.receipt.pop_time_ms,
        visible_again_ms=handle.receipt.visible_again_ms,
    )


def subscribed(kept: Kept) -> tuple[str, str, tuple[str, str]] | None:
    """Topic, group, and the (type, expression) of a receive."""
    if cast(Command, kept.request).code != RECEIVE:
        return None
    request = _request(kept)
    filter_ = request.filter_expression
    kind = SQL92 if filter_.type is messages.FilterType.SQL else TAG
    return request.message_queue.topic.name, request.group.name, (kind, filter_.expression or "*")


def finished(kept: Kept) -> list[Fact]:
    """What a call that reached the broker did to messages."""
    read = _READERS.get(cast(Command, kept.request).code)
    try:
        return [] if read is None else list(read(kept, _request(kept)))
    except (MalformedMessage, RpcRefused, ProtocolError):
        return []


def _acked(kept: Kept, request: messages.AckMessageRequest) -> Iterator[Fact]:
    for entry in request.entries:
        yield _settled(kept, request, entry.receipt_handle)


def _returned(kept: Kept, request: messages.ChangeInvisibleDurationRequest) -> Iterator[Fact]:
    yield _settled(kept, request, request.receipt_handle, is_returned=True)


def _settled(kept: Kept, request: Any, handle_text: str, *, is_returned: bool = False) -> Acked:
    handle, group = parse_handle(handle_text), request.group.name
    queue = _queue(kept, group, request.topic, handle)
    return Acked(group, queue, handle.receipt.offset, kept, is_returned)


def _given_up(kept: Kept, request: messages.ForwardMessageToDeadLetterQueueRequest) -> Iterator[Fact]:
    handle, group = parse_handle(request.receipt_handle), request.group.name
    queue = _queue(kept, group, request.topic, handle)
    place = Place(queue.broker, handle.position)
    yield SentBack(group, queue._replace(queue_id=-1), place, _DEAD_LETTER, kept)
    yield Acked(group, queue, handle.receipt.offset, kept)


_READERS: Final[dict[int, Callable[[Kept, Any], Iterator[Fact]]]] = {
    RPC_CODES["AckMessage"]: _acked,
    RPC_CODES["ChangeInvisibleDuration"]: _returned,
    RPC_CODES["ForwardMessageToDeadLetterQueue"]: _given_up,
}
ACTS: Final = frozenset(_READERS)
"""Calls that count once they are answered."""


def _queue(kept: Kept, group: str, topic: messages.Resource, handle: ReceiptHandle) -> Queue:
    receipt = handle.receipt
    return Queue(kept.connection.broker or "", receipt.real_topic(topic.name, group), receipt.queue_id)


def _request(kept: Kept) -> Any:
    command = cast(Command, kept.request)
    return decode(_BY_CODE[command.code].request, bytes(command.body or b""))
