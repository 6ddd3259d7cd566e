"""An event loop without sockets and without time: it jumps to the next timer when nothing is ready.

Connections lead into a `Network`, threads are `SimulatedThread`s, and what belongs to a life that has ended is dropped.

A turn is one callback of a machine: while it runs, nobody else of that machine is served. It is measured in processor
time of the loop's thread: mostly below 20 ms, up to 100 on a machine with much other work. `run.py` says when a long
one counts.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from simulation.machines import LIFE, SimulatedThread


class StuckError(AssertionError):
    """Nothing is ready, and no timer is set; or the same moment never ends."""


class SerialTask(asyncio.Task[Any]):
    """A task that is hashed by its number: sets of tasks have the same order in each run."""

    numbers = itertools.count(1)

    def __new__(cls, *_args: Any, **_keywords: Any) -> "SerialTask":
        task = super().__new__(cls)
        task.number = next(cls.numbers)
        return task

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other


class SimulatedLoop(asyncio.BaseEventLoop):
    """`now` is the time in seconds since its start."""

    TURNS_AT_ONE_TIME = 200_000
    LONG_TURN_SECONDS = 0.25

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.network: Any = None
        self.failures: list[str] = []
        """Exceptions that nobody has caught."""
        self.longest_turn = 0.0
        self.long_turns: dict[int, str] = {}
        """By number: how long, whose, and when."""
        self._turn_count = 0
        self._turns = 0
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._note_failure)

    def time(self) -> float:
        return self.now

    def _note_failure(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], context: Context | None = None
    ) -> SerialTask:
        task = SerialTask(work, loop=loop, context=context)
        life = LIFE.get() if context is None else context.get(LIFE)
        if life is not None:
            life.tasks[task] = None
            task.add_done_callback(lambda done: life.tasks.pop(done, None))
        return task

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        if not ready:
            while scheduled and scheduled[0]._cancelled:
                heapq.heappop(scheduled)._scheduled = False
            if not scheduled:
                raise StuckError("every task waits, and no timer is set")
            if scheduled[0]._when > self.now:
                self.now, self._turns = scheduled[0]._when, 0
        self._turns += 1
        if self._turns > self.TURNS_AT_ONE_TIME:
            raise StuckError(f"time stands still at {self.now}")
        while scheduled and scheduled[0]._when <= self.now:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        began = time.thread_time()
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            life = handle._context.get(LIFE)
            if life is None or life.is_alive:
                handle._run()
                now = time.thread_time()
                if life is not None:
                    self._turn_ended(life.machine.name, now - began)
                began = now

    def _turn_ended(self, machine: str, seconds: float) -> None:
        self._turn_count += 1
        self.longest_turn = max(self.longest_turn, seconds)
        if seconds > self.LONG_TURN_SECONDS:
            self.long_turns[self._turn_count] = f"{seconds * 1000:.0f} ms of {machine} at {self.now:.6f} s"

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """They leave the heap when their time has come."""

    def _write_to_self(self) -> None:
        """No thread runs beside the loop."""

    def _process_events(self, event_list: object) -> None: ...

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        done = self.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

        def work() -> None:
            try:
                result, error = func(*args), None
            except Exception as raised:
                result, error = None, raised
            self.call_soon(settle, result, error)

        SimulatedThread(self, work).start()
        return done

    # -- the network

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        return [(2, 1, 6, "", (host or "127.0.0.1", port))]

    async def create_connection(self, factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        return await self.network.connect(factory, host, port)

    async def create_server(self, factory: Any, *, sock: Any = None, **_: Any) -> Any:  # type: ignore[override]
        return self.network.serve(factory, sock)
