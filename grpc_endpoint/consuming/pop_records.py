"""The records of a pop's answer, each with its receipt handle.

The answer lists queues and offsets in the order of its records; so the two lists are read side by side. Mirrors
`MQClientAPIImpl.processPopResponse`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pocketmq.broker.network.dispatch import Answer
from pocketmq.protocol.message.pop_receipt import NO_RETRY, Receipt
from pocketmq.protocol.message.record import Record, decode_records
from pocketmq.protocol.requests.pop import PopMessageReply

from .receipt_handle import ReceiptHandle


class PoppedRecord(NamedTuple):
    """One delivered record."""

    record: Record
    handle: ReceiptHandle
    handle_text: str
    """`str(handle)`, made in fewer steps."""
    reconsume_times: int
    """How often the message was delivered before. In order: the smallest number of all messages of its queue, as in
    the official proxy."""


def popped_records(answer: Answer, broker_name: str) -> Iterator[PoppedRecord]:
    """The records of an answer with code 0, in the order in which the queues were read."""
    reply, body = answer.reply, answer.body
    if not isinstance(reply, PopMessageReply) or body is None:
        return
    parts = [body] if isinstance(body, bytes | memoryview) else body
    records = (record for part in parts for record in decode_records(part))
    counts = _order_counts(reply.order_count_info)
    for start, offsets in _places(reply):
        flag, queue_id, start_offset = start
        pop_time_ms, invisible_ms, revive_queue_id = reply.pop_time, reply.invisible_time, reply.revive_qid
        place = flag, broker_name, queue_id
        counted = counts.get(queue_id) if flag == NO_RETRY else None
        head = ""
        for offset in offsets:
            record = next(records)
            receipt = Receipt(start_offset, pop_time_ms, invisible_ms, revive_queue_id, *place, offset)
            head = head or receipt.head
            position = record.position
            yield PoppedRecord(
                record,
                ReceiptHandle(receipt, position),
                f"{head}{offset} {position}",
                record.reconsume_times if counted is None else counted,
            )


def _places(reply: PopMessageReply) -> Iterator[tuple[tuple[str, int, int], Sequence[int]]]:
    starts = (reply.start_offset_info or "").split(";")
    lists = (reply.msg_offset_info or "").split(";")
    for start, listed in zip(starts, lists, strict=True):
        flag, queue_id, start_offset = start.split(" ")
        offsets = listed.rpartition(" ")[2]
        yield (flag, int(queue_id), int(start_offset)), [int(offset) for offset in offsets.split(",")]


def _order_counts(text: str | None) -> dict[int, int]:
    """By queue; the counts of single messages (`qo<queue>%<offset>`) are left out."""
    if not text:
        return {}
    entries = (entry.split(" ") for entry in text.split(";"))
    return {int(place): int(times) for _, place, times in entries if place.isdecimal() and int(times) > 0}
