"""The two clocks of a client: one for durations, one for moments.

Timeouts, isolation times, lock ages and subscription versions are measured with `steady_ms`. It reads like the wall
clock, in epoch ms, but does not jump when somebody sets that clock: an operator who sets it back by an hour must not
make a lock look fresh for an hour. A moment that leaves the client, such as the time a message was born, is `wall_ms`.
"""

import time
from typing import Final

_AHEAD_MS: Final = (time.time_ns() - time.monotonic_ns()) // 1_000_000


def steady_ms() -> int:
    """Epoch ms as of the start of the process, plus the time since; never goes back."""
    return time.monotonic_ns() // 1_000_000 + _AHEAD_MS


def wall_ms() -> int:
    """The wall clock, in epoch ms."""
    return time.time_ns() // 1_000_000
