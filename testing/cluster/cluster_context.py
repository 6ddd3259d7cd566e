"""What the members of a cluster share: the thread, the partitions, the addresses, the time, requests and faults."""

import zlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import Any, Final, Protocol, TypeVar

from pocketmq.broker.network.server import Server
from pocketmq.broker.node import Node
from pocketmq.store import VirtualClock, WallClock

from ..faults.faults import Faults
from ..faults.watched_node import WatchedNodes
from ..server.loop_thread import LoopThread
from ..server.settings import Value
from ..time.joint_timers import SharedClockTimers
from ..time.virtual_time import VirtualTime
from ..time.virtual_timers import VirtualTimers
from .partition import Partition

ResultT = TypeVar("ResultT")


class WatchedServer(Protocol):
    """A name server of the cluster."""

    name: str

    @property
    def server(self) -> Server | None: ...


class WatchedBroker(Protocol):
    """A broker of the cluster."""

    broker_name: str
    broker_id: int
    cluster_name: str

    @property
    def addr(self) -> str: ...

    @property
    def is_running(self) -> bool: ...

    @property
    def node(self) -> Node: ...


class ClusterContext:
    """From the first start of a cluster to its end. But for `run`, everything is used on the thread's loop."""

    def __init__(self, thread: LoopThread, settings: Mapping[str, Value], seed: int | None) -> None:
        self.settings: Final = settings
        self._seed = seed
        self._timers: SharedClockTimers | None = None
        self.time: VirtualTime | None = None
        """Moves the clock that all brokers share; None if they follow the wall's time."""
        self.partition: Final = Partition()
        self.name_servers: Final[dict[str, str]] = {}
        """The address of each name server, by its name."""
        self.serves_grpc = False
        """Whether every master has a gRPC port."""
        self.grpc_addresses: Final[dict[str, str]] = {}
        """The gRPC ports of the brokers that have one, by the brokers' addresses."""
        self.watched: WatchedNodes | None = None
        """None until the request log or the faults are used."""
        self.settle: Callable[[], Awaitable[None]]
        """Register every broker where it is reachable, and let slaves follow. Set by the cluster."""
        self.forgotten: Callable[[str, int], Awaitable[None]]
        """Wait until the name servers that cannot reach a broker, given by name and id, have forgotten it."""
        self.serve_grpc: Callable[[], Coroutine[Any, Any, None]]
        """Give every master a gRPC port. Set by the cluster."""
        self.faults: Callable[[], Faults]
        """The faults of the cluster. Set by the cluster, like those above."""
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

    # -- time and chance

    def begin_virtual_time(self) -> None:
        """The brokers that start from now on share a clock, which starts at the wall's time and is moved by hand."""
        wall = WallClock()
        self._timers = SharedClockTimers(VirtualClock(wall.now_ms(), wall=wall))
        self.time = VirtualTime(self._timers)

    def now_ms(self) -> int:
        """The brokers' time, in ms since 1970."""
        return WallClock().now_ms() if self.time is None else self.time.now_ms()

    def join_timers(self) -> VirtualTimers | None:
        """Timers for a broker that starts; None by the wall's time."""
        return None if self._timers is None else self._timers.join()

    def leave_timers(self, timers: VirtualTimers | None) -> None:
        """A broker has ended: drop what it wanted to do later."""
        if self._timers is not None and timers is not None:
            self._timers.leave(timers)

    @property
    def own_timers(self) -> VirtualTimers | None:
        """Timers that stay while brokers start and end; None by the wall's time."""
        return None if self._timers is None else self._timers.own

    def seed_of(self, member: str) -> int | None:
        """Every member has another one: two brokers with one seed would make the same message ids."""
        return None if self._seed is None else self._seed ^ zlib.crc32(member.encode())

    # -- watching

    def begin_watching(
        self,
        call: Callable[[Callable[[], None]], None],
        name_servers: Sequence[WatchedServer],
        brokers: Sequence[WatchedBroker],
    ) -> None:
        """Log the requests of all members, also of those that start later. Nothing if they are logged."""
        if self.watched is not None:
            return
        seed = self.seed_of("rules")
        watched = WatchedNodes(call, timers=self.own_timers, random=None if seed is None else Random(seed))
        for one in name_servers:
            watched.know_name_server(one.name)
            if one.server is not None:
                watched.watch(one.server, name_server=one.name)
        for broker in brokers:
            if broker.is_running:
                watched.attach(broker.node)
            else:
                watched.add_known_broker(
                    broker.broker_name, broker.cluster_name, broker.broker_id, broker.addr
                )
        self.watched = watched

    def attach(self, node: Node) -> None:
        if self.watched is not None:
            self.watched.attach(node)

    def detach(self, node: Node) -> None:
        if self.watched is not None:
            self.watched.detach(node)

    def watch(self, server: Server, *, broker: str | None = None, name_server: str | None = None) -> None:
        if self.watched is not None:
            self.watched.watch(server, broker=broker, name_server=name_server)

    def unwatch(self, server: Server) -> None:
        if self.watched is not None:
            self.watched.unwatch(server)
