"""Background tasks: start them with a name, keep them until they end, log what failed, cancel them all."""

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Hashable
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar

from .errors import SendTimedOut

_log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")

CANCEL_TIMEOUT_SECONDS: Final = 3.0
"""How long a cancelled task may take to end."""


class Tasks:
    """The running tasks of one owner. A task that fails is logged with its name.

    `on_failure` is called after a failed task was removed.
    """

    def __init__(self, on_failure: Callable[[], None] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._running: set[asyncio.Task[None]] = set()
        self._on_failure = on_failure

    def __len__(self) -> int:
        return len(self._running)

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run something until it ends or is cancelled."""
        task = self._loop.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def others(self) -> set[asyncio.Task[None]]:
        """Every running task but the one that calls."""
        return self._running - {asyncio.current_task()}

    async def finish(self, wait_ms: int, abandon: Callable[[], None]) -> None:
        """Wait so long for the running tasks, all but the caller's; then `abandon` cancels them, and they end."""
        tasks = self.others()
        if tasks and wait_ms > 0:
            await asyncio.wait(tasks, timeout=wait_ms / 1000)
        abandon()
        await until_ended(tasks)

    def cancel(self) -> set[asyncio.Task[None]]:
        """Cancel every running task but the one that calls, and return them."""
        tasks = self.others()
        for task in tasks:
            task.cancel()
        return tasks

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed", task.get_name(), exc_info=error)
            if self._on_failure is not None:
                self._on_failure()


class SharedWork(Generic[ResultT]):
    """Work of which one at a time is under way for each key, such as connecting to an address. `cancel` ends it all."""

    def __init__(self, start: Callable[..., Coroutine[Any, Any, ResultT]]) -> None:
        """`start` gets the parts of the key as its arguments."""
        self._start = start
        self._tasks: dict[tuple[Hashable, ...], asyncio.Task[ResultT]] = {}

    async def result(self, *key: Hashable) -> ResultT | None:
        """What the work for a key returned or raised; it begins now unless it is under way. None if it was cancelled.

        A caller that is cancelled does not end the work: others may wait for it.
        """
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.get_running_loop().create_task(
                self._start(*key), name=str(key[0])
            )
            task.add_done_callback(functools.partial(self._ended, key))
        ended = asyncio.get_running_loop().create_future()
        # Not `asyncio.wait`: each of many callers would search the list of all callbacks for its own.
        task.add_done_callback(lambda _: None if ended.done() else ended.set_result(None))
        await ended
        return None if task.cancelled() else task.result()

    def is_under_way(self, *key: Hashable) -> bool:
        """Whether a caller would wait for work that began before."""
        return key in self._tasks

    def cancel(self) -> set[asyncio.Task[ResultT]]:
        """Cancel what is under way, and return its tasks."""
        for task in self._tasks.values():
            task.cancel()
        return set(self._tasks.values())

    def _ended(self, key: tuple[Hashable, ...], task: asyncio.Task[ResultT]) -> None:
        del self._tasks[key]
        if not task.cancelled():
            task.exception()  # seen: all who waited may have left


async def cancelled(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel these tasks, and return when they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until_ended(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Return when these cancelled tasks have ended. A task that ignores its cancellation is left behind after
    `CANCEL_TIMEOUT_SECONDS`: a listener must not keep its consumer from leaving."""
    if not tasks:
        return
    _, stubborn = await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT_SECONDS)
    for task in stubborn:
        _log.error("%s does not end although it was cancelled", task.get_name())


class BackPressure:
    """Limits on sends under way as futures: how many, and how many bytes."""

    def __init__(self, *, count: int, size: int) -> None:
        self._count = count
        self._bytes = size
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def room_for(self, body_bytes: int, due: float) -> AsyncIterator[None]:
        """Wait for room and hold it; `SendTimedOut` in the official words if there is none in time."""
        try:
            async with asyncio.timeout_at(due), self._changed:
                await self._changed.wait_for(lambda: self._count > 0 and self._bytes >= body_bytes)
                self._count -= 1
                self._bytes -= body_bytes
        except TimeoutError:
            raise SendTimedOut(-1, "send message tryAcquire semaphoreAsyncNum timeout") from None
        try:
            yield
        finally:
            self._count += 1
            self._bytes += body_bytes
            async with self._changed:
                self._changed.notify_all()
