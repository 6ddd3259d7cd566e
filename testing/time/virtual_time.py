"""Moves virtual time: `advance`, `advance_to_next`, `run`.

    advance("2h")   for each timer that is due within two hours, in the order of their times:
                        the clock moves to it, it runs, and what it wakes in the event loop is done
                    the clock moves to the end of the step

Timers set on the way run in the same step if they are due in it. Clients are not waited for: what they answer arrives
later by the wall's time. Owned by the event loop; a test calls it from its own thread (`clock.py`).
"""

import asyncio
import math
import re
from typing import Final

from pocketmq.broker.time.timers import TimeStuckError
from pocketmq.store import VirtualClock, WallClock

from .virtual_timers import VirtualTimers

REST_SECONDS: Final = 5.0
"""Longest wait, by the wall's time, for what one callback has woken."""
LONGEST_SECONDS: Final = 60.0
"""Longest time, by the wall's clock, that one step takes."""
RUN_SECONDS: Final = 0.01
"""How often `run` moves the clock."""
LATEST_MS: Final = 253_370_764_800_000
"""The year 9999: the calendar goes no further."""

_UNITS_MS: Final = (86_400_000, 3_600_000, 60_000, 1000, 1)
_STEP: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?")


def step_ms(step: str | float) -> int:
    """The milliseconds of a step: a number of seconds, or a text like `1d2h30m5s100ms`. ValueError for another."""
    allowed = 'a step is a number of seconds, not negative, or a text like "1d2h30m5s100ms"'
    if isinstance(step, str):
        match = _STEP.fullmatch(step)
        if match is None or not step or not step.isascii():
            raise ValueError(f"{allowed}, got {step!r}")
        return sum(
            int(number or 0) * unit_ms for number, unit_ms in zip(match.groups(), _UNITS_MS, strict=True)
        )
    if isinstance(step, bool) or not isinstance(step, int | float) or not math.isfinite(step) or step < 0:
        raise ValueError(f"{allowed}, got {step!r}")
    return round(step * 1000)


class VirtualTime:
    """The time of one server, or of all members of a cluster: at first the wall's. Each move waits for the one before
    it; what is due first runs first, whichever broker has set it."""

    def __init__(self) -> None:
        wall = WallClock()
        self._clock: Final = VirtualClock(wall.now_ms(), wall=wall)
        self._all: list[VirtualTimers] = []
        self._moving = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None

    def join(self) -> VirtualTimers:
        """Timers for one more broker, or for one that belongs to none."""
        timers = VirtualTimers(self._clock)
        self._all.append(timers)
        return timers

    def leave(self, timers: VirtualTimers) -> None:
        """A broker has ended: drop what it wanted to do later. Does nothing if it has left."""
        if timers in self._all:
            self._all.remove(timers)
            timers.forget()

    def now_ms(self) -> int:
        """The server's time, in ms since 1970."""
        return self._clock.now_ms()

    async def advance(self, step: str | float) -> int:
        """Let a step of time pass; returns the new time once everything that became due is done and sent.

        ValueError for a step that is negative or unreadable; then no time passes. A cancelled step stops at the timer
        that it has reached.
        """
        ms = step_ms(step)
        if self.now_ms() + ms > LATEST_MS:
            raise ValueError(f"a step may not go beyond the year 9999, got {step!r}")
        await self.stop()
        async with self._moving:
            await self._move(self._clock.elapsed_ms + ms)
        return self.now_ms()

    async def advance_to_next(self) -> int | None:
        """Move to the next event: a delivery, a transaction check, the end of an invisible time. Returns the new time;
        `None`, and no time passes, if nothing waits. Limits of held requests and upkeep are no events."""
        await self.stop()
        async with self._moving:
            times = [at_ms for one in self._all if (at_ms := one.next_event_ms()) is not None]
            if not times:
                return None
            await self._move(max(min(times), self._clock.elapsed_ms))
        return self.now_ms()

    def run(self, speed: float) -> None:
        """Let time pass `speed` times as fast as the wall's, until the next move or `stop`. ValueError unless `speed`
        is a number above 0."""
        is_number = isinstance(speed, int | float) and not isinstance(speed, bool)
        if not is_number or not math.isfinite(speed) or speed <= 0:
            raise ValueError(f"speed must be a number above 0, got {speed!r}")
        if self._running is not None:
            self._running.cancel()
        self._running = asyncio.get_running_loop().create_task(self._run(speed), name="virtual time")

    async def stop(self) -> None:
        """End `run`. Does nothing if time does not run."""
        task, self._running = self._running, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # -- inside

    async def _run(self, speed: float) -> None:
        loop = asyncio.get_running_loop()
        began, passed_ms = loop.time(), 0
        while self.now_ms() < LATEST_MS:
            await asyncio.sleep(RUN_SECONDS)
            due_ms = int((loop.time() - began) * 1000 * speed)
            async with self._moving:
                await self._move(min(self._clock.elapsed_ms + due_ms - passed_ms, self._end_ms))
            passed_ms = due_ms

    @property
    def _end_ms(self) -> int:
        return self._clock.elapsed_ms + LATEST_MS - self.now_ms()

    async def _move(self, until_ms: int) -> None:
        loop = asyncio.get_running_loop()
        give_up_at, ran = loop.time() + LONGEST_SECONDS, 0
        while True:
            while self._run_next(until_ms):
                ran += 1
                await self._rest()
                if loop.time() > give_up_at:
                    raise TimeStuckError(
                        f"gave up after {LONGEST_SECONDS:g} s and {ran} timers, "
                        f"{(until_ms - self._clock.elapsed_ms) / 1000:g} s before the end of the step"
                    )
            self._move_to(until_ms)
            await self._rest()
            await asyncio.sleep(0)  # what was answered leaves at the end of a loop iteration
            if not self._run_next(until_ms):
                return
            await self._rest()

    def _run_next(self, until_ms: int) -> bool:
        """Move the clock to the next timer that is due by `until_ms`, and run it. False if none is; the clock stays."""
        first: VirtualTimers | None = None
        for one in self._all:
            at_ms = one.next_due_ms(until_ms)
            if at_ms is not None and (first is None or at_ms < until_ms):
                first, until_ms = one, at_ms
        if first is None:
            return False
        self._move_to(until_ms)
        first.run_next(until_ms)
        return True

    def _move_to(self, at_ms: int) -> None:
        """Move the clock, not backwards; what is to run whenever a period has passed does so."""
        if at_ms > self._clock.elapsed_ms:
            self._clock.advance(at_ms - self._clock.elapsed_ms)
            for one in list(self._all):
                one.fill_gaps()

    async def _rest(self) -> None:
        """Let the event loop do what the last callback woke: at least one turn."""
        give_up_at = 0.0
        while True:
            await asyncio.sleep(0)
            if all(one.is_at_rest for one in self._all):
                return
            now = asyncio.get_running_loop().time()
            give_up_at = give_up_at or now + REST_SECONDS
            if now > give_up_at:
                return


class NodeTime(VirtualTime):
    """The time of one node, which has the only timers."""

    def __init__(self) -> None:
        super().__init__()
        self.timers = self.join()
