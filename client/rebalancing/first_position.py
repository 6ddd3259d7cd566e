"""Where a consumer starts in a queue nobody told it about: the decision, without the questions it needs.

The caller reads the stored offset, asks here, and asks the broker where the answer says so:

    stored offset   LAST (and the three        FIRST    TIMESTAMP
                    deprecated values)
    n >= 0          n                          n        n
    -1 none         max; 0 of a retry topic    0        search(time); max of a retry topic
    -2 failed, -3   FirstPositionUnknown       same     same

4.9 clients differ in two points: any answer but success counts as -1, so that an error of the broker moves a group to
the end; and -2 gives -1, which an ordered consumer takes for a position. FIRST is the constant 0: the broker corrects
it to the queue's minimum (`pulling/after_pull.py`, the next to read). The broker's half of the decision, which makes a
new group read a young queue from 0 whatever it asks for, is not the client's business.
Official class: RebalancePushImpl.computePullFromWhereWithException.
"""

import re
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec
from pocketmq.protocol.bodies.client import ConsumeFromWhere
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import ClientError, FirstPositionUnknown

NO_OFFSET: Final = -1
"""The store answered that the group has no offset for the queue."""
OFFSET_UNREADABLE: Final = -2
"""The store could not be asked, or answered with an error."""

CONSUME_TIMESTAMP_AGE_MS: Final = 30 * 60 * 1000
"""A consumer's default consume_timestamp lies this long before it was made."""

_FROM_LAST: Final = frozenset(
    {
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST,
        ConsumeFromWhere.CONSUME_FROM_MIN_OFFSET,
        ConsumeFromWhere.CONSUME_FROM_MAX_OFFSET,
    }
)
_TIMESTAMP: Final = re.compile(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d+)", re.ASCII)


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
    """The start of a push consumer. Raises FirstPositionUnknown where the stored offset could not be read.

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


def stored_offset_of_refusal(code: int) -> int:
    """What a refused QUERY_CONSUMER_OFFSET counts as: only "not found" means that there is none.

    No answer at all is OFFSET_UNREADABLE too. Official class: RemoteBrokerOffsetStore.readOffset.
    """
    return NO_OFFSET if code == ResponseCode.QUERY_NOT_FOUND else OFFSET_UNREADABLE


def pop_init_mode(where: ConsumeFromWhere) -> int:
    """Where a pop consumer of a new group starts: 0 minimum, 1 maximum (official getConsumeInitMode)."""
    return 0 if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET else 1


def parse_timestamp(text: str) -> int:
    """`yyyyMMddHHmmss` in local time to epoch ms. Raises ClientError in the official words.

    Lenient as Java's SimpleDateFormat: a 13th month is the next January, what follows the digits is ignored, the
    seconds are all digits left. Texts that do not begin with digits are refused; Java reads some of them as years
    long ago.
    """
    found = _TIMESTAMP.match(text)
    if found is not None:
        year, month, *rest = map(int, found.groups())
        day, hours, minutes, seconds = rest
        carried, month = divmod(month - 1, 12)
        try:
            wall = datetime(year + carried, month + 1, 1) + timedelta(
                days=day - 1, hours=hours, minutes=minutes, seconds=seconds
            )
            # In the hour that comes twice Java takes the second one, in the hour that is left out the later reading.
            return round(max(wall.timestamp(), wall.replace(fold=1).timestamp()) * 1000)
        except (ValueError, OverflowError):
            pass
    raise ClientError(
        f"consumeTimestamp is invalid, the valid format is yyyyMMddHHmmss,but received {text}"
    ) from None


def format_timestamp(moment_ms: int) -> str:
    """Epoch ms to `yyyyMMddHHmmss` in local time (official UtilAll.timeMillisToHumanString3)."""
    return datetime.fromtimestamp(moment_ms // 1000).strftime("%Y%m%d%H%M%S").zfill(14)
