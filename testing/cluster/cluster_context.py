"""What the members of a cluster share: the thread, the partitions, the addresses, the time, requests and faults."""

import socket
import sys
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.errors import StartError
from pocketmq.store import WallClock

from ..errors import WrongValueError
from ..faults.watched_node import WatchedNodes
from ..requests.values import check_choice, check_names
from ..server.loop_thread import LoopThread
from ..server.settings import Value, broker_config
from ..time.virtual_time import VirtualTime
from ..time.virtual_timers import VirtualTimers


class ClusterContext:
    """From the first start of a cluster to its end. But for `thread`, everything is used on the thread's loop."""

    def __init__(self, thread: LoopThread, settings: Mapping[str, Value], seed: int | None) -> None:
        self.settings: Final = settings
        self._seed = seed
        self.time: VirtualTime | None = None
        """Moves the clock that all brokers share; None if they follow the wall's time."""
        self.partition: Final = Partition()
        self.name_servers: Final[dict[str, str]] = {}
        """The address of each name server, by its name."""
        self.serves_grpc = False
        """Whether every master has a gRPC port."""
        self.grpc_addresses: Final[dict[str, str]] = {}
        """The gRPC ports of the brokers that have one, by the brokers' addresses."""
        rules_seed = self.seed_of("rules")
        random = None if rules_seed is None else Random(rules_seed)
        self.watched: Final = WatchedNodes(thread.call, random=random)
        self.settle: Callable[[], Awaitable[None]]
        """Register every broker where it is reachable, and let slaves follow. Set by the cluster."""
        self.forgotten: Callable[[Any], Awaitable[None]]
        """Wait until the name servers that cannot reach a broker have forgotten it."""
        self.serve_grpc: Callable[[], Coroutine[Any, Any, None]]
        """Give every master a gRPC port. Set by the cluster, like those above."""
        self.thread: Final = thread

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
        self.time = VirtualTime()
        self.watched.timers = self.time.join()  # they stay while brokers start and end

    def now_ms(self) -> int:
        """The brokers' time, in ms since 1970."""
        return WallClock().now_ms() if self.time is None else self.time.now_ms()

    def join_timers(self) -> VirtualTimers | None:
        """Timers for a broker that starts; None by the wall's time."""
        return None if self.time is None else self.time.join()

    def leave_timers(self, timers: VirtualTimers | None) -> None:
        """A broker has ended: drop what it wanted to do later."""
        if self.time is not None and timers is not None:
            self.time.leave(timers)

    def seed_of(self, member: str) -> int | None:
        """Every member has another one: two brokers with one seed would make the same message ids."""
        return None if self._seed is None else self._seed ^ zlib.crc32(member.encode())


class HeldPort:
    """The port of a member that is stopped: bound without listening, so that connecting is refused.

    A port that nobody holds could become the local end of any other connection, even of a client that tries to connect
    to it, which would then be connected with itself. Linux lets a server listen on a port that is only bound; other
    systems do not, and there the port is not held. `hold` and `release` mirror each other.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None

    def hold(self, host: str, port: int) -> None:
        """Keep others from it. Without effect if somebody was faster; then the next start says so."""
        if self._socket is not None or sys.platform != "linux":
            return
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        held = socket.socket(family, socket.SOCK_STREAM)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # our server may bind it, too
        try:
            held.bind((host, port))
        except OSError:
            held.close()
        else:
            self._socket = held

    def release(self) -> None:
        held, self._socket = self._socket, None
        if held is not None:
            held.close()


class Member:
    """A broker or a name server. Its methods return when the thing is done, from any thread but the cluster's own."""

    def __init__(self, context: ClusterContext, name: str) -> None:
        self.name = name
        self._context = context
        self._held = HeldPort()

    def stop(self) -> None:
        """Stop cleanly: unregister, answer held requests, close the connections, save. Nothing if it is stopped."""
        self._context.thread.run(self.stop_here())

    def start(self) -> None:
        """Start again on the same port and files; returns once the name servers have what reaches them in their routes.

        `StartError` if it runs already, or if it cannot start.
        """
        self._context.thread.run(self._start_and_settle())

    async def _start_and_settle(self) -> None:
        await self.start_here()
        await self._context.settle()

    async def start_here(self) -> None:
        """On the cluster's loop; the brokers are registered later."""
        raise NotImplementedError

    async def stop_here(self) -> None:
        """On the cluster's loop."""
        raise NotImplementedError

    def end(self) -> None:
        """The cluster has ended: give the port back."""
        self._held.release()


_CHOSEN: Final = (
    "brokerName",
    "brokerId",
    "namesrvAddr",
    "listenPort",
    "haListenPort",
    "haMasterAddress",
    "advertise",
    "grpcServerPort",
)
"""What the cluster chooses itself."""
_DEFAULTS: Final[Mapping[str, Value]] = {
    # The official intervals: a killed broker forgets as much as an official one.
    "flushConsumerOffsetInterval": 5_000,
    "flushDelayOffsetInterval": 10_000,
}


def check_settings(settings: Mapping[str, Value]) -> None:
    """Raises `StartError` for a key that the cluster chooses."""
    for key in settings:
        if key in _CHOSEN:
            raise StartError(f"settings: a cluster chooses {key} for each of its members; leave it out")


def member_config(
    settings: Mapping[str, Value], *, name: str, broker_id: int, store: Path, port: int, name_servers: str
) -> BrokerConfig:
    """The settings of one broker. Raises `StartError`: one line with key and value."""
    own: dict[str, Value] = {
        **_DEFAULTS,
        **settings,
        "brokerName": name,
        "brokerId": broker_id,
        "namesrvAddr": name_servers,
        "listenPort": port,
    }
    if broker_id:
        own["brokerRole"] = "SLAVE"
    return broker_config(own, conf=None, store=store, is_temporary=True)


class Partition:
    """Pairs of members that cannot reach each other; clients reach all. Several partitions add up until `heal`."""

    def __init__(self) -> None:
        self._pairs: set[frozenset[str]] = set()

    def cut(self, one_side: Sequence[str], other_side: Sequence[str], members: Sequence[str]) -> None:
        """Add a partition. Raises `WrongValueError` for a name that no member has, or one on both sides."""
        sides = [
            [check_choice("a member", name, members) for name in check_names(word, side)]
            for word, side in (("one_side", one_side), ("other_side", other_side))
        ]
        for name in sides[0]:
            if name in sides[1]:
                raise WrongValueError(f"{name} must be on one side of a partition only", list(members))
        self._pairs |= {frozenset((one, other)) for one in sides[0] for other in sides[1]}

    def heal(self) -> None:
        self._pairs.clear()

    def separates(self, one: str, other: str) -> bool:
        return frozenset((one, other)) in self._pairs
