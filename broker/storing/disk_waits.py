"""Sends that wait for the disk (SYNC_FLUSH): one question to the flusher, one timer, one call from its thread for all.

Log positions and deadlines rise in the order of the sends, so the first in line is always the next to be answered. No
official class: GroupCommitService wakes each request by itself. Owner: the event-loop thread; the flusher calls back
into it.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from pocketmq.store import MessageStore

Answered = Callable[[bool], None]
"""Called once: True if the message is on disk, False if syncFlushTimeout has passed or the disk refused."""


class DiskWaits:
    """At most as many as sends may wait (sendThreadPoolQueueCapacity): the caller counts."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._waiting: deque[tuple[int, float, Answered]] = deque()
        self._is_asked = False
        self._has_timer = False

    def wait(self, loop: asyncio.AbstractEventLoop, end: int, answered: Answered) -> None:
        """Call back once the log is on disk up to the position `end`, which is not before that of an earlier call.

        Raises StoreClosedError.
        """
        deadline = loop.time() + self._store.config.sync_flush_timeout / 1000
        if not self._is_asked:
            self._ask(loop, end)
        self._waiting.append((end, deadline, answered))
        if not self._has_timer:
            self._has_timer = True
            loop.call_at(deadline, self._give_up, loop)

    def _ask(self, loop: asyncio.AbstractEventLoop, end: int) -> None:
        def from_flusher(is_safe: bool) -> None:
            loop.call_soon_threadsafe(self._flushed, loop, is_safe)

        self._store.when_flushed(end, from_flusher)
        self._is_asked = True

    def _flushed(self, loop: asyncio.AbstractEventLoop, is_safe: bool) -> None:
        self._is_asked = False
        waiting, flushed = self._waiting, self._store.flushed_position
        try:
            while waiting and (waiting[0][0] <= flushed or not is_safe):
                end, _, answered = waiting.popleft()
                answered(end <= flushed)
        finally:
            if waiting and not self._is_asked:
                self._ask(loop, waiting[-1][0])

    def _give_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer those whose time has passed. Set for the first deadline at that time; a later one waits for the
        next timer."""
        waiting, now = self._waiting, loop.time()
        try:
            while waiting and waiting[0][1] <= now:
                waiting.popleft()[2](False)
        finally:
            self._has_timer = bool(waiting)
            if waiting:
                loop.call_at(waiting[0][1], self._give_up, loop)
