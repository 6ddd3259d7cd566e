"""Where the store and the broker get the time from.

`WallClock` is the machine's time; `VirtualClock` does not move until it is moved. A clock only says the time: it does
not sleep and does not run timers. Units are milliseconds everywhere.
"""

import time
from typing import Final, Protocol


class Clock(Protocol):
    """Time in milliseconds: the calendar's, written into records; the calendar of the clients; and one that never runs
    backwards."""

    @property
    def is_virtual(self) -> bool:
        """Whether this calendar is apart from that of the clients and of the file system."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, as stored in records."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970 by the clients' clocks, which a virtual clock does not follow."""

    def from_wall_ms(self, wall_ms: int) -> int:
        """The time by this clock of a moment by the clients' clocks."""

    def lag_ms(self) -> int:
        """By how much this clock is behind the clients'; 0 if it is ahead of them."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some fixed point; use it for waits on disks and peers, which are never virtual."""


class WallClock:
    """The machine's clocks."""

    is_virtual: Final = False

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def from_wall_ms(self, wall_ms: int) -> int:
        return wall_ms

    def lag_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class VirtualClock:
    """A calendar that moves only when it is moved.

    With `wall`, clients and disks keep to that clock. Without it they share this one; `monotonic_ms` starts at 0 then.
    """

    def __init__(self, start_ms: int = 1_700_000_000_000, *, wall: Clock | None = None) -> None:
        self._start_ms = start_ms
        self._wall = wall
        self.is_virtual = wall is not None
        self._correction_ms = 0
        self.elapsed_ms = 0
        """Milliseconds that have passed on this clock."""

    def now_ms(self) -> int:
        return self._start_ms + self.elapsed_ms + self._correction_ms

    def wall_ms(self) -> int:
        return self.now_ms() if self._wall is None else self._wall.now_ms()

    def from_wall_ms(self, wall_ms: int) -> int:
        return wall_ms + self.now_ms() - self.wall_ms()

    def lag_ms(self) -> int:
        return max(self.wall_ms() - self.now_ms(), 0)

    def monotonic_ms(self) -> int:
        return self.elapsed_ms if self._wall is None else self._wall.monotonic_ms()

    def advance(self, ms: int) -> None:
        """Let `ms` pass."""
        if ms < 0:
            raise ValueError(f"time does not run backwards: {ms} ms (use set_now_ms to correct the calendar)")
        self.elapsed_ms += ms

    def set_now_ms(self, now_ms: int) -> None:
        """Correct the calendar as an administrator would; intervals are not affected."""
        self._correction_ms += now_ms - self.now_ms()
