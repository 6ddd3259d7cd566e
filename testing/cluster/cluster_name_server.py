"""One name server of a cluster: `cluster.name_server("n0")`."""

from pathlib import Path

from pocketmq.broker.config.addresses import socket_address
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.errors import StartError
from pocketmq.broker.name_server.name_server import NameServer
from pocketmq.broker.network.dispatch import NAME_SERVER
from pocketmq.broker.network.server import Server
from pocketmq.broker.network.server_context import Limits
from pocketmq.broker.node import reachable
from pocketmq.protocol.languages import V4_9_7, V5_5_0
from pocketmq.store import WallClock

from ..server.settings import name_server_config
from .cluster_context import ClusterContext, Member


class ClusterNameServer(Member):
    """Stopped and started by a test; the port stays the same. `config` says the host and the official line."""

    def __init__(self, context: ClusterContext, name: str, config: BrokerConfig, store: Path) -> None:
        super().__init__(context, name)
        self._config = config
        self._store = store
        self._port = 0
        self._server: Server | None = None
        self._name_server: NameServer | None = None

    @property
    def addr(self) -> str:
        """`127.0.0.1:port`, also while it is stopped."""
        return socket_address(reachable(self._config.bind_address), self._port)

    @property
    def is_running(self) -> bool:
        return self._server is not None

    # -- on the cluster's loop

    async def start_here(self) -> None:
        if self._server is not None:
            raise StartError(f"name server {self.name} is already running")
        is_5 = self._config.is_5
        settings = name_server_config({}, conf=None, store=self._store, is_temporary=True, port=self._port)
        name_server = NameServer(settings, WallClock(), is_5=is_5)
        server = Server(
            NAME_SERVER.name, version=V5_5_0 if is_5 else V4_9_7, json_replies=is_5, limits=Limits()
        )
        try:
            self._port = await server.bind(self._config.bind_address, self._port)
            handlers = NAME_SERVER.of_line(self._config.emulate).bind(name_server)
            await server.serve(handlers, on_close=name_server.connection_closed)
            name_server.start(server)
        except BaseException:
            await server.close()
            raise
        self._server, self._name_server = server, name_server
        self._held.release()
        self._context.name_servers[self.name] = self.addr
        self._context.watched.watch(server, name_server=self.name)

    async def stop_here(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        await server.close()
        self._context.watched.unwatch(server)
        assert self._name_server is not None
        self._name_server.stop()
        self._name_server = None
        self._held.hold(self._config.bind_address, self._port)

    def knows(self, broker_name: str, broker_id: int) -> bool:
        """Whether its routes have that broker."""
        if self._name_server is None:
            return False
        data = self._name_server.routes.brokers.get(broker_name)
        return data is not None and broker_id in (data.broker_addrs or {})
