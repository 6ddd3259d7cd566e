"""Facts from a request that was handled, or from the answer that its peer got.

The values of a request that the broker refuses may be anything: those give no fact.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, cast

from pocketmq.protocol.bodies.pop import BatchAck, BatchAckMessageRequestBody
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.offset_id import encode_message_id
from pocketmq.protocol.message.pop_receipt import parse_receipt_of_ack, real_topic
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record, decode_records
from pocketmq.protocol.requests.offset import UpdateConsumerOffset
from pocketmq.protocol.requests.pop import AckMessage, BatchAckMessage, ChangeMessageInvisibleTime, PopMessage
from pocketmq.protocol.requests.pull import LitePullMessage, PullMessage
from pocketmq.protocol.requests.send import ConsumerSendMsgBack
from pocketmq.protocol.rpc_numbers import FIRST_RPC
from pocketmq.protocol.wire.command import Command

from ..requests.logged_request import LogEntry
from .facts import RECEIVE, Acked, Committed, Delivery, Fact, Place, Pulled, Queue, SentBack

PULLS: Final = frozenset((PullMessage.code, LitePullMessage.code))
POPS: Final = frozenset((PopMessage.code,))
READS: Final = PULLS | POPS | {RECEIVE}
_COMMITS: Final = 1
"""The bit of a pull's sysFlag that says it commits an offset."""


def deliveries(kept: LogEntry, body: bytes, reply_fields: Mapping[str, str]) -> list[Fact]:
    """The messages of an answer. An answer that a fault made unreadable delivers nothing."""
    if _code(kept) >= FIRST_RPC:
        from .rpc_reading import delivered

        return delivered(kept, body)
    group = _fields(kept).get("consumerGroup", "")
    popped = again = None
    found: list[Fact] = []
    try:
        if _code(kept) in POPS:
            popped = int(reply_fields.get("popTime", 0))
            again = popped + int(reply_fields.get("invisibleTime", 0))
        found += [_delivery(group, kept, record, popped, again) for record in decode_records(body)]
    except (ProtocolError, ValueError):
        pass
    return found


def message_id_of(record: Record, properties: Mapping[str, str]) -> str:
    """The id that the producer gave it; the broker's own, if it gave none."""
    return properties.get(names.UNIQ_KEY) or encode_message_id(record.store_host, record.position)


def _delivery(group: str, kept: LogEntry, record: Record, popped: int | None, again: int | None) -> Delivery:
    properties = decode_properties(record.properties)
    broker = _broker(kept)
    return Delivery(
        group=group,
        queue=Queue(broker, record.topic, record.queue_id),
        offset=record.queue_offset,
        place=Place(broker, record.position),
        message_id=message_id_of(record, properties),
        sharding_key=properties.get(names.SHARDING_KEY),
        store_timestamp=record.store_timestamp,
        is_retry=record.reconsume_times > 0 or names.RETRY_TOPIC in properties,
        request=kept,
        popped_ms=popped,
        visible_again_ms=again,
    )


def done(kept: LogEntry, reply: Command | None, body: bytes) -> list[Fact]:
    """What a request that reached the broker did; with its reply, if it counts once it is done."""
    if _code(kept) >= FIRST_RPC:
        from .rpc_reading import done_by_rpc

        return done_by_rpc(kept, reply, body)
    read = _READERS.get(_code(kept))
    try:
        return [] if read is None else list(read(kept, _fields(kept)))
    except (ProtocolError, ValueError, KeyError):
        return []


def _pulled(kept: LogEntry, fields: Mapping[str, str]) -> Iterator[Fact]:
    group, queue = fields["consumerGroup"], _queue(kept, fields)
    yield Pulled(group, queue, int(fields["queueOffset"]), kept)
    if int(fields["sysFlag"]) & _COMMITS:
        yield Committed(group, queue, int(fields["commitOffset"]), kept)


def _committed(kept: LogEntry, fields: Mapping[str, str]) -> Iterator[Fact]:
    yield Committed(fields["consumerGroup"], _queue(kept, fields), int(fields["commitOffset"]), kept)


def _acked(kept: LogEntry, fields: Mapping[str, str], *, is_returned: bool = False) -> Iterator[Fact]:
    group, queue = fields["consumerGroup"], _queue(kept, fields)
    flag = parse_receipt_of_ack(fields["extraInfo"]).retry_flag
    queue = queue._replace(topic=real_topic(queue.topic, group, flag))
    yield Acked(group, queue, int(fields["offset"]), kept, is_returned)


def _batch_acked(kept: LogEntry, fields: Mapping[str, str]) -> Iterator[Fact]:
    body = cast(Command, kept.request).body
    for ack in BatchAckMessageRequestBody.decode(body).acks or ():
        yield from _acked_of(kept, ack)


def _acked_of(kept: LogEntry, ack: BatchAck) -> Iterator[Fact]:
    group = ack.consumer_group or ""
    topic = real_topic(ack.topic or "", group, ack.retry)
    for offset in ack.offsets():
        yield Acked(group, Queue(_broker(kept), topic, ack.queue_id), offset, kept)


def _sent_back(kept: LogEntry, fields: Mapping[str, str]) -> Iterator[Fact]:
    broker = _broker(kept)
    queue = Queue(broker, fields.get("originTopic", ""), -1)
    place = Place(broker, int(fields["offset"]))
    yield SentBack(fields["group"], queue, place, int(fields["delayLevel"]), kept)


_READERS: Final[dict[int, Callable[[LogEntry, Mapping[str, str]], Iterator[Fact]]]] = {
    **dict.fromkeys(PULLS, _pulled),
    UpdateConsumerOffset.code: _committed,
    AckMessage.code: _acked,
    BatchAckMessage.code: _batch_acked,
    ChangeMessageInvisibleTime.code: partial(_acked, is_returned=True),
    ConsumerSendMsgBack.code: _sent_back,
}


def _code(kept: LogEntry) -> int:
    return cast(Command, kept.request).code


def _fields(kept: LogEntry) -> Mapping[str, str]:
    return cast(Command, kept.request).fields or {}


def _broker(kept: LogEntry) -> str:
    return kept.connection.broker or ""


def _queue(kept: LogEntry, fields: Mapping[str, str]) -> Queue:
    return Queue(_broker(kept), fields["topic"], int(fields["queueId"]))
