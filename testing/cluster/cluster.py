"""RocketMQCluster: name servers and brokers in one thread of this process, for as long as a `with` lasts.

    with RocketMQCluster(brokers=2, slaves=1, emulate="5") as cluster:      or      async with ...
        cluster.grow("orders", queues=4)
        run_code_under_test(cluster.namesrv_addr)
        cluster.broker("b0").kill()

Masters are called b0, b1 ..., their slaves b0-1, b0-2 ..., name servers n0, n1 ... Ports are free ones of 127.0.0.1 and
stay the same when a member is stopped and started; stores are temporary and removed at the end. Methods may be called
from any thread except the cluster's own.
"""

import asyncio
import atexit
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import msgspec
from pocketmq.broker.errors import StartError
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.topics import topic_refusal

from ..errors import MessagesMissingError, NotRunningError, WrongValueError
from ..faults.watched_node import WatchedNodes
from ..requests.values import check_bool, check_choice, check_int, check_number, check_text
from ..server.in_thread import InThread
from ..server.settings import Value, temporary_folder
from ..state.load import MAX_QUEUES
from ..time.clock import ServerClock
from .cluster_broker import ClusterBroker
from .cluster_context import ClusterContext, check_settings, member_config
from .cluster_name_server import ClusterNameServer

if TYPE_CHECKING:
    from pocketmq.console.server import Console

MAX_MEMBERS: Final = 32
WAIT_SECONDS: Final = 0.005
FORGET_SECONDS: Final = 2.0
"""At most, until a name server has noticed that a connection was cut."""


