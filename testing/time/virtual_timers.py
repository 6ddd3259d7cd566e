"""The timers of a virtual clock: what is due next, and running it.

    call_later, call_at   a heap, in the order of their times
    repeat, sleep         asked for their next period with work; the periods before it are skipped

So a jump of days costs what is due in it, not its ticks. Nothing runs until somebody moves the time: `virtual_time.py`
does, with a turn of the event loop between two callbacks. Owned by the event loop.
"""

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec
from pocketmq.broker.time.timers import NextDue, Timer, Timers
from pocketmq.store import VirtualClock

_log = logging.getLogger("pocketmq.time")

LEAST_CANCELLED: Final = 64
"""Cancelled timers are dropped from the heap once they are this many, and more than half of it."""


class VirtualTimers(Timers):
    """Times inside are milliseconds that have passed on the clock (`elapsed_ms`), unless a name says otherwise."""

    is_virtual = True
    clock: VirtualClock

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self._heap: list[tuple[int, int, _Once]] = []
        self._numbers = itertools.count()
        self._cancelled = 0
        self._repeats: list[_Repeat] = []
        self._gap_fillers: list[_Repeat] = []
        self._soon = 0
        """Callbacks of `call_soon` that have not run yet."""
        self._awake: set[asyncio.Task[Any]] = set()
        """Tasks whose sleep has ended and that neither sleep again nor have ended."""
        self.fired = 0
        """Callbacks that have run."""

    # -- setting timers: see `Timers`

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon += 1
        asyncio.get_running_loop().call_soon(self._run_soon, callback)

    def call_later(self, seconds: float, callback: Callable[[], None], *, is_event: bool = True) -> Timer:
        return self._push(self.clock.elapsed_ms + max(round(seconds * 1000), 0), callback, is_event)

    def call_at(self, when_ms: int, callback: Callable[[], None]) -> Timer:
        clock = self.clock
        return self._push(clock.elapsed_ms + max(when_ms - clock.now_ms(), 0), callback, True)

    def call_by_wall(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float, next_due: NextDue) -> None:
        woken = asyncio.get_running_loop().create_future()
        task = asyncio.current_task()
        assert task is not None

        def wake() -> None:
            repeat.cancel()
            if not woken.done():
                woken.set_result(None)
                self._awake.add(task)

        self._awake.discard(task)
        repeat = self.repeat(lambda: seconds, wake, next_due, is_event=True)
        try:
            await woken
        finally:
            repeat.cancel()

    def repeat(
        self,
        seconds: Callable[[], float],
        action: Callable[[], None],
        next_due: NextDue,
        *,
        is_event: bool,
        samples_gaps: bool = False,
    ) -> Timer:
        repeat = _Repeat(self, seconds, action, next_due, is_event, self.clock.elapsed_ms)
        (self._gap_fillers if samples_gaps else self._repeats).append(repeat)
        return repeat

    # -- running them

    @property
    def waiting(self) -> int:
        """Timers of `call_later` and `call_at` that have not run."""
        return sum(once.callback is not None for _, _, once in self._heap)

    @property
    def is_at_rest(self) -> bool:
        """Whether everything that callbacks have woken in the event loop has been done."""
        if self._awake:
            self._awake = {task for task in self._awake if not task.done()}
        return not self._soon and not self._awake

    def next_event_ms(self) -> int | None:
        """When the next event is due; `None` if no event waits."""
        times = [at_ms for at_ms, _, once in self._heap if once.callback is not None and once.is_event]
        times += [
            at_ms for repeat in self._repeats if repeat.is_event and (at_ms := repeat.due_ms()) is not None
        ]
        return min(times, default=None)

    def next_due_ms(self, until_ms: int) -> int | None:
        """When the next timer is due, if that is by `until_ms`; `None` otherwise."""
        at_ms, _ = self._next(until_ms)
        return None if at_ms is None or at_ms > until_ms else at_ms

    def run_next(self, until_ms: int) -> None:
        """Run the next timer, which is due by `until_ms`: the clock has moved to it."""
        _, earliest = self._next(until_ms)
        if earliest is not None:
            self._run(earliest.run)
            return
        _, _, once = heapq.heappop(self._heap)
        callback, once.callback = once.callback, None
        assert callback is not None
        self._run(callback)

    def _next(self, until_ms: int) -> "tuple[int | None, _Repeat | None]":
        """When the next timer is due, and the repeat that it is; without one it is the first of the heap."""
        heap = self._heap
        while heap and heap[0][2].callback is None:
            heapq.heappop(heap)
            self._cancelled -= 1
        at_ms = heap[0][0] if heap else None
        earliest: _Repeat | None = None
        latest_ms = until_ms if at_ms is None else min(at_ms, until_ms + 1)
        for repeat in self._repeats:
            if repeat.next_period_ms() <= latest_ms:
                due_ms = repeat.due_ms()
                if due_ms is not None and (at_ms is None or due_ms < at_ms):
                    at_ms, earliest = due_ms, repeat
        return at_ms, earliest

    def fill_gaps(self) -> None:
        """The clock was moved: run what is to run whenever a period has passed."""
        for repeat in self._gap_fillers:
            if repeat.is_behind:
                self._run(repeat.run)

    def forget(self) -> None:
        """Drop every timer."""
        self._heap.clear()
        self._repeats.clear()
        self._gap_fillers.clear()
        self._cancelled = 0

    # -- inside

    def _push(self, at_ms: int, callback: Callable[[], None], is_event: bool) -> "_Once":
        once = _Once(self, callback, is_event)
        heapq.heappush(self._heap, (at_ms, next(self._numbers), once))
        return once

    def _run(self, callback: Callable[[], None]) -> None:
        self.fired += 1
        try:
            callback()
        except Exception:
            _log.exception("the timer %r failed", callback)

    def _run_soon(self, callback: Callable[[], None]) -> None:
        self._soon -= 1
        callback()

    def was_cancelled(self, timer: "_Once | _Repeat") -> None:
        """Forget a timer that was cancelled."""
        if isinstance(timer, _Repeat):
            self._repeats = [repeat for repeat in self._repeats if repeat is not timer]
            self._gap_fillers = [repeat for repeat in self._gap_fillers if repeat is not timer]
            return
        self._cancelled += 1
        if self._cancelled >= LEAST_CANCELLED and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0


