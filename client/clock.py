"""The two clocks of a client: one for durations, one for moments.

Isolation times, lock ages and subscription versions are measured with `steady_ms`. It reads like the wall clock, in
epoch ms, but does not jump when somebody sets that clock: an operator who sets it back by an hour must not make a lock
look fresh for an hour. It goes on while the machine sleeps, where the system has such a clock: a lock that was granted
before the night is old in the morning. Timeouts are measured by the event loop. A moment that leaves the client, such
as the time a message was born, is `wall_ms`.
"""

import time
from typing import Final

_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_AHEAD_MS: Final = (time.time_ns() - time.clock_gettime_ns(_CLOCK)) // 1_000_000


def steady_ms() -> int:
    """Epoch ms as of the start of the process, plus the time since, sleep included; never goes back."""
    return time.clock_gettime_ns(_CLOCK) // 1_000_000 + _AHEAD_MS


def wall_ms() -> int:
    """The wall clock, in epoch ms."""
    return time.time_ns() // 1_000_000
