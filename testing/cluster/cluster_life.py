"""What the members of a cluster share: the thread, the partitions, the addresses, the request log and the faults."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final, TypeVar

from pocketmq.broker.network.server import Server
from pocketmq.broker.node import Node

from ..faults.faults import Faults
from ..faults.watched_node import WatchedNodes
from ..server.settings import Value
from .loop_thread import LoopThread
from .partition import Partition

ResultT = TypeVar("ResultT")


class ClusterLife:
    """From the first start of a cluster to its end. But for `run`, everything is used on the thread's loop."""

    def __init__(self, thread: LoopThread, settings: Mapping[str, Value]) -> None:
        self.settings: Final = settings
        self.partition: Final = Partition()
        self.name_servers: Final[dict[str, str]] = {}
        """The address of each name server, by its name."""
        self.watched: WatchedNodes | None = None
        """None until the request log or the faults are used."""
        self.settle: Callable[[], Awaitable[None]]
        """Register every broker where it is reachable, and let slaves follow. Set by the cluster."""
        self.forgotten: Callable[[str, int], Awaitable[None]]
        """Wait until the name servers that cannot reach a broker, given by name and id, have forgotten it."""
        self.faults: Callable[[], Faults]
        """The faults of the cluster. Set by the cluster, like the two above."""
        self._thread = thread

    def run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        return self._thread.run(work)

    def name_servers_of(self, member: str) -> str:
        """The name servers that a member reaches, joined by `;`."""
        return ";".join(
            address
            for name, address in self.name_servers.items()
            if not self.partition.separates(member, name)
        )

    # -- watching

    def attach(self, node: Node) -> None:
        if self.watched is not None:
            self.watched.attach(node)

    def detach(self, node: Node) -> None:
        if self.watched is not None:
            self.watched.detach(node)

    def watch(self, server: Server, name_server: str) -> None:
        if self.watched is not None:
            self.watched.watch(server, name_server=name_server)

    def unwatch(self, server: Server) -> None:
        if self.watched is not None:
            self.watched.unwatch(server)
