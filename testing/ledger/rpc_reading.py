"""Facts from the calls of gRPC consumers: receives, acknowledgements, changed invisible times, dead letters.

A handle says where a received message lies: the queue, the offset and the position of its record. Loaded with the first
such call (`reading.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
from .facts import Acked, Delivery, Fact, Place, Queue, SentBack

RECEIVE: Final = RPC_NUMBERS["ReceiveMessage"]
ACK: Final = RPC_NUMBERS["AckMessage"]
_ACKNOWLEDGED: Final = "acknowledged"
_BY_CODE: Final = {RPC_NUMBERS[name]: rpc for name, rpc in BY_NAME.items()}
_DEAD_LETTER: Final = -1
"""The delay level by which remoting clients ask for a dead letter."""


def delivered(kept: LogEntry, body: bytes, notes: Mapping[str, str]) -> list[Fact]:
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


def subscribed(kept: LogEntry) -> tuple[str, str, tuple[str, str]] | None:
    """Topic, group, and the (type, expression) of a receive."""
    if cast(Command, kept.request).code != RECEIVE:
        return None
    request = _request(kept)
    filter_ = request.filter_expression
    kind = SQL92 if filter_.type == messages.FilterType.SQL else TAG
    return request.message_queue.topic.name, request.group.name, (kind, filter_.expression or "*")


def effects(command: Command, reply: Command, body: bytes) -> dict[str, str] | None:
    """What the reply says of what was done: handles by their kind. `None` if the call did nothing to messages."""
    if command.code == RECEIVE:
        fields = reply.fields or {}
        return {name: fields[name] for name in (FILTERED, GIVEN_UP) if name in fields} or None
    if reply.code == 0:
        return {}
    if command.code != ACK or reply.code != messages.Code.MULTIPLE_RESULTS:
        return None
    entries = messages.AckMessageResponse.FromString(body).entries
    handles = [one.receipt_handle for one in entries if one.status.code == messages.Code.OK]
    return {_ACKNOWLEDGED: HANDLES_END.join(handles)}


def finished(kept: LogEntry, done: Mapping[str, str]) -> list[Fact]:
    """What a call that reached the broker did to messages. `done` is what `effects` found."""
    read = _READERS.get(cast(Command, kept.request).code)
    try:
        return [] if read is None else list(read(kept, _request(kept), done))
    except (MalformedMessage, RpcRefused, ProtocolError):
        return []


def _acked(kept: LogEntry, request: messages.AckMessageRequest, done: Mapping[str, str]) -> Iterator[Fact]:
    handles: Iterable[str] = (entry.receipt_handle for entry in request.entries)
    if _ACKNOWLEDGED in done:
        handles = _handles(done, _ACKNOWLEDGED)
    for handle in handles:
        yield _settled(kept, request.group, request.topic, handle)


def _consumed(
    kept: LogEntry, request: messages.ReceiveMessageRequest, done: Mapping[str, str]
) -> Iterator[Fact]:
    """Messages that the server consumed instead of delivering them."""
    for name in (GIVEN_UP, FILTERED):
        for handle in _handles(done, name):
            acked = _settled(kept, request.group, request.message_queue.topic, handle)
            yield msgspec.structs.replace(acked, is_filtered=name == FILTERED, is_given_up=name == GIVEN_UP)


def _returned(
    kept: LogEntry, request: messages.ChangeInvisibleDurationRequest, done: Mapping[str, str]
) -> Iterator[Fact]:
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


def _handles(done: Mapping[str, str], name: str) -> list[str]:
    return done[name].split(HANDLES_END) if done.get(name) else []


def _given_up(
    kept: LogEntry, request: messages.ForwardMessageToDeadLetterQueueRequest, done: Mapping[str, str]
) -> Iterator[Fact]:
    handle, group = parse_handle(request.receipt_handle), request.group.name
    queue = _queue(kept, group, request.topic, handle)
    place = Place(queue.broker, handle.position)
    yield SentBack(group, queue._replace(queue_id=-1), place, _DEAD_LETTER, kept)
    yield Acked(group, queue, handle.receipt.offset, kept)


_READERS: Final[dict[int, Callable[[LogEntry, Any, Mapping[str, str]], Iterator[Fact]]]] = {
    RECEIVE: _consumed,
    ACK: _acked,
    RPC_NUMBERS["ChangeInvisibleDuration"]: _returned,
    RPC_NUMBERS["ForwardMessageToDeadLetterQueue"]: _given_up,
}
ACTS: Final = frozenset(_READERS)
"""Calls that may have done something once they are answered."""


def _queue(kept: LogEntry, group: str, topic: messages.Resource, handle: ReceiptHandle) -> Queue:
    receipt = handle.receipt
    return Queue(kept.connection.broker or "", receipt.real_topic(topic.name, group), receipt.queue_id)


def _request(kept: LogEntry) -> Any:
    command = cast(Command, kept.request)
    return decode(_BY_CODE[command.code].request, bytes(command.body or b""))
