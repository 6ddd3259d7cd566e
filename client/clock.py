"""The clock for durations: it reads like the wall clock, in epoch ms, but setting that clock does not move it.

Timeouts, isolation times, lock ages and subscription versions are measured with it: an operator who sets the clock
back by an hour must not make a lock look fresh for an hour. What is told to others as a moment (when a message was
born) is the wall clock's, `instance.now_ms`.
"""

import time
from typing import Final

_AHEAD_MS: Final = (time.time_ns() - time.monotonic_ns()) // 1_000_000


def steady_ms() -> int:
    """Epoch ms as of the start of the process, plus the time since; never goes back."""
    return time.monotonic_ns() // 1_000_000 + _AHEAD_MS
