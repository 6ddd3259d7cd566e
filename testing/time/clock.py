"""ServerClock: the server's time, which a test may move.

    with EmbeddedServer(virtual_time=True) as server:
        RocketMQ(server).send("reminders", "in two hours", properties={"TIMER_DELAY_SEC": "7200"})
        server.clock.advance("2h")          # returns once the message is delivered

Virtual time starts at the wall's time when the server starts, and then moves only here. What the server does later by
its clock (deliveries, retries, transaction checks, expiry, deletion) is done on the way, in the order of its times.
Every method may be called from any thread except the server's own. `aio` has the same methods as coroutines.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from pocketmq.broker.time.timers import MovedTime, TimeStuckError

from ..errors import TestingError

Run = Callable[[Any], Any]
"""Runs a coroutine in the server's thread and waits for its result."""


class ServerClock:
    """The clock of one server, or of all members of a cluster. Steps are seconds, or texts like `1d2h30m5s100ms`."""

    def __init__(self, time: Callable[[], MovedTime | None], now_ms: Callable[[], int], run: Run) -> None:
        """`time` is what moves the clock of the running server, None if that is real; `now_ms` reads it."""
        self._virtual = time
        self._now_ms = now_ms
        self._run = run

    @property
    def is_virtual(self) -> bool:
        """Whether time moves only when it is moved."""
        return self._virtual() is not None

    def now_ms(self) -> int:
        """The server's time in ms since 1970: the store time of the next message."""
        return self._now_ms()

    def advance(self, step: str | float) -> int:
        """Let a step of time pass; returns the new time (ms) once everything that became due is done and sent.

        ValueError if the step is negative or unreadable, `TestingError` if the clock is real; then nothing changes.
        `TestingError` too if timers set ever new ones for a minute of wall time; then the clock has moved a part.
        """
        moved: int = self._moved(self._time().advance(step))
        return moved

    def advance_to_next(self) -> int | None:
        """Move to the next delivery, transaction check or end of an invisible time, and do it; returns the new time.

        `None`, and time stands still, if nothing waits. The limits of held requests and the upkeep of the server do
        not count. `TestingError` if the clock is real.
        """
        moved: int | None = self._moved(self._time().advance_to_next())
        return moved

    def run(self, speed: float = 1.0) -> None:
        """Let time pass `speed` times as fast as the wall's, until the next `advance` or the end of the test.

        Returns at once. ValueError unless `speed` is a number above 0, `TestingError` if the clock is real.
        """
        time = self._time()

        async def start() -> None:
            time.run(speed)

        self._run(start())

    @property
    def aio(self) -> "AsyncClock":
        """The same methods as coroutines: the caller's event loop keeps running."""
        return AsyncClock(self)

    def _moved(self, move: Coroutine[Any, Any, Any]) -> Any:
        try:
            return self._run(move)
        except TimeStuckError as error:
            raise TestingError(str(error)) from error

    def _time(self) -> MovedTime:
        time = self._virtual()
        if time is None:
            raise TestingError(
                "the server's clock is real: start the server with virtual_time=True to move its time"
            )
        return time


class AsyncClock:
    """`await clock.aio.advance("2h")`."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock

    def now_ms(self) -> int:
        """See `ServerClock.now_ms`."""
        return self._clock.now_ms()

    async def advance(self, step: str | float) -> int:
        """See `ServerClock.advance`. A cancelled step goes on in the server."""
        return await asyncio.to_thread(self._clock.advance, step)

    async def advance_to_next(self) -> int | None:
        """See `ServerClock.advance_to_next`."""
        return await asyncio.to_thread(self._clock.advance_to_next)

    async def run(self, speed: float = 1.0) -> None:
        """See `ServerClock.run`."""
        await asyncio.to_thread(self._clock.run, speed)
