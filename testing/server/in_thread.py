"""InThread: what an embedded server and a cluster have in common. Both live in a thread, and are watched in one way."""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeVar

from ..errors import NotRunningError
from ..faults.faults import Faults
from ..faults.watched_node import WatchedNodes
from ..ledger.ledger import Ledger
from ..requests.requests import Requests
from .loop_thread import Lifetime, LoopThread

ResultT = TypeVar("ResultT")


class InThread(Lifetime):
    """Methods may be called from any thread except its own."""

    what: ClassVar[str]
    """What errors call it."""

    def __init__(self, thread_name: str) -> None:
        self._thread = LoopThread(thread_name, f"the {self.what} is not running")

    # -- watching

    def _nodes(self) -> WatchedNodes:
        raise NotImplementedError

    @property
    def watched(self) -> WatchedNodes:
        """The request log, the faults and the ledger. Requests are logged from the first use of this on."""
        nodes = self._nodes()
        nodes.begin()
        return nodes

    @property
    def requests(self) -> Requests:
        """Every request and reply; begins with the first use of `requests` or `faults`."""
        return self.watched.requests

    @property
    def faults(self) -> Faults:
        """What goes wrong."""
        return self.watched.faults

    @property
    def ledger(self) -> Ledger:
        """What became of every message. `NotRunningError` without `ledger=True`."""
        ledger = self.watched.ledger
        if ledger is None:
            raise NotRunningError(
                f"this {self.what} keeps no ledger: start it, or mark the test, with ledger=True"
            )
        return ledger

    # -- in the thread

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Run a coroutine on the thread's loop and wait for its result."""
        return self._thread.run(work)

    async def run_async(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        """As `run`, without blocking the caller's loop. Cancelling it cancels the work."""
        return await self._thread.run_async(work)

    def call(self, function: Callable[..., ResultT], *arguments: Any) -> ResultT:
        """Call a function in the thread, where the parts of brokers may be read and changed."""
        return self._thread.call(function, *arguments)
