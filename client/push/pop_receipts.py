"""Gives each popped message its receipt (POP_CK), from what the reply says about where the messages lie.

The texts themselves are read and written by `pocketmq.protocol.message.pop_receipt`. No I/O. Mirrors
`MQClientAPIImpl.processPopResponse`.
"""

from collections.abc import Sequence

from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.pop_receipt import (
    QueuePlace,
    Receipt,
    parse_message_offsets,
    parse_receipt,
    parse_start_offsets,
    retry_flag,
)
from pocketmq.protocol.requests.pop import PopMessageReply

from ..values.message import MessageExt


def attach_receipts(
    messages: Sequence[MessageExt], reply: PopMessageReply, *, topic: str, broker_name: str
) -> None:
    """Each message of a pop gets its POP_CK and 1ST_POP_TIME, and the name of the topic that was asked for.

    BodyError if the reply does not say where a message came from.
    """
    starts = parse_start_offsets(reply.start_offset_info) if reply.start_offset_info else None
    offsets = parse_message_offsets(reply.msg_offset_info or "")
    in_order: dict[QueuePlace, list[int]] = {}
    for message in messages:
        in_order.setdefault(_place(message), []).append(message.queue_offset)
    oldest: dict[QueuePlace, int] = {}
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
    return parse_receipt(message.properties.get(names.POP_CK, ""))


def _place(message: MessageExt) -> QueuePlace:
    return retry_flag(message.record.topic), message.queue_id


def _found(
    starts: dict[QueuePlace, int],
    offsets: dict[QueuePlace, list[int]],
    in_order: dict[QueuePlace, list[int]],
    message: MessageExt,
    place: QueuePlace,
) -> tuple[int, int]:
    """Start offset of the span and the message's own, which the reply names in the order of the messages."""
    index = in_order[place].index(message.queue_offset)
    listed = offsets.get(place, [])
    if place not in starts or index >= len(listed):
        raise BodyError(f"the reply to a pop says nothing of {message.record.topic} queue {message.queue_id}")
    return starts[place], listed[index]
