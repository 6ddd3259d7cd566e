"""EmbeddedServer: name server and broker in a thread of this process, for as long as a `with` lasts.

    with EmbeddedServer(emulate="4.9") as server:      or      async with EmbeddedServer() as server:
        run_code_under_test(server.namesrv_addr)

The thread has its own event loop (uvloop if installed), so the server works while the caller waits, blocks or runs a
loop. Clients connect over TCP to free ports of 127.0.0.1; the store is a temporary folder that is removed afterwards.
Methods may be called from any thread except the server's own.

Not here: processes, signals, standard output; those are in `pocketmq.broker.process`.
"""

import asyncio
import atexit
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Final, Self, TypeVar

from pocketmq.broker.broker import Broker
from pocketmq.broker.errors import StartError
from pocketmq.broker.network.connection import Connection
from pocketmq.broker.node import Node
from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.schema import Reply, Request
from pocketmq.store.clock import Clock

from ..errors import NotRunningError
from ..faults.watched_node import WatchedNodes
from ..state.load import LoadFunction, LoadSource, read_loads
from ..state.reset import Mark, restore, take_mark
from ..state.snapshot import Snapshot, read_snapshot, restore_snapshot, take_snapshot
from ..time.clock import ServerClock
from ..time.virtual_time import NodeTime
from .in_thread import InThread
from .settings import Value, broker_config, name_server_config, temporary_folder

REQUEST_TIMEOUT_SECONDS: Final = 5.0
ReplyT = TypeVar("ReplyT", bound=Reply)