class RocketMQCluster(InThread):
    """`start` and `stop` mirror each other; both context managers call them.

    name_servers  how many name servers; every broker registers at all of them
    brokers       how many masters
    slaves        how many slaves each master has
    emulate       the official line, "4.9" or "5"
    virtual_time  the brokers' time stands still until `clock` moves it, and their timers with it
    seed          every random choice of each broker repeats
    ledger        what becomes of every message is noted, for verdicts; also with an HTTP port
    admin_port    the HTTP port, 0 for a free one; `admin_url` is its address
    settings      keywords with the names of broker.conf's keys, for all brokers

    A wrong number raises `WrongValueError`, a wrong setting `StartError` when the cluster starts. In a rule,
    `broker="b0"` limits it to one broker.
    """

    what = "cluster"

    def __init__(
        self,
        name_servers: int = 1,
        brokers: int = 3,
        slaves: int = 0,
        *,
        emulate: str | None = None,
        virtual_time: bool = False,
        seed: int | None = None,
        ledger: bool = False,
        admin_port: int | None = None,
        **settings: Value,
    ) -> None:
        super().__init__("pocketmq-cluster")
        self._name_server_count = check_int("name_servers", name_servers, least=1, most=MAX_MEMBERS)
        self._broker_count = check_int("brokers", brokers, least=1, most=MAX_MEMBERS)
        self._slave_count = check_int("slaves", slaves, least=0, most=MAX_MEMBERS)
        check_settings(settings)
        self._settings = {**settings, **({"emulate": emulate} if emulate is not None else {})}
        self._virtual_time = check_bool("virtual_time", virtual_time)
        self._seed = None if seed is None else check_int("seed", seed)
        self._keeps_ledger = check_bool("ledger", ledger) or admin_port is not None
        self._admin_port = None if admin_port is None else check_int("admin_port", admin_port, most=65_535)
        self._port: Console | None = None
        self._context = self._new_context()
        self.clock: Final = ServerClock(
            lambda: self._running().time, lambda: self._running().now_ms(), self.run
        )
        """The time of all brokers; with `virtual_time`, a test moves it."""
        self._name_servers: dict[str, ClusterNameServer] = {}
        self._brokers: dict[str, ClusterBroker] = {}
        self._folder: Path | None = None

    # -- members

    @property
    def namesrv_addr(self) -> str:
        """The addresses of all name servers, joined by `;`, also of those that are stopped."""
        self._running()
        return ";".join(server.addr for server in self._name_servers.values())

    @property
    def brokers(self) -> list[ClusterBroker]:
        """Masters and slaves."""
        return list(self._brokers.values())

    @property
    def name_servers(self) -> list[ClusterNameServer]:
        return list(self._name_servers.values())

    def broker(self, name: str) -> ClusterBroker:
        """A broker by its name: "b0" is a master, "b0-1" its first slave. `WrongValueError` names those that exist."""
        self._running()
        return self._brokers[check_choice("a broker", name, list(self._brokers))]

    def name_server(self, name: str) -> ClusterNameServer:
        """A name server by its name, "n0". `WrongValueError` names those that exist."""
        self._running()
        return self._name_servers[check_choice("a name server", name, list(self._name_servers))]

    def add_broker(self) -> ClusterBroker:
        """Start one more master, with its slaves; returns it once the name servers have it. It has no topics yet."""
        self._running()
        index = sum(not broker.broker_id for broker in self._brokers.values())
        members = self._new_brokers(f"b{index}")

        async def start() -> None:
            try:
                for member in members:
                    await member.start_here()
            except BaseException:
                for member in members:
                    await member.stop_here()
                    member.end()
                raise
            self._brokers.update({member.name: member for member in members})
            await self._settle()

        self.run(start())
        return members[0]

    @property
    def grpc_endpoint(self) -> str:
        """The gRPC ports of all masters, joined by `;`, as clients take them. The first use opens them.

        `StartError` with emulate=4.9."""
        self._running()
        return ";".join(broker.grpc_endpoint for broker in self._brokers.values() if not broker.broker_id)

    # -- watching

    @property
    def admin_url(self) -> str:
        """`http://127.0.0.1:port` of the HTTP port, which shows b0; `/brokers/b1` behind it shows b1. Faults, requests,
        clock and ledger are those of the whole cluster. `NotRunningError` without the port."""
        self._running()
        if self._port is None:
            raise NotRunningError("this cluster has no HTTP port: start it with admin_port=0")
        return self._port.url

    def _nodes(self) -> WatchedNodes:
        return self._running().watched

    # -- the network between the members

    def partition(self, one_side: Sequence[str], other_side: Sequence[str]) -> None:
        """Cut the connections between two sides, as in `partition(["b0"], ["b1", "n0"])`, and refuse new ones. Clients
        are on no side and reach everybody. A name server forgets the brokers it is cut off from at once, a slave stops
        copying its master. Several partitions add up.

        `WrongValueError` for a name that no member has, or one on both sides.
        """
        self._running()
        self._context.partition.cut(one_side, other_side, [*self._brokers, *self._name_servers])
        self.run(self._settle())

    def heal(self) -> None:
        """End all partitions; every broker is in every route again when it returns."""
        self._running()
        self._context.partition.heal()
        self.run(self._settle())

    # -- topics

    def grow(self, topic: str, queues: int = 6) -> None:
        """Give a topic so many queues on every master that runs; it is made where it does not exist. Returns once name
        servers and slaves know it.

        `WrongValueError` for a name that is not allowed, or fewer queues than it has.
        """
        check_text("topic", topic)
        check_int("queues", queues, least=1, most=MAX_QUEUES)
        refusal = topic_refusal(topic, emulate=5)
        if refusal is not None:
            raise WrongValueError(refusal, ["the name of a topic"])
        self.run(self._grow(topic, queues))

    async def _grow(self, topic: str, queues: int) -> None:
        masters = [one for one in self._brokers.values() if one.is_running and not one.broker_id]
        for master in masters:
            config = master.broker.topics.topics.get(topic)
            if config is not None and max(config.read_queue_nums, config.write_queue_nums) > queues:
                most = max(config.read_queue_nums, config.write_queue_nums)
                raise WrongValueError(
                    f"queues must be at least {most}, which topic {topic} has on {master.name}, got {queues}",
                    [f"a whole number of at least {most}"],
                )
        for master in masters:
            topics = master.broker.topics
            known = topics.topics.get(topic) or TopicConfig(topic_name=topic)
            topics.update(msgspec.structs.replace(known, read_queue_nums=queues, write_queue_nums=queues))
            await master.broker.cluster.registration.wait_until_sent()
            await master.broker.tables.wait_until_saved(topics)
        for slave, master in self._pairs():
            if slave.is_running and master.is_running:
                await slave.has_all_of(master)

    def wait_replicated(self, timeout_seconds: float = 5.0) -> None:
        """Return once every slave that runs has what its master has now: messages, topics, groups and offsets.

        `MessagesMissingError` names a slave that has not after the time.
        """
        self.run(self._wait_replicated(check_number("timeout_seconds", timeout_seconds)))

    async def _wait_replicated(self, timeout_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_seconds
        for slave, master in self._pairs():
            while slave.is_running and master.is_running and not await slave.has_all_of(master):
                if loop.time() > deadline:
                    raise MessagesMissingError(
                        f"slave {slave.name} has {slave.broker.store.log_end} bytes of the log of {master.name}, "
                        f"which has {master.broker.store.log_end}, after {timeout_seconds:g} s"
                    )
                await asyncio.sleep(WAIT_SECONDS)

    def _pairs(self) -> list[tuple[ClusterBroker, ClusterBroker]]:
        """Each slave with its master."""
        brokers = self._brokers
        return [(one, brokers[one.broker_name]) for one in brokers.values() if one.broker_id]

    # -- start and stop

    def start(self) -> Self:
        """Return once clients can connect. `StartError` or `StoreError`, with one clear line, if a member cannot start;
        nothing is left behind."""
        if self._thread.is_running:
            raise StartError("this cluster is already running")
        self._folder = temporary_folder()
        atexit.register(self.stop)
        try:
            self._thread.start()
            self.run(self._start_all())
            if self._keeps_ledger:
                self.call(self._context.watched.keep_ledger)
            if self._admin_port is not None:
                from .cluster_port import console_of  # loads what a cluster without the port does not need

                self._port = console_of(self._context, self._brokers)
                host = str(self._settings.get("bindAddress", "127.0.0.1"))
                self.run(self._port.start(host, self._admin_port))
        except BaseException:
            self.stop()
            raise
        return self

    async def _start_all(self) -> None:
        assert self._folder is not None
        if self._virtual_time:
            self._context.begin_virtual_time()
        config = member_config(
            self._settings, name="b0", broker_id=0, store=self._folder, port=0, name_servers=""
        )
        for index in range(self._name_server_count):
            name = f"n{index}"
            name_server = ClusterNameServer(self._context, name, config, self._folder / name)
            self._name_servers[name] = name_server
            await name_server.start_here()
        for index in range(self._broker_count):
            for member in self._new_brokers(f"b{index}"):
                self._brokers[member.name] = member
                await member.start_here()
        await self._follow_masters()

    def _new_brokers(self, name: str) -> list[ClusterBroker]:
        """A master and its slaves."""
        assert self._folder is not None
        return [
            ClusterBroker(self._context, name, broker_id, self._folder / f"{name}-{broker_id}")
            for broker_id in range(self._slave_count + 1)
        ]

    def stop(self) -> None:
        """Stop all members and remove their files. Does nothing if the cluster is not running. Raises what went wrong,
        after everything else has ended."""
        self._thread.refuse_own_thread()
        try:
            if self._thread.is_running:
                self.run(self._stop_all())
        finally:
            self._thread.stop()
            for broker in self._brokers.values():
                broker.end()
            for name_server in self._name_servers.values():
                name_server.end()
            folder, self._folder = self._folder, None
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            self._brokers.clear()
            self._name_servers.clear()
            self._context = self._new_context()  # a later start begins anew
            atexit.unregister(self.stop)

    async def _stop_all(self) -> None:
        """Slaves and masters together, then the name servers, at which they unregister."""
        results: list[BaseException | None] = []
        if self._context.time is not None:
            await self._context.time.stop()
        if self._port is not None:
            await self._port.stop()
            self._port = None
        for members in (self._brokers, self._name_servers):
            results += await asyncio.gather(
                *(member.stop_here() for member in members.values()), return_exceptions=True
            )
        for result in results:
            if result is not None:
                raise result

    def _new_context(self) -> ClusterContext:
        context = ClusterContext(self._thread, self._settings, self._seed)
        context.settle, context.forgotten = self._settle, self._forgotten
        context.serve_grpc = self._serve_grpc
        return context

    # -- on the loop

    async def _settle(self) -> None:
        """Every broker is registered exactly where it reaches a name server, and slaves copy masters they reach.

        Masters first: from their registrations slaves learn their addresses.
        """
        for is_slave in (False, True):
            members = [one for one in self._brokers.values() if bool(one.broker_id) is is_slave]
            await asyncio.gather(*(member.register() for member in members))
        for member in self._brokers.values():
            await self._forgotten(member)
        await self._follow_masters()

    async def _serve_grpc(self) -> None:
        if self._context.serves_grpc:
            return
        self._context.serves_grpc = True
        try:
            for broker in self._brokers.values():
                await broker.serve_grpc_here()
        except BaseException:
            self._context.serves_grpc = False
            raise

    async def _follow_masters(self) -> None:
        for slave, master in self._pairs():
            await slave.follow(master)

    async def _forgotten(self, member: ClusterBroker) -> None:
        """Wait until no name server has a broker that is stopped, or that it cannot reach."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FORGET_SECONDS
        for name_server in self._name_servers.values():
            is_cut = self._context.partition.separates(member.name, name_server.name)
            if member.is_running and not is_cut:
                continue
            while name_server.knows(member.broker_name, member.broker_id):
                if loop.time() > deadline:
                    break
                await asyncio.sleep(0.001)

    def _running(self) -> ClusterContext:
        if not self._thread.is_running:
            raise NotRunningError("the cluster is not running")
        return self._context
