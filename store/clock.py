"""Where the store and the broker get the time from.

`WallClock` is the machine's time; `VirtualClock` does not move until a test moves it. A clock only says the time:
it does not sleep and does not run timers. Units are milliseconds everywhere.
"""

import time
from typing import Protocol


class Clock(Protocol):
    """Time in milliseconds, twice: the calendar's, written into records, and one that never runs backwards."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, as stored in records."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some fixed point; use it for intervals."""


class WallClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class VirtualClock:
    """A clock that moves only when a test moves it; `monotonic_ms` starts at 0."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = start_ms
        self._elapsed_ms = 0
        self._correction_ms = 0

    def now_ms(self) -> int:
        return self._start_ms + self._elapsed_ms + self._correction_ms

    def monotonic_ms(self) -> int:
        return self._elapsed_ms

    def advance(self, ms: int) -> None:
        """Let `ms` pass on both clocks."""
        if ms < 0:
            raise ValueError(f"time does not run backwards: {ms} ms (use set_now_ms to correct the calendar)")
        self._elapsed_ms += ms

    def set_now_ms(self, now_ms: int) -> None:
        """Correct the calendar as an administrator would; intervals are not affected."""
        self._correction_ms += now_ms - self.now_ms()
