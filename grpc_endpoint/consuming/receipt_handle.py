"""The receipt handle: what a client sends back to acknowledge or hide a message that it received.

    startOffset popTime invisibleTime reviveQueue topicType broker queue offset position

Nine fields with blanks between. The first eight are the pop receipt (`protocol/message/pop_receipt.py`); the ninth is
the position of the record in the commit log, by which a dead letter is copied. Times are in ms. Mirrors
`ReceiptHandle`.
"""

from typing import Final

import msgspec
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.pop_receipt import NO_RETRY, RETRY_V1, RETRY_V2, Receipt, parse_receipt

from ..calls.handler import RpcRefused
from ..messages import Code

NO_POSITION: Final = -1
_RETRY_FLAGS: Final = (NO_RETRY, RETRY_V1, RETRY_V2)
_POSITION_AT: Final = 8
_LEAST_FIELDS: Final = 8
_FIELDS: Final = 9
_END: Final = 1 << 63
_LONGEST_NUMBER: Final = 20
LONGEST_HANDLE: Final = 512
"""Nine fields, of which the broker's name has at most 255 characters."""


class ReceiptHandle(msgspec.Struct, frozen=True, gc=False):
    """One delivery of one message."""

    receipt: Receipt
    position: int = NO_POSITION
    """Where the record is in the commit log; `NO_POSITION` if the client's handle does not say it."""
    tail: str = ""
    """What follows the position: only the official proxy's handle of a changed message has it."""

    def __str__(self) -> str:
        return f"{self.receipt} {self.position}{self.tail}"

    def is_expired(self, now_ms: int) -> bool:
        """Whether the message may have been delivered again since."""
        return self.receipt.visible_again_ms <= now_ms

    def changed(self, pop_time_ms: int, invisible_time_ms: int, *, is_strict: bool) -> "ReceiptHandle":
        """The handle after the invisible time was changed. The message has a checkpoint of its own now, which starts
        with it; an orderly one keeps its pop.

        The official proxy in LOCAL mode keeps the start offset of the receive: an ack of a message that was not the
        first one is answered, finds no checkpoint, and the message is delivered again. And it writes 0 as the position,
        and the old position behind it: a dead letter is then a copy of whichever record begins the log. Only a strict
        endpoint does the same.
        """
        receipt = msgspec.structs.replace(
            self.receipt, pop_time_ms=pop_time_ms, invisible_time_ms=invisible_time_ms
        )
        if is_strict:
            return ReceiptHandle(receipt, 0, f" {self.position}")
        if not receipt.is_ordered:
            receipt = msgspec.structs.replace(receipt, start_offset=receipt.offset)
        return ReceiptHandle(receipt, self.position)


def parse_handle(text: str) -> ReceiptHandle:
    """The handle of a request. Raises `RpcRefused` with INTERNAL_SERVER_ERROR, the code of the official proxy."""
    if len(text) > LONGEST_HANDLE:
        raise _not_a_handle(
            f"a receipt handle of {len(text)} characters, at most {LONGEST_HANDLE} are allowed"
        )
    parts = text.split(" ")
    if len(parts) == _FIELDS and (handle := _ordinary(text, parts)) is not None:
        return handle
    if len(parts) < _LEAST_FIELDS:
        raise _not_a_handle(f"Parse failed, dataList size {len(parts)}. A receipt handle has nine fields")
    try:
        receipt = parse_receipt(text)
    except BodyError as error:
        raise _not_a_handle(str(error)) from error
    if receipt.retry_flag not in _RETRY_FLAGS:
        raise _not_a_handle(f"the topic type must be 0, 1 or 2, got {receipt.retry_flag[:40]!r}")
    if len(parts) == _LEAST_FIELDS:
        return ReceiptHandle(receipt)
    position = parts[_POSITION_AT]
    if not (position.removeprefix("-").isdecimal() and position.isascii()) or len(position) > _LONGEST_NUMBER:
        raise _not_a_handle(f"the ninth field must be a position in the commit log, got {position[:40]!r}")
    return ReceiptHandle(receipt, int(position))


def _ordinary(text: str, parts: list[str]) -> ReceiptHandle | None:
    """The handle, if nothing needs a closer look: nearly always."""
    start, popped, invisible, revive_queue, retry_flag, broker_name, queue, offset, position = parts
    digits = start + popped + invisible + revive_queue + queue + offset + position
    if not (digits.isdecimal() and text.isascii() and broker_name and retry_flag in _RETRY_FLAGS):
        return None
    try:
        numbers = int(start), int(popped), int(invisible), int(revive_queue), int(queue), int(offset)
        at = int(position)
    except ValueError:  # an empty field
        return None
    if max(numbers) >= _END or len(position) > _LONGEST_NUMBER:
        return None
    receipt = Receipt(*numbers[:4], retry_flag, broker_name, *numbers[4:])
    return ReceiptHandle(receipt, at)


def _not_a_handle(text: str) -> RpcRefused:
    return RpcRefused(Code.INTERNAL_SERVER_ERROR, text)