class EmbeddedServer(InThread):
    """A name server and a broker. `start` and `stop` mirror each other; both context managers call them.

    settings, keywords  keys of broker.conf: `EmbeddedServer({"brokerName": "b"}, defaultTopicQueueNums=4)`
    conf                a broker.conf to read; settings and keywords override it
    store               a folder to keep, instead of a temporary one
    namesrv_port        0 picks a free port, as does the default of `listenPort`
    virtual_time        the broker's time stands still until `clock` moves it, and its timers with it
    clock               another time for store and broker; timers still run in real time
    seed                every random choice of the server repeats
    load                YAML files, dicts, or functions of `RocketMQ`: topics, groups and messages that it begins with
    advertise           `host:port` that routes name, where it is not the bound one (Docker, NAT)
    journal             a folder in which every request is recorded
    ledger              what becomes of every message is noted, for verdicts; also with an HTTP port
    admin_port          the HTTP port, 0 for a free one; `admin_url` is its address
    admin_host_names    further names of this machine that clients of the HTTP port may use
    grpc_port           the port for gRPC clients, 0 for a free one; without it, `grpc_endpoint` opens one when it is
                        first read

    A stopped server can be started again, on other ports; a kept store is opened again.
    """

    what = "server"

    def __init__(
        self,
        settings: Mapping[str, Value] | None = None,
        /,
        *,
        conf: str | Path | None = None,
        store: str | Path | None = None,
        namesrv_port: int = 0,
        virtual_time: bool = False,
        clock: Clock | None = None,
        seed: int | None = None,
        load: Sequence[LoadSource | LoadFunction] = (),
        advertise: str = "",
        journal: str | Path | None = None,
        admin_port: int | None = None,
        admin_host_names: Sequence[str] = (),
        grpc_port: int | None = None,
        ledger: bool = False,
        **keys: Value,
    ) -> None:
        super().__init__("pocketmq-embedded")
        self._conf = None if conf is None else Path(conf)
        self._store = None if store is None else Path(store)
        self._namesrv_port = namesrv_port
        self._clock = clock
        self._virtual_time = virtual_time
        self.clock = ServerClock(
            lambda: self._running().time, lambda: self._running().broker.clock.now_ms(), self.run
        )
        """The server's time; with `virtual_time`, a test moves it."""
        self._journal = None if journal is None else Path(journal)
        self._admin_port = admin_port
        self._admin_host_names = tuple(admin_host_names)
        self._admin_url = self._grpc_endpoint = ""
        self._ports = AsyncExitStack()
        """Those beside the remoting ones. What a server without them needs is not loaded."""
        self._opening = asyncio.Lock()
        self._keeps_ledger = ledger or admin_port is not None
        self._settings = {**(settings or {}), **keys, **({"advertise": advertise} if advertise else {})}
        if grpc_port is not None:
            self._settings["grpcServerPort"] = grpc_port
        self._seed = seed
        self._load = tuple(load)
        self._node: Node | None = None
        self._first_mark: Mark | None = None
        self._folder: Path | None = None
        """Of the store, while it runs."""
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._watched = WatchedNodes(self.call)

    def like(
        self, settings: Mapping[str, Value], *, virtual_time: bool | None = None, seed: int | None = None
    ) -> "EmbeddedServer":
        """A server as this one, with these on top; not started. Its store is a temporary one."""
        return EmbeddedServer(
            {**self._settings, **settings},
            conf=self._conf,
            virtual_time=self._virtual_time if virtual_time is None else virtual_time,
            seed=self._seed if seed is None else seed,
            load=self._load,
        )

    # -- addresses

    @property
    def namesrv_addr(self) -> str:
        """`127.0.0.1:port`, what clients call namesrvAddr."""
        return self._running().namesrv_address

    @property
    def broker_addr(self) -> str:
        """`127.0.0.1:port` of the broker, as its routes say."""
        return self._running().broker_address

    @property
    def admin_url(self) -> str:
        """`http://127.0.0.1:port` of the HTTP port. `NotRunningError` without one."""
        self._running()
        if not self._admin_url:
            raise NotRunningError("this server has no HTTP port: start it with admin_port=0")
        return self._admin_url

    @property
    def grpc_endpoint(self) -> str:
        """`127.0.0.1:port` for gRPC clients. The first use opens the port, if the server has none yet. `StartError`
        with emulate=4.9."""
        node = self._running()
        if not self._grpc_endpoint:
            self.run(self._open_grpc(node))
        return self._grpc_endpoint

    @property
    def has_grpc_port(self) -> bool:
        """Whether gRPC clients can connect."""
        return bool(self._grpc_endpoint)

    @property
    def broker(self) -> Broker:
        """The parts of the broker. They belong to the server's thread: use them only inside `call` or `run`."""
        return self._running().broker

    @property
    def node(self) -> Node:
        """Name server and broker together; like `broker`, only for the server's thread."""
        return self._running()

    def _nodes(self) -> WatchedNodes:
        return self._watched

    # -- start and stop

    def start(self) -> Self:
        """Return once clients can connect. `StartError` or `StoreError`, with one clear line, if the server cannot
        start; nothing is left behind."""
        if self._thread.is_running:
            raise StartError("this server is already running")
        if self._virtual_time and self._clock is not None:
            raise StartError("virtual_time makes the server's clock: give either virtual_time or clock")
        loads = read_loads(self._load)
        store = self._folder = self._store or temporary_folder()
        try:
            self._start_in(store)
            if loads:
                self.load(*loads)
            self.keep_state()
        except BaseException:
            self.stop()
            raise
        return self

    def _start_in(self, store: Path) -> None:
        is_temporary = self._store is None
        config = broker_config(self._settings, conf=self._conf, store=store, is_temporary=is_temporary)
        name_server = name_server_config(
            self._settings, conf=self._conf, store=store, is_temporary=is_temporary, port=self._namesrv_port
        )
        node = Node(
            config,
            name_server,
            host=config.bind_address,
            clock=self._clock,
            time=NodeTime() if self._virtual_time else None,
            seed=self._seed,
            journal_folder=self._journal,
        )
        atexit.register(self.stop)  # a server that is never stopped must not leave its folder behind
        self._thread.start()
        self._thread.run(self._open(node))
        self._node = node

    def stop(self) -> None:
        """Stop as `pocketmq serve` does: unregister, close the connections, save, close the store. Waits for all of it.

        Does nothing if the server is not running. Raises what went wrong while stopping.
        """
        self._thread.refuse_own_thread()
        try:
            if self._node is not None:
                self._thread.run(self._close(self._node))
        finally:
            self._thread.stop()
            self._node = self._connection = self._first_mark = None
            folder, self._folder = self._folder, None
            if folder is not None and self._store is None:
                shutil.rmtree(folder, ignore_errors=True)
            atexit.unregister(self.stop)

    # -- in the server's thread

    async def _open(self, node: Node) -> None:
        await node.start()
        try:
            self._watched.attach(node)
            if self._keeps_ledger:
                self._watched.keep_ledger()
            if self._store is None:
                self._watched.forget_facts()
            if node.broker.config.endpoint.grpc_server_port is not None:
                await self._open_grpc(node)
            if self._admin_port is not None:
                await self._open_admin(node, self._admin_port)
        except BaseException:
            await self._close(node)
            raise

    async def _open_admin(self, node: Node, port: int) -> None:
        from .admin_port import admin_port

        host, names = node.broker.config.bind_address, self._admin_host_names
        self._admin_url = await self._ports.enter_async_context(
            admin_port(node, self._watched, host=host, port=port, mark=self._mark, names=names)
        )

    async def _open_grpc(self, node: Node) -> None:
        """Does nothing if it is open."""
        from pocketmq.grpc_endpoint.endpoint import open_endpoint

        async with self._opening:  # two threads may ask at once
            if not self._grpc_endpoint:
                self._grpc_endpoint = (await self._ports.enter_async_context(open_endpoint(node))).address

    async def _close(self, node: Node) -> None:
        self._admin_url = self._grpc_endpoint = ""
        try:
            await self._ports.aclose()
        finally:
            try:
                await node.stop()
            finally:  # answers leave until then
                self._watched.detach(node)

    # -- asking the running server

    def request(self, request: Request[ReplyT], body: RawBody | None = None) -> ReplyT:
        """Send the broker a request over TCP, as a client does; returns the reply's header.

        `Refusal` with code and remark if the broker refuses, `PeerError` if it does not answer within 5 s.
        """
        return self.exchange(request, body)[0]

    def exchange(self, request: Request[ReplyT], body: RawBody | None = None) -> tuple[ReplyT, bytes]:
        """As `request`, but returns the body of the reply too; empty if it has none."""
        return self.run(self.exchange_async(request, body))

    async def exchange_async(
        self, request: Request[ReplyT], body: RawBody | None = None
    ) -> tuple[ReplyT, bytes]:
        """As `exchange`, for the server's own loop."""
        node = self._running()
        async with self._connecting:
            if self._connection is None or self._connection.closed:
                self._connection = await node.server.connect(node.bound_address)
        command, reply = await self._connection.call(request, body, timeout_seconds=REQUEST_TIMEOUT_SECONDS)
        return reply, bytes(command.body or b"")

    def mark(self) -> Mark:
        """The present state; `reset` can return to it."""
        return self.run(take_mark(self._running()))

    def keep_state(self) -> None:
        """The present state is the one that `reset` returns to from now on."""
        self._first_mark = self.mark()

    def reset(self, mark: Mark | None = None) -> None:
        """Forget the topics, groups, offsets, locks and messages created since `mark`, or since the start.

        Changed topics, groups and settings are restored. Connections stay open. See `state/reset.py`.
        """
        self.run(self._reset(mark or self._mark()))

    async def _reset(self, mark: Mark) -> None:
        await restore(self._running(), mark)
        self._watched.forget_facts()

    def _mark(self) -> Mark:
        """The state that a reset returns to."""
        if self._first_mark is None:
            raise NotRunningError("the server is not running")
        return self._first_mark

    def snapshot(self, path: str | Path | None = None) -> Snapshot:
        """The present state: topics, groups, offsets, messages and timers; also as a .pocketmq file if `path` is given.

        Valid for any server, also a later one. Raises `SnapshotError` if the file cannot be written.
        """
        snapshot = self.run(take_snapshot(self._running()))
        if path is not None:
            snapshot.save(path)
        return snapshot

    def restore(self, snapshot: Snapshot | str | Path) -> None:
        """Have the state of a snapshot, or of the file of one, and nothing else. Connections stay open.

        Raises `SnapshotError` that names what is wrong; then nothing has changed.
        """
        if not isinstance(snapshot, Snapshot):
            snapshot = read_snapshot(snapshot)
        self.run(self._restore(snapshot))

    async def _restore(self, snapshot: Snapshot) -> None:
        await restore_snapshot(self._running(), snapshot)
        self._watched.forget_facts()

    def load(self, *sources: LoadSource | LoadFunction) -> None:
        """As `RocketMQ.load`; functions are called with `RocketMQ(self)`."""
        # By name, because it is built on this class.
        import_module("pocketmq.testing.rocketmq").RocketMQ(self).load(*sources)

    def _running(self) -> Node:
        if self._node is None:
            raise NotRunningError("the server is not running")
        return self._node
