"""One broker of a cluster: `cluster.broker("b0")`, and the slaves `cluster.broker("b0-1")`."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from pocketmq.broker.broker import Broker
from pocketmq.broker.config.addresses import host_and_port
from pocketmq.broker.errors import StartError
from pocketmq.broker.network.server import Server
from pocketmq.broker.network.watch import ReplyBody, Watchable, Watched, Watcher, whole_body
from pocketmq.broker.node import Node
from pocketmq.protocol.wire.command import Command

from ..errors import TestingError
from ..faults.routes import RouteRule
from ..faults.sending import ReadyReply
from ..faults.shaping import later
from ..requests.values import check_number
from ..time.virtual_timers import VirtualTimers
from .cluster_context import ClusterContext, HeldPort, Member, member_config

if TYPE_CHECKING:
    from pocketmq.grpc_endpoint.endpoint import Endpoint


class ClusterBroker(Member):
    """The port stays the same whatever happens to it."""

    def __init__(self, context: ClusterContext, broker_name: str, broker_id: int, store: Path) -> None:
        super().__init__(context, f"{broker_name}-{broker_id}" if broker_id else broker_name)
        self.broker_name = broker_name
        """As routes name it: a master and its slaves share it."""
        self.broker_id = broker_id
        """0: a master."""
        self.cluster_name = ""
        self._store = store
        self._node: Node | None = None
        self._timers: VirtualTimers | None = None
        self._addr = ""
        self._hidden: RouteRule | None = None
        self._grpc = ClusterGrpcPort(context.grpc_addresses)
        self._slow: list[tuple[Watchable, SlowAnswers]] = []
        self._slow_seconds = 0.0
        self._changing = asyncio.Lock()
        """Held while it starts or ends: two threads of a test may ask at once."""
        self._followed: Node | None = None
        """The master's node that it copies."""
        self._is_fresh = False
        """Whether it was started and `follow` has not decided yet what it copies."""

    @property
    def addr(self) -> str:
        """`127.0.0.1:port`, also while it is stopped."""
        return self._addr

    @property
    def grpc_endpoint(self) -> str:
        """`127.0.0.1:port` for gRPC clients, also while it is stopped. The first use on a cluster gives every master
        such a port. `TestingError` for a slave, which has none."""
        if self.broker_id:
            raise TestingError(f"{self.name} is a slave and has no gRPC port: use {self.broker_name}")
        self._context.thread.run(self._context.serve_grpc())
        return self._grpc.address

    @property
    def is_running(self) -> bool:
        return self._node is not None

    @property
    def node(self) -> Node:
        """Its parts, for use inside `cluster.call` and `cluster.run`. `TestingError` while it is stopped."""
        if self._node is None:
            raise TestingError(f"broker {self.name} is not running")
        return self._node

    # -- what a test does with it

    def kill(self) -> None:
        """End as after kill -9: connections are reset, no peer is notified, nothing is saved. What was acknowledged
        is kept: the next start recovers it. Does nothing if it is stopped."""
        self._context.thread.run(self._kill_here())

    def hide(self) -> None:
        """Routes do not name it any more; connections stay. The same as `faults.hide_broker`."""
        if self.broker_id:
            raise TestingError(f"{self.name} has its routes together with {self.broker_name}: hide that one")
        self._context.watched.begin()
        faults = self._context.watched.faults
        if self._hidden is None or self._hidden not in faults.rules:  # `faults.clear` shows it too
            self._hidden = faults.hide_broker(self.broker_name)

    def show(self) -> None:
        """Routes name it again."""
        hidden, self._hidden = self._hidden, None
        if hidden is not None:
            hidden.remove()

    def slow(self, seconds: float) -> None:
        """Every answer leaves so many seconds later, also after a restart; 0 ends it."""
        checked = check_number("seconds", seconds)

        async def change() -> None:
            self._slow_seconds = checked
            if self._node is not None:
                self._slow_down(self._node)

        self._context.thread.run(change())

    # -- on the cluster's loop

    @property
    def broker(self) -> Broker:
        return self.node.broker

    async def start_here(self) -> None:
        async with self._changing:
            await self._start()

    async def _start(self) -> None:
        if self._node is not None:
            raise StartError(f"broker {self.name} is already running")
        port = host_and_port(self._addr)[1] if self._addr else 0
        config = member_config(
            self._context.settings,
            name=self.broker_name,
            broker_id=self.broker_id,
            store=self._store,
            port=port,
            name_servers=self._context.name_servers_of(self.name),
        )
        timers = self._context.join_timers()
        seed = self._context.seed_of(self.name)
        servers: list[Server] = []

        def watch(server: Server) -> None:
            """Clients that wait for the broker connect before its start is over."""
            servers.append(server)
            self._context.watched.watch(server, broker=self.broker_name)

        node = Node(config, None, host=config.bind_address, timers=timers, seed=seed, server_made=watch)
        try:
            await node.start()
        except BaseException:
            self._context.leave_timers(timers)
            for server in servers:
                self._context.watched.unwatch(server)
            raise
        self._timers = timers
        self._node, self._addr, self.cluster_name = node, node.bound_address, config.broker_cluster_name
        self._held.release()
        self._is_fresh = True
        self._context.watched.attach(node)
        await self.serve_grpc_here()
        self._slow_down(node)

    async def serve_grpc_here(self) -> None:
        """Open the gRPC port, if masters have one and this one runs without."""
        if self._context.serves_grpc and self._node is not None and not self.broker_id:
            await self._grpc.open(self._node)
            self._slow_down(self._node)

    async def stop_here(self) -> None:
        await self._end()

    async def _kill_here(self) -> None:
        if await self._end(is_killed=True):
            await self._context.forgotten(self)

    async def _end(self, *, is_killed: bool = False) -> bool:
        """Whether it ran. It is watched to its end, because answers leave until then. Nobody else gets its port, and
        nothing that it wanted to do later is done."""
        async with self._changing:
            node, self._node, self._followed = self._node, None, None
            if node is None:
                return False
            try:
                await self._grpc.close(is_killed=is_killed)
            finally:
                try:
                    await (node.kill() if is_killed else node.stop())
                finally:
                    self._context.watched.detach(node)
            self._context.leave_timers(self._timers)
            self._held.hold(*host_and_port(self._addr))
            return True

    def end(self) -> None:
        self._grpc.end()
        super().end()

    def _slow_down(self, node: Node) -> None:
        for server, watcher in self._slow:
            server.remove_watcher(watcher)
        servers: list[Watchable] = [*node.servers, *node.side_servers]
        self._slow = [(server, SlowAnswers(self._slow_seconds)) for server in servers if self._slow_seconds]
        for server, watcher in self._slow:
            server.add_watcher(watcher)

    async def register(self) -> None:
        """Register at the name servers that it reaches, and drop the connections to the others."""
        if self._node is not None:
            self.broker.config.namesrv_addr = self._context.name_servers_of(self.name)
            await self.broker.cluster.registration.register_all(force=True)

    async def follow(self, master: "ClusterBroker") -> None:
        """On a slave: copy the log and the tables of that master if it can be reached, and else nothing."""
        if self._node is None:
            return
        is_cut = self._context.partition.separates(self.name, master.name)
        wanted = None if is_cut else master._node
        cluster = self.broker.cluster
        if wanted is not None and wanted is self._followed:
            return
        began_by_itself = self._is_fresh and cluster.metadata_sync.master_address == master.addr
        self._is_fresh = False
        if wanted is not None and began_by_itself:
            self._followed = wanted
            await cluster.metadata_sync.sync()
            return
        await cluster.replication_slave.stop()
        await cluster.metadata_sync.stop()
        self._followed = wanted
        if wanted is not None:
            cluster.replication_slave.start()
            cluster.metadata_sync.start()
            await cluster.metadata_sync.sync()

    async def has_all_of(self, master: "ClusterBroker") -> bool:
        """Copy the tables of the master; whether the log is copied too, as far as it was now. False beyond a cut."""
        if self._followed is not master._node:
            return False
        end = master.broker.store.log_end
        await self.broker.cluster.metadata_sync.sync()
        store = self.broker.store
        while store.dispatch_copied():
            pass
        return store.log_end >= end and store.dispatch_behind_bytes <= store.log_end - end


