"""The texts of pop consumption: the receipt of a message, and the lists that say where the messages of a reply lie.

    receipt (POP_CK, extraInfo)   startOffset popTime invisibleTime reviveQueue retryFlag broker queue offset
    startOffsetInfo               retryFlag queue startOffset            joined by ;
    msgOffsetInfo                 retryFlag queue offset,offset,...      joined by ;
    orderCountInfo                retryFlag queue times, and retryFlag qo<queue>%<offset> times      joined by ;

The retry flag is 0 for the topic itself, 1 for its retry topic `%RETRY%group_topic`, 2 for the form with `+`. Revive
queue 999 marks an ordered pop. Mirrors `ExtraInfoUtil` and the pop half of `KeyBuilder`. The checkpoints and acks that
a broker stores are in `bodies/revive.py`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec

from ..errors import BodyError
from .topics import RETRY_PREFIX, is_retry_topic, pop_retry_topic

NO_RETRY: Final = "0"
RETRY_V1: Final = "1"
RETRY_V2: Final = "2"

ORDERED_REVIVE_QUEUE: Final = 999
"""The revive queue in receipts of an ordered pop, which has no checkpoint."""
_NUMBER: Final = re.compile("[+-]?[0-9]{1,19}", re.ASCII)
_LIMIT: Final = 1 << 63
_PARTS: Final = 8
_PARTS_IN_ACK: Final = 6

QueuePlace = tuple[str, int]
"""Retry flag and queue id: one of the queues that a pop reads."""
_Value = TypeVar("_Value")


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """What a pop says about one message it delivered; the consumer sends it back with its ack."""

    start_offset: int
    """The first offset that this pop took from the queue."""
    pop_time_ms: int
    invisible_time_ms: int
    revive_queue_id: int
    retry_flag: str
    broker_name: str
    queue_id: int
    offset: int

    @property
    def is_ordered(self) -> bool:
        return self.revive_queue_id == ORDERED_REVIVE_QUEUE

    @property
    def visible_again_ms(self) -> int:
        """When the broker delivers the message once more unless it is acknowledged."""
        return self.pop_time_ms + self.invisible_time_ms

    def real_topic(self, topic: str, group: str) -> str:
        """The topic that holds the message, for a consumer that popped `topic`. Raises BodyError."""
        return real_topic(topic, group, self.retry_flag)

    @property
    def head(self) -> str:
        """What the receipts of one queue in one pop begin with: all but the offset."""
        return (
            f"{self.start_offset} {self.pop_time_ms} {self.invisible_time_ms} {self.revive_queue_id} "
            f"{self.retry_flag} {self.broker_name} {self.queue_id} "
        )

    def __str__(self) -> str:
        return f"{self.head}{self.offset}"


def parse_receipt(text: str) -> Receipt:
    """A whole receipt, as a consumer keeps it. Raises BodyError."""
    parts = _parts(text, _PARTS)
    return _receipt(parts, _number(parts[6], text), _number(parts[7], text))


def parse_receipt_of_ack(text: str) -> Receipt:
    """A receipt as a broker reads it in an ack: six parts are enough, because the ack has fields of its own for queue
    and offset. They are -1 here. Raises BodyError."""
    return _receipt(_parts(text, _PARTS_IN_ACK), -1, -1)


def _receipt(parts: list[str], queue_id: int, offset: int) -> Receipt:
    start_offset, pop_time_ms, invisible_time_ms, revive_queue_id = (
        _number(part, " ".join(parts)) for part in parts[:4]
    )
    return Receipt(
        start_offset, pop_time_ms, invisible_time_ms, revive_queue_id, parts[4], parts[5], queue_id, offset
    )


def _parts(text: str, least: int) -> list[str]:
    parts = text.split(" ")
    if len(parts) < least or not parts[_PARTS_IN_ACK - 1]:
        raise BodyError(f"not a pop receipt (it needs {least} parts): {text[:80]!r}")
    return parts


def _number(part: str, text: str) -> int:
    value = int(part) if _NUMBER.fullmatch(part) else _LIMIT
    if not -_LIMIT <= value < _LIMIT:
        raise BodyError(f"not a pop receipt ({part[:40]!r} must be a whole number): {text[:80]!r}")
    return value


def retry_flag(topic: str) -> str:
    """The flag for a topic that a pop reads."""
    if not is_retry_topic(topic):
        return NO_RETRY
    return RETRY_V2 if "+" in topic else RETRY_V1


def real_topic(topic: str, group: str, flag: str | None) -> str:
    """The topic that a retry flag means, for a pop of `topic`. Raises BodyError for an unknown flag."""
    if flag == NO_RETRY:
        return topic
    if flag not in (RETRY_V1, RETRY_V2):
        raise BodyError(f"the retry flag must be 0, 1 or 2, got {flag!r}")
    return pop_retry_topic(topic, group, v2=flag == RETRY_V2)


def normal_topic(topic: str, group: str) -> str:
    """The topic whose retry topic this is; any other topic unchanged (official parseNormalTopic)."""
    for separator in "+_":
        prefix = f"{RETRY_PREFIX}{group}{separator}"
        if topic.startswith(prefix):
            return topic[len(prefix) :]
    return topic


def start_offset_text(topic: str, queue_id: int, start_offset: int) -> str:
    """One entry of startOffsetInfo."""
    return f"{retry_flag(topic)} {queue_id} {start_offset}"


def message_offsets_text(topic: str, queue_id: int, offsets: Sequence[int]) -> str:
    """One entry of msgOffsetInfo."""
    return f"{retry_flag(topic)} {queue_id} {','.join(map(str, offsets))}"


def parse_start_offsets(text: str) -> dict[QueuePlace, int]:
    """startOffsetInfo. Raises BodyError."""
    return _by_place(text, int)


def parse_message_offsets(text: str) -> dict[QueuePlace, list[int]]:
    """msgOffsetInfo. Raises BodyError."""
    return _by_place(text, lambda value: [int(offset) for offset in value.split(",")])


def _by_place(text: str, read: Callable[[str], _Value]) -> dict[QueuePlace, _Value]:
    try:
        entries = [entry.split(" ") for entry in text.split(";") if entry]
        return {(flag, int(queue_id)): read(value) for flag, queue_id, value in entries}
    except ValueError as error:
        raise BodyError(f"not a list of offsets of a pop: {text[:80]!r}") from error
