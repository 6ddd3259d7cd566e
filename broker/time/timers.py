"""The timers of a broker: everything that it does later, by its own clock, is set here.

`Timers` are the event loop's; `pocketmq.testing` has those of a clock that a test moves. Not for waits on
disks and peers, and not for saving: those use the event loop directly, so that no answer waits for a virtual clock.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from pocketmq.store import Clock

LONGEST_SLEEP_MS: Final = 1000
"""Longest wait of `call_at`: the loop's timers follow the monotonic clock, and the calendar may be set meanwhile."""

CallSoon = Callable[[Callable[[], None]], object]
"""Calls back in the next loop iteration."""

NextDue = Callable[[], int | None]
"""From which time on (ms since 1970) a repeated action has work; `None` if it has none as things are now."""


class Timer(Protocol):
    """One callback that is to run later."""

    def cancel(self) -> None:
        """Do not call back. Does nothing if the callback has run."""


class Timers:
    """Runs callbacks in the event loop's thread, in the order of their times: real time."""

    is_virtual = False
    """Whether time moves only when it is moved."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def call_soon(self, callback: Callable[[], None]) -> object:
        """Call back in the next loop iteration; a move of virtual time waits for it."""
        return asyncio.get_running_loop().call_soon(callback)

    def call_later(self, seconds: float, callback: Callable[[], None], *, is_event: bool = True) -> Timer:
        """Call back after `seconds`. Virtual time moves to the next event, but not to the next upkeep."""
        return asyncio.get_running_loop().call_later(seconds, callback)

    def call_at(self, when_ms: int, callback: Callable[[], None]) -> Timer:
        """Call back at a time of the calendar (ms since 1970), or earlier: look what is due, and set the next timer."""
        sleep_ms = min(max(when_ms - self.clock.now_ms(), 0), LONGEST_SLEEP_MS)
        return asyncio.get_running_loop().call_later(sleep_ms / 1000, callback)

    def call_by_wall(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back after `seconds` of the wall's time: for waits on the disk, which are never virtual."""
        return asyncio.get_running_loop().call_later(seconds, callback)

    async def sleep(self, seconds: float, next_due: NextDue) -> None:
        """Sleep; virtual time goes on sleeping, period by period, until there is work."""
        await asyncio.sleep(seconds)

    def repeat(
        self,
        seconds: Callable[[], float],
        action: Callable[[], None],
        next_due: NextDue,
        *,
        is_event: bool,
        samples_gaps: bool = False,
    ) -> Timer:
        """Call back again and again; the next period starts when the callback ends.

        Virtual time skips the periods without work. With `samples_gaps` it asks for none: it calls back whenever it has
        moved by a period or more, before anything else runs.
        """
        return LoopRepeat(seconds, action)


class LoopRepeat:
    def __init__(self, seconds: Callable[[], float], action: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._action = action
        self._timer: asyncio.TimerHandle | None = self._loop.call_later(seconds(), self._act)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _act(self) -> None:
        self._action()
        if self._timer is not None:
            self._timer = self._loop.call_later(self._seconds(), self._act)


class TimeStuckError(RuntimeError):
    """A step of virtual time was given up because its timers set ever new ones."""


class MovedTime(Protocol):
    """Moves the clock of virtual timers. Each move waits for the one before it; steps that are wrong: ValueError."""

    async def advance(self, step: str | float) -> int:
        """Let a step of time pass, seconds or a text like `2h`; returns the new time (ms). `TimeStuckError`."""

    async def advance_to_next(self) -> int | None:
        """Move to the next event; `None`, and no time passes, if nothing waits. `TimeStuckError`."""

    def run(self, speed: float) -> None:
        """Let time pass `speed` times as fast as the wall's, until the next move or `stop`."""

    async def stop(self) -> None:
        """Let the clock stand still. Does nothing if it does."""


class OwnTime(MovedTime, Protocol):
    """That of one node alone."""

    @property
    def timers(self) -> Timers: ...
