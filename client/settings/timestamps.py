"""`consume_timestamp`, where a new group starts: `yyyyMMddHHmmss` in local time, read as leniently as in Java."""

import re
from datetime import datetime, timedelta
from typing import Final

from ..errors import InvalidArgument

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
