"""Builds, starts and stops the name server and the broker of one process.

`Node.start` binds all ports, opens the store, accepts requests, and returns once every reachable name server has the
broker in its route table; `stop` mirrors it. `broker.py` builds the broker, `process.py` handles signals.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING

from pocketmq.protocol.languages import V4_9_7, V5_5_0
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.store import Clock, WallClock

from .access.access_control import signer_of, warn_if_open
from .broker import Broker
from .cluster.replication_master import bind_ha_port
from .config.addresses import host_and_port, numeric_address, socket_address
from .config.broker_config import BrokerConfig
from .config.name_server_config import NameServerConfig
from .errors import StartError
from .handler_modules import HANDLER_MODULES
from .name_server.name_server import NameServer
from .network.dispatch import BROKER, NAME_SERVER
from .network.listening import FREE_PORT_TRIES, close_all, port_of
from .network.server import Server
from .network.server_context import Limits, Signer
from .network.tls import Tls
from .network.watch import SideServer
from .state.broker_state import Identity
from .time.timers import OwnTime, Timers

if TYPE_CHECKING:
    from .network.journal import Journal

_log = logging.getLogger("pocketmq.node")
assert HANDLER_MODULES, "importing the modules fills the tables of handlers"


class Node:
    """The broker of one process, and its name server unless `name_server_config` is None. All on the running loop.

    If `start` fails, it raises `StartError` or `StoreError` with a message of one line, and leaves nothing running.
    """

    def __init__(
        self,
        config: BrokerConfig,
        name_server_config: NameServerConfig | None,
        *,
        host: str = "127.0.0.1",
        clock: Clock | None = None,
        time: OwnTime | None = None,
        timers: Timers | None = None,
        seed: int | None = None,
        journal_folder: Path | None = None,
        server_made: Callable[[Server], None] | None = None,
    ) -> None:
        """With `time` the broker's clock is virtual, and the node's own; `timers` are those of a clock that somebody
        else moves. `server_made` gets each server before a client can connect to it."""
        self._config = config
        self._name_server_config = name_server_config
        self._host = host
        self._clock = clock or WallClock()
        self._timers = timers if time is None else time.timers
        self._seed = seed
        self.time = time
        """Moves the broker's clock; `None` if the broker follows the wall's time, or somebody else moves it."""
        self._servers: list[Server] = []
        self.side_servers: list[SideServer] = []
        """Servers of other protocols in front of the same broker, while they run (gRPC)."""
        self.when_side_servers_changed: list[Callable[[], None]] = []
        self._server_made = server_made
        self._ha_sockets: list[socket] = []
        self._journal_folder = journal_folder
        self.journal: Journal | None = None
        """Where every request is recorded, while the node runs; `None` without `journal_folder`."""
        self._tls = Tls(config)
        self._broker: Broker | None = None
        self.name_server: NameServer | None = None
        self.namesrv_address = ""
        self.broker_address = ""
        """`host:port` of the broker, as its routes say."""
        self.bound_address = ""
        """`host:port` at which a client on this machine reaches it; another one with `advertise` or brokerIP1."""

    @property
    def broker(self) -> Broker:
        """The broker of a node that was started, even after `stop`."""
        if self._broker is None:
            raise RuntimeError("the node was not started")
        return self._broker

    @property
    def stops_cleanly(self) -> bool:
        """False once the store of a node that was started could not be closed cleanly."""
        return self._broker is None or self._broker.store.stops_cleanly

    @property
    def server(self) -> Server:
        """The broker's main port."""
        return next(server for server in self._servers if server.handlers.name == BROKER.name)

    @property
    def servers(self) -> tuple[Server, ...]:
        """Name server, main port and fast port, those that exist."""
        return tuple(self._servers)

    def add_side_server(self, server: SideServer) -> None:
        self.side_servers.append(server)
        for function in list(self.when_side_servers_changed):
            function()

    def remove_side_server(self, server: SideServer) -> None:
        self.side_servers.remove(server)
        for function in list(self.when_side_servers_changed):
            function()

    async def start(self) -> None:
        """Open the store, accept requests, register. When it returns, a client can send."""
        try:
            self._start_journal()
            self._tls.check()
            warn_if_open(self._config, self._host)
            await self._start_name_server()
            await self._start_broker()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Unregister, answer held requests, close the sockets, save all tables, close the store.

        The store is closed even if an earlier step fails.
        """
        try:
            await self._stop_serving()
        finally:
            if self.name_server is not None:
                self.name_server.stop()
                self.name_server = None
            if self._broker is not None:
                self._broker.close()
            if self.journal is not None:
                self.journal.stop()
                self.journal = None

    async def kill(self) -> None:
        """End as a killed process does, for tests: reset the connections, notify no peer, save nothing. What was
        acknowledged is in the files, and the next start on them recovers."""
        for server in self._servers:
            server.reset()
        await asyncio.sleep(0)  # the connections hear of their end
        if self._broker is not None:
            await self._broker.abandon()
        await self.stop()

    def _start_journal(self) -> None:
        if self._journal_folder is None:
            return
        from .network.journal import Journal

        config = self._config
        about = {
            "brokerName": config.broker_name,
            "cluster": config.broker_cluster_name,
            "emulate": config.emulate,
        }
        journal = Journal(self._journal_folder, about)
        journal.start()
        self.journal = journal

    async def _stop_serving(self) -> None:
        try:
            if self.time is not None:
                await self.time.stop()
            if self._broker is not None:
                await self._broker.stop()
        finally:
            close_all(self._ha_sockets)
            for server in reversed(self._servers):
                await server.close()
            self._servers.clear()

    # -- the name server

    async def _start_name_server(self) -> None:
        config = self._name_server_config
        if config is None:
            return
        self.name_server = NameServer(config, self._clock, is_5=self._config.is_5)
        server = self._new_server(NAME_SERVER.name)
        port = await server.bind(self._host, config.listen_port)
        handlers = NAME_SERVER.of_line(self._config.emulate).bind(self.name_server)
        await server.serve(handlers, on_close=self.name_server.connection_closed)
        self.namesrv_address = socket_address(reachable(self._host), port)
        self.name_server.start(server)

    # -- the broker

    async def _start_broker(self) -> None:
        # The name server keeps the wall's time, because a broker that it forgets is one that is silent now.
        config, clock = self._config, self._clock if self._timers is None else self._timers.clock
        server = self._new_server(BROKER.name, signer=signer_of(config))
        port, fast = await self._bind_ports(server)
        self._ha_sockets = await bind_ha_port(config, self._host, port)
        self.bound_address = socket_address(reachable(self._host), port)
        host, advertised_port = (
            host_and_port(config.advertise) if config.advertise else (config.broker_ip1, port)
        )
        identity = Identity(
            address=socket_address(host, advertised_port),
            store_host=pack_host(_ip_of(host, config), advertised_port),
            ha_address=socket_address(config.broker_ip2, port_of(self._ha_sockets)),
            own_name_server=self.namesrv_address,
            boot_time_ms=clock.now_ms(),
        )
        self.broker_address = identity.address
        self._broker = broker = Broker(
            config, clock, identity, connect=server.connect, timers=self._timers, seed=self._seed
        )
        broker.open()
        handlers = BROKER.of_line(config.emulate).bind(*broker.parts)
        guard, sends, on_close = broker.access.guard, broker.sends.handle, broker.membership.connection_closed
        await server.serve(handlers, guard=guard, sends=sends, on_close=on_close)
        if fast is not None:
            handlers = handlers.without_main_port_only()
            await fast.serve(handlers, guard=guard, sends=sends, on_close=on_close)
        await broker.start(self._ha_sockets)

    async def _bind_ports(self, server: Server) -> tuple[int, Server | None]:
        """The main port, and the server of the second port of official brokers, two below, to which clients with
        vipChannelEnabled connect: `None` if that is in use. Where the system chooses the first, it chooses again."""
        config = self._config
        port = await server.bind(self._host, config.listen_port)
        if port <= 2:
            return port, None
        fast, tries = self._new_server(BROKER.name), 1 if config.listen_port else FREE_PORT_TRIES
        while True:
            tries -= 1
            try:
                await fast.bind(self._host, port - 2)
                return port, fast
            except StartError as error:
                if not tries:
                    if config.is_fast_port_required:
                        raise
                    _log.warning("%s; clients with vipChannelEnabled cannot connect", error)
                    return port, None
            server.unbind()
            port = await server.bind(self._host, 0)

    def _new_server(self, name: str, signer: Signer | None = None) -> Server:
        config = self._config
        server = Server(
            name,
            version=V5_5_0 if config.is_5 else V4_9_7,
            json_replies=config.is_5,
            limits=Limits(
                idle_seconds=config.server_channel_max_idle_time_seconds,
                unread_bytes=config.write_buffer_high_water_mark,
                tasks=config.max_tasks_per_connection,
                calls=config.max_calls_per_connection,
            ),
            watchers=() if self.journal is None else (self.journal.watcher(name),),
            tls=self._tls,
            signer=signer,
        )
        self._servers.append(server)
        if self._server_made is not None:
            self._server_made(server)
        return server


def _ip_of(host: str, config: BrokerConfig) -> str:
    """The address for message ids, which have room for a number only: brokerIP1 for a name that has none here."""
    try:
        return numeric_address(host)
    except OSError:
        return config.broker_ip1


def reachable(host: str) -> str:
    """The address by which a client on this machine reaches a server bound to `host`."""
    return {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
