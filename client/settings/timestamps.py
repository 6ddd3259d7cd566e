"""Where a new group starts: `start` of a consumer, and the official settings it stands for.

    start="first"       consume_from_where=CONSUME_FROM_FIRST_OFFSET
    start="last"        consume_from_where=CONSUME_FROM_LAST_OFFSET, the default
    start=datetime      consume_from_where=CONSUME_FROM_TIMESTAMP, consume_timestamp="yyyyMMddHHmmss"

`consume_timestamp` is local time, read as leniently as in Java.
"""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

from pocketmq.protocol.bodies.client import ConsumeFromWhere

from ..errors import InvalidArgument, InvalidSetting

Start: TypeAlias = Literal["first", "last"] | datetime
"""A time without a zone is local time."""

CONSUME_TIMESTAMP_AGE_MS: Final = 30 * 60 * 1000
"""The default is this long before the consumer was made."""

_TIMESTAMP: Final = re.compile(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d+)", re.ASCII)


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
            # When clocks are set back, Java reads the second of the two hours; when they are set forward, the later
            # time.
            return round(max(wall.timestamp(), wall.replace(fold=1).timestamp()) * 1000)
        except (ValueError, OverflowError):
            pass
    raise InvalidArgument(
        f"consumeTimestamp is invalid, the valid format is yyyyMMddHHmmss,but received {text}"
    ) from None


def format_timestamp(moment_ms: int) -> str:
    """Epoch ms to `yyyyMMddHHmmss` in local time (official UtilAll.timeMillisToHumanString3)."""
    return datetime.fromtimestamp(moment_ms // 1000).strftime("%Y%m%d%H%M%S").zfill(14)


def with_start(options: Mapping[str, Any], start: Start | None, *, has_settings: bool) -> Mapping[str, Any]:
    """The keyword arguments of a consumer, `start` as the settings it stands for. InvalidSetting for anything else than
    a `Start`, and beside other arguments that say where to start."""
    if start is None:
        return options
    rivals = [name for name in ("consume_from_where", "consume_timestamp") if name in options]
    if has_settings or rivals:
        raise InvalidSetting(f"give start or {' and '.join(rivals) or 'settings'}, not both")
    if isinstance(start, datetime):
        try:
            moment_ms = int(start.timestamp() * 1000)
            text = format_timestamp(moment_ms)
        except (ValueError, OverflowError) as error:  # at the end of the calendar
            raise InvalidSetting(f"start={start!r}: {error}") from None
        ahead_ms = parse_timestamp(text) - moment_ms
        if ahead_ms > 0:  # the text of the hour that is there twice means the second one
            text = format_timestamp(moment_ms - ahead_ms)
        where = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP
        return {**options, "consume_from_where": where, "consume_timestamp": text}
    if not isinstance(start, str) or start not in _STARTS:
        raise InvalidSetting(f"start={start!r}: expected 'first', 'last' or a datetime")
    return {**options, "consume_from_where": _STARTS[start]}


_STARTS: Final = {
    "first": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    "last": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
}
