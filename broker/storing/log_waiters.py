"""Answers that wait until the log is safe up to a position: on disk under SYNC_FLUSH, at slaves under SYNC_MASTER.

One look at the position that is reached, and one timer, serve all that wait; the flusher's thread or a slave's report
wakes the loop once, not once for each answer. Owned by the event loop.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

RELEASED_IN_A_TURN: Final = 256
"""Answers of one loop iteration: about a millisecond of work."""

Released = Callable[[bool], None]
"""Called with True if the log is safe up to that position, False if that failed or took too long."""


class LogWaiters:
    """In the order in which their bytes were appended."""

    def __init__(
        self,
        reached: Callable[[], int],
        timeout_ms: Callable[[], int],
        has_failed: Callable[[], bool] = lambda: False,
    ) -> None:
        """`reached` is the position up to which the log is safe; after a failure it is never reached again."""
        self._reached = reached
        self._timeout_ms = timeout_ms
        self._has_failed = has_failed
        self._waiting: deque[tuple[int, float, Released]] = deque()
        """(log position behind the bytes, deadline in the loop's time, callback)"""
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, end: int, released: Released) -> None:
        """Call back once the log is safe up to `end`: at once if it is, and with False after the timeout."""
        if end <= self._reached():
            released(True)
            return
        if self._has_failed():
            released(False)
            return
        timeout_seconds = self._timeout_ms() / 1000
        self._waiting.append((end, self._loop.time() + timeout_seconds, released))
        if self._timer is None:
            self._timer = self._loop.call_later(timeout_seconds, self._look_at_deadlines)

    def look(self) -> None:
        """Release those whose position is reached; call it when it may have moved."""
        waiting = self._waiting
        if not waiting:
            return
        reached, has_failed = self._reached(), self._has_failed()
        for _ in range(RELEASED_IN_A_TURN):
            if not waiting or (waiting[0][0] > reached and not has_failed):
                return
            end, _, released = waiting.popleft()
            released(end <= reached)
        self._loop.call_soon(self.look)

    def stop(self) -> None:
        """Release all that wait with False."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiting:
            self._waiting.popleft()[2](False)

    def _look_at_deadlines(self) -> None:
        waiting, now = self._waiting, self._loop.time()
        self._timer = None
        for _ in range(RELEASED_IN_A_TURN):
            if not waiting or waiting[0][1] > now:
                break
            waiting.popleft()[2](False)
        if waiting:
            self._timer = self._loop.call_at(waiting[0][1], self._look_at_deadlines)
