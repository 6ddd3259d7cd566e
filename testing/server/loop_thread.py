"""A thread with an event loop: for an embedded server, for all members of a cluster, for a client of a test."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from pocketmq.broker.process import loop_factory

from ..errors import NotRunningError

ResultT = TypeVar("ResultT")


class LoopThread:
    """`start` and `stop` mirror each other; uvloop if it is installed. Without a running thread every call raises
    `NotRunningError` with the text `not_running`."""

    def __init__(self, name: str, not_running: str) -> None:
        self._name = name
        self._not_running = not_running
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked_to_stop: Future[None] = Future()

    @property
    def is_running(self) -> bool:
        return self._loop is not None

    def start(self) -> None:
        """Return once the loop runs. OSError if the system has nothing left for one."""
        started: Future[asyncio.AbstractEventLoop] = Future()
        self._asked_to_stop = Future()
        self._thread = threading.Thread(
            target=self._serve, args=(started, self._asked_to_stop), name=self._name, daemon=True
        )
        self._thread.start()
        try:
            self._loop = started.result()
        except BaseException:
            self._thread = None
            raise

    def stop(self) -> None:
        """Cancel what still runs in it, and wait for its end. Does nothing if it does not run."""
        thread, self._thread, self._loop = self._thread, None, None
        if thread is not None:
            self._asked_to_stop.set_result(None)
            thread.join()

    def _serve(self, started: "Future[asyncio.AbstractEventLoop]", asked_to_stop: "Future[None]") -> None:
        async def live() -> None:
            started.set_result(asyncio.get_running_loop())
            await asyncio.wrap_future(asked_to_stop)

        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(live())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)  # no descriptor is left for a loop

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run a coroutine in the thread and wait for its result. `NotRunningError` from the thread itself, which cannot
        wait for itself."""
        try:
            self.refuse_own_thread()
        except NotRunningError:
            work.close()
            raise
        return self._begun(work).result()

    async def run_async(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """As `run`, without blocking the caller's loop. Cancelling it cancels the work."""
        return await asyncio.wrap_future(self._begun(work))

    def _begun(self, work: Coroutine[Any, Any, ResultT]) -> "Future[ResultT]":
        loop = self._loop
        if loop is None:
            work.close()
            raise NotRunningError(self._not_running)
        return asyncio.run_coroutine_threadsafe(work, loop)

    def refuse_own_thread(self) -> None:
        """Raises `NotRunningError` in the thread itself, which cannot wait for itself."""
        if threading.current_thread() is self._thread:
            raise NotRunningError("the server's own thread cannot wait for itself")

    def call(self, function: Callable[..., ResultT], *arguments: Any) -> ResultT:
        """Call a function in the thread and wait for its result; errors as of `run`."""

        async def called() -> ResultT:
            return function(*arguments)

        return self.run(called())


class Lifetime:
    """Started at the beginning of a block and stopped at its end."""

    def start(self) -> Self:
        """Return once it runs. If that fails, nothing is left behind."""
        raise NotImplementedError

    def stop(self) -> None:
        """Wait until it has ended. Does nothing if it does not run."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        """The caller's loop keeps running. If the start is cancelled, what was started is stopped again."""
        starting = asyncio.create_task(asyncio.to_thread(self.start))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait((starting,))
            await asyncio.to_thread(self.stop)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        stopping = asyncio.create_task(asyncio.to_thread(self.stop))
        try:
            await asyncio.shield(stopping)
        except asyncio.CancelledError:
            await asyncio.wait((stopping,))
            raise
