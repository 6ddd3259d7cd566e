"""Times: as users write them on the command line, and as commands print them for people.

`pocketmq admin` reads and prints them as mqadmin does: `admin/options.py`, `admin/texts.py`.
"""

from datetime import datetime


def local_time(epoch_ms: int | None) -> str:
    """2026-01-31 12:00:00.123+01:00: local time with its zone; a dash for none and for a negative one."""
    if epoch_ms is None or epoch_ms < 0:
        return "-"
    return datetime.fromtimestamp(epoch_ms / 1000).astimezone().isoformat(" ", "milliseconds")


def epoch_ms(text: str) -> int | None:
    """A number as it is, an ISO time (local unless it names a zone) as epoch ms, None for anything else."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
