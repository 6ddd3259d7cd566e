"""Facts from the calls of gRPC consumers: receives, acknowledgements, changed invisible times, dead letters.

A handle says where a received message lies: the queue, the offset and the position of its record. Loaded with the first
such call (`reading.py`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

import msgspec
from google.protobuf.message import DecodeError
from pocketmq.grpc_endpoint import messages
from pocketmq.grpc_endpoint.calls.handler import RpcRefused
from pocketmq.grpc_endpoint.calls.watching import messages_of
from pocketmq.grpc_endpoint.consuming.receipt_handle import ReceiptHandle, parse_handle
from pocketmq.grpc_endpoint.consuming.receiving import FILTERED, GIVEN_UP, HANDLES_END
from pocketmq.grpc_endpoint.messages.decoding import MalformedMessage, decode
from pocketmq.grpc_endpoint.messages.service import BY_NAME
from pocketmq.protocol.bodies.client import SQL92, TAG
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS
from pocketmq.protocol.wire.command import Command

from ..requests.logged_request import LogEntry
from .facts import ACK, GIVE_UP, HIDE, RECEIVE, Acked, Delivery, Fact, Place, Queue, SentBack

_BY_CODE: Final = {RPC_NUMBERS[name]: rpc for name, rpc in BY_NAME.items()}
_DEAD_LETTER: Final = -1
"""The delay level by which remoting clients ask for a dead letter."""


def delivered(kept: LogEntry, body: bytes) -> list[Fact]:
    """The messages of a receive. A reply that a fault made unreadable delivers nothing."""
    request, rpc = _request(kept), _BY_CODE[cast(Command, kept.request).code]
    try:
        replies: list[Any] = [rpc.reply.FromString(one) for one in messages_of(rpc, body)]
        found = [one.message for one in replies if one.HasField("message")]
        return [_received_message(kept, request.group.name, one) for one in found]
    except (DecodeError, MalformedMessage, RpcRefused, ProtocolError, ValueError):
        return []


def _received_message(kept: LogEntry, group: str, message: messages.Message) -> Delivery:
    properties = message.system_properties
    handle = parse_handle(properties.receipt_handle)
    queue = _queue(kept, group, message.topic, handle)
    return Delivery(
        group=group,
        queue=queue,
        offset=handle.receipt.offset,
        place=Place(queue.broker, handle.position),
        message_id=properties.message_id,
        sharding_key=properties.message_group if properties.HasField("message_group") else None,
        store_timestamp=messages.ms_of(properties.store_timestamp),
        is_retry=properties.delivery_attempt > 1 or is_retry_topic(queue.topic),
        request=kept,
        popped_ms=handle.receipt.pop_time_ms,
        visible_again_ms=handle.receipt.visible_again_ms,
    )


def subscribed(kept: LogEntry) -> tuple[str, str, tuple[str, str]]:
    """Topic, group, and the (type, expression) of a receive."""
    request = _request(kept)
    filter_ = request.filter_expression
    kind = SQL92 if filter_.type == messages.FilterType.SQL else TAG
    return request.message_queue.topic.name, request.group.name, (kind, filter_.expression or "*")


def done_by_rpc(kept: LogEntry, reply: Command | None, body: bytes) -> list[Fact]:
    """What a call that was answered did to messages."""
    read = _READERS.get(cast(Command, kept.request).code)
    try:
        return [] if read is None or reply is None else list(read(kept, _request(kept), reply, body))
    except (DecodeError, MalformedMessage, RpcRefused, ProtocolError):
        return []


def _acked(
    kept: LogEntry, request: messages.AckMessageRequest, reply: Command, body: bytes
) -> Iterator[Fact]:
    entries: Iterable[Any] = request.entries if reply.code == 0 else ()
    if reply.code == messages.Code.MULTIPLE_RESULTS:
        answered = messages.AckMessageResponse.FromString(body).entries
        entries = [one for one in answered if one.status.code == messages.Code.OK]
    for entry in entries:
        yield _settled(kept, request.group, request.topic, entry.receipt_handle)


def _consumed(
    kept: LogEntry, request: messages.ReceiveMessageRequest, reply: Command, body: bytes
) -> Iterator[Fact]:
    """Messages that the server consumed instead of delivering them."""
    for name in (GIVEN_UP, FILTERED):
        handles = (reply.fields or {}).get(name, "")
        for handle in handles.split(HANDLES_END) if handles else ():
            acked = _settled(kept, request.group, request.message_queue.topic, handle)
            yield msgspec.structs.replace(acked, is_filtered=name == FILTERED, is_given_up=name == GIVEN_UP)


def _returned(
    kept: LogEntry, request: messages.ChangeInvisibleDurationRequest, reply: Command, body: bytes
) -> Iterator[Fact]:
    if reply.code == 0:
        yield _settled(kept, request.group, request.topic, request.receipt_handle, is_returned=True)


def _settled(
    kept: LogEntry,
    group: messages.Resource,
    topic: messages.Resource,
    handle_text: str,
    *,
    is_returned: bool = False,
) -> Acked:
    handle = parse_handle(handle_text)
    queue = _queue(kept, group.name, topic, handle)
    return Acked(group.name, queue, handle.receipt.offset, kept, is_returned)


def _given_up(
    kept: LogEntry, request: messages.ForwardMessageToDeadLetterQueueRequest, reply: Command, body: bytes
) -> Iterator[Fact]:
    if reply.code:
        return
    handle, group = parse_handle(request.receipt_handle), request.group.name
    queue = _queue(kept, group, request.topic, handle)
    place = Place(queue.broker, handle.position)
    yield SentBack(group, queue._replace(queue_id=-1), place, _DEAD_LETTER, kept)
    yield Acked(group, queue, handle.receipt.offset, kept)


_READERS: Final[dict[int, Callable[[LogEntry, Any, Command, bytes], Iterator[Fact]]]] = {
    RECEIVE: _consumed,
    ACK: _acked,
    HIDE: _returned,
    GIVE_UP: _given_up,
}


def _queue(kept: LogEntry, group: str, topic: messages.Resource, handle: ReceiptHandle) -> Queue:
    receipt = handle.receipt
    return Queue(kept.connection.broker or "", receipt.real_topic(topic.name, group), receipt.queue_id)


def _request(kept: LogEntry) -> Any:
    command = cast(Command, kept.request)
    return decode(_BY_CODE[command.code].request, bytes(command.body or b""))