class ClusterGrpcPort:
    """`open` and `close` mirror each other, on the cluster's loop."""

    def __init__(self, addresses: dict[str, str]) -> None:
        """`addresses` are the ports of all brokers by the brokers' addresses; this one is added."""
        self.address = ""
        """`127.0.0.1:port`, also while the broker is stopped; empty before the first start with a port."""
        self._addresses = addresses
        self._endpoint: Endpoint | None = None
        self._held = HeldPort()
        self._opening = asyncio.Lock()

    async def open(self, node: Node) -> None:
        """Serve gRPC clients on a running node; nothing if it does. `StartError` if it cannot."""
        async with self._opening:  # two threads may ask at once
            if self._endpoint is not None:
                return
            from pocketmq.grpc_endpoint.endpoint import Endpoint

            port = host_and_port(self.address)[1] if self.address else 0
            endpoint = Endpoint(node, port=port, neighbours=self._addresses)
            await endpoint.start()
            self._endpoint, self.address = endpoint, endpoint.address
            self._addresses[node.broker_address] = self.address
            self.end()

    async def close(self, *, is_killed: bool = False) -> None:
        """Before its broker ends. A killed one resets its connections and tells nobody."""
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is None:
            return
        if is_killed:
            endpoint.reset()
        await endpoint.stop()
        self._held.hold(*host_and_port(self.address))

    def end(self) -> None:
        """Give the port back."""
        self._held.release()


class SlowAnswers(Watcher):
    """Watches one server of the broker. It decodes every request, also sends whose headers repeat."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._leaving: Command | None = None
        """The request whose answer leaves now."""

    def answering(self, connection: Watched, command: Command, reply: Command, body: ReplyBody) -> bool:
        if command is self._leaving:
            return False
        ready = ReadyReply(reply, whole_body(body))
        later(connection.loop, self._seconds, self._leave, connection, command, ready)
        return True

    def _leave(self, connection: Watched, command: Command, ready: ReadyReply) -> None:
        self._leaving = command
        try:
            connection.reply(command, ready.command, ready.body or None)
        finally:
            self._leaving = None
