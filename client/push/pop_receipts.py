"""The texts of pop consumption: the receipt of each message, and what a reply says about where messages came from.

    POP_CK            ckQueueOffset popTime invisibleTime reviveQid retryFlag brokerName queueId msgQueueOffset
    startOffsetInfo   retryFlag queueId startOffset;...
    msgOffsetInfo     retryFlag queueId offset,offset,...;...

Separated by single blanks. retryFlag: 0 the topic itself, 1 its retry topic `%RETRY%group_topic`, 2 the one with `+`.
No I/O. Mirrors `ExtraInfoUtil` and `MQClientAPIImpl.processPopResponse`.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.topics import is_retry_topic, pop_retry_topic
from pocketmq.protocol.requests.pop import PopMessageReply

from ..values.message import MessageExt

NORMAL: Final = "0"
RETRY_V1: Final = "1"
RETRY_V2: Final = "2"
PARTS: Final = 8

_Place = tuple[str, int]
"""retryFlag and queue id."""
_Value = TypeVar("_Value")


class Receipt(msgspec.Struct, frozen=True):
    """POP_CK, taken apart. Times in ms."""

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_qid: int
    retry: str
    broker_name: str
    queue_id: int
    offset: int

    @property
    def ends_ms(self) -> int:
        """When the broker gives the message to somebody else."""
        return self.pop_time + self.invisible_time

    def real_topic(self, topic: str, group: str) -> str:
        """The topic the message lies in, which is asked for by the name of `topic`."""
        if self.retry == NORMAL:
            return topic
        return pop_retry_topic(topic, group, v2=self.retry == RETRY_V2)

    def __str__(self) -> str:
        return " ".join(
            str(part)
            for part in (
                *(self.start_offset, self.pop_time, self.invisible_time, self.revive_qid, self.retry),
                *(self.broker_name, self.queue_id, self.offset),
            )
        )


def read_receipt(text: str) -> Receipt:
    """A POP_CK. BodyError for a text that is none."""
    parts = text.split(" ")
    if len(parts) < PARTS:
        raise BodyError(f"not a pop receipt: {text[:80]!r}")
    try:
        start, pop_time, invisible_time, revive_qid = map(int, parts[:4])
        queue_id, offset = map(int, parts[6:8])
    except ValueError as error:
        raise BodyError(f"not a pop receipt: {text[:80]!r}") from error
    return Receipt(start, pop_time, invisible_time, revive_qid, parts[4], parts[5], queue_id, offset)


def give_receipts(
    messages: Sequence[MessageExt], reply: PopMessageReply, *, topic: str, broker_name: str
) -> None:
    """Each message of a pop gets its POP_CK and 1ST_POP_TIME, and the name of the topic that was asked for.

    BodyError where the reply does not say where a message came from.
    """
    starts = _start_offsets(reply.start_offset_info) if reply.start_offset_info else None
    offsets = _message_offsets(reply.msg_offset_info or "")
    in_order: dict[_Place, list[int]] = {}
    for message in messages:
        in_order.setdefault(_place(message), []).append(message.queue_offset)
    oldest: dict[_Place, int] = {}
    for message in messages:
        properties, place = message.properties, _place(message)
        if names.POP_CK not in properties:
            if (
                starts is None
            ):  # brokers before 5.0 in their preview: the first message's offset begins the span
                start, offset = oldest.setdefault(place, message.queue_offset), message.queue_offset
            else:
                start, offset = _found(starts, offsets, in_order, message, place)
            receipt = Receipt(
                start,
                reply.pop_time,
                reply.invisible_time,
                reply.revive_qid,
                place[0],
                broker_name,
                message.queue_id,
                offset,
            )
            properties[names.POP_CK] = str(receipt)
        properties.setdefault(names.FIRST_POP_TIME, str(reply.pop_time))
        message.broker_name = broker_name
        message.topic = topic


def receipt_of(message: MessageExt) -> Receipt:
    """Of a popped message. BodyError for any other."""
    return read_receipt(message.properties.get(names.POP_CK, ""))


def _place(message: MessageExt) -> _Place:
    topic = message.record.topic
    if not is_retry_topic(topic):
        return NORMAL, message.queue_id
    return RETRY_V2 if "+" in topic else RETRY_V1, message.queue_id


def _found(
    starts: dict[_Place, int],
    offsets: dict[_Place, list[int]],
    in_order: dict[_Place, list[int]],
    message: MessageExt,
    place: _Place,
) -> tuple[int, int]:
    """Start offset of the span and the message's own, which the reply names in the order of the messages."""
    index = in_order[place].index(message.queue_offset)
    told = offsets.get(place, [])
    if place not in starts or index >= len(told):
        raise BodyError(f"the reply to a pop says nothing of {message.record.topic} queue {message.queue_id}")
    return starts[place], told[index]


def _start_offsets(text: str) -> dict[_Place, int]:
    return _by_place(text, int)


def _message_offsets(text: str) -> dict[_Place, list[int]]:
    return _by_place(text, lambda value: [int(one) for one in value.split(",")])


def _by_place(text: str, read: Callable[[str], _Value]) -> dict[_Place, _Value]:
    """What `retry queueId value;...` says of each place. BodyError where it cannot be read."""
    try:
        entries = [entry.split(" ") for entry in text.split(";") if entry]
        return {(retry, int(queue_id)): read(value) for retry, queue_id, value in entries}
    except ValueError as error:
        raise BodyError(f"offsets of a pop: {text[:80]!r}") from error
