"""The computers of the simulation: each has an address, clocks and a disk, and lives until it is killed or loses power.

`LIFE` says in every callback, task and thread whose code runs. What belongs to a life that has ended never runs again:
the loop drops its callbacks, and its threads end. A machine that starts again gets a new life on the same disk.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from pocketmq.store import layout

from losing_disk import LosingDisk

if TYPE_CHECKING:
    from simulation.loop import SimulatedLoop

START_MS = 1_700_000_000_000
LIFE: ContextVar["Life | None"] = ContextVar("life", default=None)


class MachineClock:
    """The calendar of one machine: the loop's time, plus what the clock is wrong by."""

    is_virtual = False

    def __init__(self, loop: "SimulatedLoop") -> None:
        self._loop = loop
        self.skew_ms = 0

    def now_ms(self) -> int:
        return START_MS + self.skew_ms + int(self._loop.now * 1000)

    wall_ms = now_ms

    def from_wall_ms(self, wall_ms: int) -> int:
        return wall_ms

    def lag_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> int:
        return int(self._loop.now * 1000)


class Life:
    """A machine from its start to its end."""

    numbers = itertools.count(1)

    def __init__(self, machine: "Machine") -> None:
        self.machine = machine
        self.is_alive = True
        self.threads: dict[SimulatedThread, None] = {}
        self.tasks: dict[Any, None] = {}
        """Kept to the end of the run: the `finally` of a task that nobody holds would run."""
        self.context: Context = copy_context()
        self.context.run(LIFE.set, self)

    def end(self) -> None:
        self.is_alive = False
        for thread in list(self.threads):
            thread.kill()


class Machine:
    """`disk` keeps its content between lives; None for a client."""

    def __init__(self, name: str, ip: str, loop: "SimulatedLoop", chance: Random, root: Path | None) -> None:
        self.name, self.ip = name, ip
        self.clock = MachineClock(loop)
        self.chance = chance
        """Decides how long its disk takes."""
        self.root = root
        self.disk = None if root is None else LosingDisk(root, chance)
        self.is_full = False
        """Whether the disk refuses new blocks (ENOSPC)."""
        self.slow_disk_seconds = 0.0
        self.log_needs_seconds = 0.0
        """How long the disk of the commit log needs at most; 0 if it is the one of all files."""
        self.on_forced: Callable[[Path], None] | None = None
        """Called with each file that was forced."""
        self.life: Life | None = None
        self.past: list[object] = []
        """What earlier lives have left in memory."""

    def disk_seconds(self, path: Path) -> float:
        """How long the disk needs to force a file."""
        seconds = 0.0005 + self.chance.random() ** 4 * (0.02 + self.slow_disk_seconds)
        if self.log_needs_seconds and path.parent.name == layout.COMMIT_LOG:
            seconds += self.chance.uniform(0.5, 1) * self.log_needs_seconds
        return seconds

    @property
    def is_up(self) -> bool:
        return self.life is not None and self.life.is_alive

    def begin(self) -> Life:
        assert not self.is_up
        self.life = Life(self)
        return self.life

    def end(self) -> None:
        if self.life is not None and self.life.is_alive:
            self.life.end()
            self.past.append(self.life)


class ThreadKilledError(BaseException):
    """Raised in a thread of a machine that has ended."""


class SimulatedThread:
    """A thread that runs only while the loop waits for it: from one `pause` to the next."""

    current: "SimulatedThread | None" = None

    def __init__(self, loop: "SimulatedLoop", target: Callable[[], None]) -> None:
        life = LIFE.get()
        assert life is not None
        self._life, self._loop = life, loop
        self._target, self._context = target, copy_context()
        self._may_run, self._has_paused = threading.Lock(), threading.Lock()
        self._may_run.acquire()
        self._has_paused.acquire()
        self._timer: Any = None
        self._is_killed = False
        self.is_over = False
        self.needs_others = False
        """Whether it waits for what another thread of the machine does."""
        self._thread = threading.Thread(target=lambda: self._context.run(self._main), daemon=True)
        life.threads[self] = None

    def start(self) -> None:
        self._thread.start()
        self._timer = self._loop.call_soon(self.step)

    def join(self, timeout: float | None = None) -> None:
        """The machine waits, the world does not: all that the thread has to do takes no time."""
        while not self.is_over:
            self.step()
            if self.needs_others:
                for other in [one for one in self._life.threads if one is not self]:
                    other.step()

    def _main(self) -> None:
        self._may_run.acquire()
        try:
            if not self._is_killed:
                self._target()
        except ThreadKilledError:
            pass
        except BaseException as error:
            self._loop.call_exception_handler({"message": "a thread failed", "exception": error})
        self.is_over = True
        self._life.threads.pop(self, None)
        self._has_paused.release()

    def step(self) -> None:
        """In the loop's thread: let it run to its next pause."""
        if self.is_over:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        before, SimulatedThread.current = SimulatedThread.current, self
        self._may_run.release()
        self._has_paused.acquire()
        SimulatedThread.current = before

    def pause(self, seconds: float | None) -> None:
        """In the thread: go on after so many seconds, or when somebody calls `wake`."""
        if seconds is not None:
            self._timer = self._loop.call_later(seconds, self.step)
        self._has_paused.release()
        self._may_run.acquire()
        if self._is_killed:
            raise ThreadKilledError

    def wake(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_soon(self.step)

    def kill(self) -> None:
        self._is_killed = True
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):
                self.step()
