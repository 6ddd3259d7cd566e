"""The rule that decides where a consumer starts in a queue; the questions it needs are asked elsewhere.

The caller (`held_queues.py`) reads the stored offset, applies the rule, and asks the broker if the rule says so:

    stored offset   LAST (and the three        FIRST    TIMESTAMP
                    deprecated values)
    n >= 0          n                          n        n
    -1 none         max; 0 of a retry topic    0        search(time); max of a retry topic
    -2 failed, -3   FirstPositionUnknown       same     same

4.9 clients differ in two points: any answer but success counts as -1, so that an error of the broker moves a group to
the end; and -2 gives -1, which an ordered consumer uses as a position. FIRST is the constant 0: the broker corrects
it to the queue's minimum (`pulling/queue_loop.py`). The broker decides too: a new group reads a young queue from 0,
whatever the setting says (`broker/first_position/`).
Official class: RebalancePushImpl.computePullFromWhereWithException.
"""

from typing import Final, TypeAlias

import msgspec
from pocketmq.protocol.bodies.client import ConsumeFromWhere
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import FirstPositionUnknown
from ..offsets.offset_store import NO_OFFSET
from ..settings.timestamps import parse_timestamp

_FROM_LAST: Final = frozenset(
    {
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST,
        ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET,
        ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET,
    }
)


class UseOffset(msgspec.Struct, frozen=True):
    """Start here."""

    offset: int


class AskMaxOffset(msgspec.Struct, frozen=True):
    """Ask the master for the maximum offset and start there (after `checked_position`)."""


class SearchOffset(msgspec.Struct, frozen=True):
    """Ask the master for the offset at a time and start there (after `checked_position`)."""

    timestamp_ms: int


FirstPosition: TypeAlias = UseOffset | AskMaxOffset | SearchOffset


def compute_pull_from_where(
    where: ConsumeFromWhere, stored_offset: int, topic: str, consume_timestamp: str
) -> FirstPosition:
    """The start of a push consumer. Raises FirstPositionUnknown if the stored offset could not be read.

    `stored_offset` is the result of reading the store: an offset, NO_OFFSET or OFFSET_UNREADABLE. A lite pull
    consumer decides alike, from memory first; a failure gives it -1 instead of an exception.
    """
    if stored_offset >= 0:
        return UseOffset(stored_offset)
    if stored_offset != NO_OFFSET:
        consume = "consume " if where in _FROM_LAST else ""
        raise FirstPositionUnknown(
            ResponseCode.QUERY_NOT_FOUND, f"Failed to query {consume}offset from offset store"
        )
    if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
        return UseOffset(0)
    if where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
        return AskMaxOffset() if is_retry_topic(topic) else SearchOffset(parse_timestamp(consume_timestamp))
    return UseOffset(0) if is_retry_topic(topic) else AskMaxOffset()


def checked_position(offset: int) -> int:
    """A position the broker gave, or FirstPositionUnknown for a negative one."""
    if offset < 0:
        raise FirstPositionUnknown(ResponseCode.SYSTEM_ERROR, f"Found unexpected result {offset}")
    return offset


def pop_init_mode(where: ConsumeFromWhere) -> int:
    """Where a pop consumer of a new group starts: 0 minimum, 1 maximum (official getConsumeInitMode)."""
    return 0 if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET else 1