class _Once(msgspec.Struct, eq=False):
    """One timer; `callback` is `None` once it has run or was cancelled."""

    _timers: VirtualTimers
    callback: Callable[[], None] | None
    is_event: bool

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._timers.was_cancelled(self)


class _Repeat(msgspec.Struct, eq=False):
    """A repeated action. Periods are counted from the last run; a period without work is not run."""

    _timers: VirtualTimers
    _seconds: Callable[[], float]
    _action: Callable[[], None]
    _next_work: NextDue
    is_event: bool
    _last_ms: int
    _next_ms: int = 0

    def next_period_ms(self) -> int:
        """The end of the first period that is not over yet."""
        elapsed_ms = self._timers.clock.elapsed_ms
        if self._next_ms <= self._last_ms or self._next_ms < elapsed_ms:
            self._next_ms = self._period_end_ms(elapsed_ms)
        return self._next_ms

    def due_ms(self) -> int | None:
        """The end of the first period that is not over yet and that has work; `None` without work."""
        work_ms = self._next_work()
        if work_ms is None:
            return None
        clock = self._timers.clock
        return self._period_end_ms(max(work_ms - clock.now_ms(), 0) + clock.elapsed_ms)

    def _period_end_ms(self, from_ms: int) -> int:
        period_ms = self._period_ms
        return self._last_ms + max(-(-(from_ms - self._last_ms) // period_ms), 1) * period_ms

    @property
    def _period_ms(self) -> int:
        return max(round(self._seconds() * 1000), 1)

    @property
    def is_behind(self) -> bool:
        """Whether a period has passed since the last run."""
        return self._timers.clock.elapsed_ms - self._last_ms >= self._period_ms

    def run(self) -> None:
        self._last_ms = self._timers.clock.elapsed_ms
        self._action()

    def cancel(self) -> None:
        self._timers.was_cancelled(self)
