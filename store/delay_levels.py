"""Delay levels: the setting `messageDelayLevel`, parsed. Level 1 is the first word."""

from typing import Final

from .errors import StoreError

DEFAULT_DELAY_LEVELS: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_delay_levels(text: str) -> dict[int, int]:
    """`1s 5s 1m` to `{1: 1000, 2: 5000, 3: 60000}` (level to ms). Units: s, m, h, d. Raises StoreError."""
    levels: dict[int, int] = {}
    for level, word in enumerate(text.split(), start=1):
        unit_ms = _UNITS_MS.get(word[-1])
        if unit_ms is None or not word[:-1].isdecimal():
            raise StoreError(f"messageDelayLevel {text!r}: {word!r} is no number followed by s, m, h or d")
        levels[level] = int(word[:-1]) * unit_ms
    if not levels:
        raise StoreError("messageDelayLevel holds no level")
    return levels
