"""The texts of pop: receipts, and where the messages of one answer came from.

    receipt (POP_CK, extraInfo)   startOffset popTime invisibleTime reviveQueue retry broker queue offset
    startOffsetInfo               retry queue startOffset            joined by ;
    msgOffsetInfo                 retry queue offset,offset,...      joined by ;
    orderCountInfo                retry queue times, and retry qo<queue>%<offset> times      joined by ;

`retry` is 0 for the topic itself, 1 and 2 for its retry topics of the two forms. Revive queue 999 says that the pop was
in order. Mirrors `ExtraInfoUtil` and the pop half of `KeyBuilder`. The bodies that keep track of what is out are in
`bodies/revive.py`, the next to read.
"""

import re
from typing import Final

import msgspec

from ..errors import BodyError
from .topics import RETRY_PREFIX, is_retry_topic, pop_retry_topic

ORDER_REVIVE_QUEUE: Final = 999
"""Stands for a revive queue in receipts of messages popped in order, which have no checkpoint."""
_NUMBER: Final = re.compile("[+-]?[0-9]{1,19}", re.ASCII)
_LIMIT: Final = 1 << 63


class Receipt(msgspec.Struct, frozen=True):
    """What an ack or a change says about the pop that handed a message out."""

    start_offset: int
    pop_time_ms: int
    invisible_time_ms: int
    revive_queue_id: int
    broker_name: str

    @property
    def is_ordered(self) -> bool:
        return self.revive_queue_id == ORDER_REVIVE_QUEUE


def parse_receipt(text: str) -> Receipt:
    """The first six parts of a receipt. Raises BodyError."""
    parts = text.split(" ")
    if len(parts) < 6 or not parts[5]:
        raise BodyError(f"extraInfo {text[:80]!r} has {len(parts)} parts")
    numbers = [_number(part) for part in parts[:4]]
    return Receipt(numbers[0], numbers[1], numbers[2], numbers[3], parts[5])


def _number(text: str) -> int:
    value = int(text) if _NUMBER.fullmatch(text) else _LIMIT
    if not -_LIMIT <= value < _LIMIT:
        raise BodyError(f"extraInfo: {text[:40]!r} is no number")
    return value


def retry_flag(topic: str) -> str:
    """Which of a topic's three forms this is."""
    if not is_retry_topic(topic):
        return "0"
    return "2" if "+" in topic else "1"


def real_topic(topic: str, group: str, flag: str | None) -> str:
    """The topic the messages of an ack stand in. Raises BodyError for an unknown flag."""
    if flag == "0":
        return topic
    if flag not in ("1", "2"):
        raise BodyError(f"the retry flag {flag!r} is none of 0, 1, 2")
    return pop_retry_topic(topic, group, v2=flag == "2")


def normal_topic(topic: str, group: str) -> str:
    """The topic whose retry topic this is; any other topic unchanged (official parseNormalTopic)."""
    for separator in "+_":
        prefix = f"{RETRY_PREFIX}{group}{separator}"
        if topic.startswith(prefix):
            return topic[len(prefix) :]
    return topic


def receipt_text(
    start_offset: int,
    pop_time_ms: int,
    invisible_time_ms: int,
    revive_queue_id: int,
    topic: str,
    broker_name: str,
    queue_id: int,
    offset: int,
) -> str:
    return (
        f"{start_offset} {pop_time_ms} {invisible_time_ms} {revive_queue_id} {retry_flag(topic)} "
        f"{broker_name} {queue_id} {offset}"
    )
