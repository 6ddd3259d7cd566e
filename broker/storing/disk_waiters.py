"""Answers that wait for the disk under SYNC_FLUSH: released together, after each pass of the store's flusher.

One look at the flushed position, and one timer, serve all that wait; the flusher's thread wakes the loop once a pass,
not once for each answer. Owned by the event loop.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from pocketmq.store import MessageStore

Released = Callable[[bool], None]
"""Called with True if the disk has the bytes, False if it refused or took too long."""


class DiskWaiters:
    """In the order in which their bytes were appended."""

    def __init__(self, store: MessageStore, timeout_ms: Callable[[], int]) -> None:
        self._store = store
        self._timeout_ms = timeout_ms
        self._waiting: deque[tuple[int, float, Released]] = deque()
        """(log position behind the bytes, deadline in the loop's time, callback)"""
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        store.on_flushed = self._flushed

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, end: int, released: Released) -> None:
        """Call back once the log is on disk up to `end`: at once if it is, and with False after syncFlushTimeout."""
        if end <= self._store.flushed_position:
            released(True)
            return
        if self._store.admission.disk_failure is not None:
            released(False)
            return
        timeout_seconds = self._timeout_ms() / 1000
        self._waiting.append((end, self._loop.time() + timeout_seconds, released))
        if self._timer is None:
            self._timer = self._loop.call_later(timeout_seconds, self._look_at_deadlines)

    def _flushed(self) -> None:
        waiting, flushed = self._waiting, self._store.flushed_position
        while waiting and waiting[0][0] <= flushed:
            waiting.popleft()[2](True)
        if self._store.admission.disk_failure is not None:
            while waiting:
                waiting.popleft()[2](False)

    def _look_at_deadlines(self) -> None:
        waiting, now = self._waiting, self._loop.time()
        while waiting and waiting[0][1] <= now:
            waiting.popleft()[2](False)
        self._timer = None
        if waiting:
            self._timer = self._loop.call_at(waiting[0][1], self._look_at_deadlines)
