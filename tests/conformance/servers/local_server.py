"""PocketMQ on this machine's own network and free ports, for raw frames: needs no Java and no namespaces.

The daily tests use it. Tests name the official ports here too; `connect` maps them to the real ones.
"""

import socket
from collections.abc import Mapping
from pathlib import Path

from conformance.servers.our_server import setting_words
from conformance.servers.server import BROKER_PORT, NAME_SERVER_PORT, Server
from raw_peer import ServedProcess


class LocalServer(Server):
    """`pocketmq serve` as a process; arguments as for `OurServer`."""

    def __init__(
        self, home: Path, *, line: str = "5.5", broker_conf: Mapping[str, object] | None = None
    ) -> None:
        self._served = ServedProcess(home, setting_words(line, broker_conf))
        home.mkdir(parents=True, exist_ok=True)
        self.home, self.store = home, self._served.store
        self.side = "ours"
        self.emulates = line

    @property
    def ports(self) -> dict[int, int]:
        return {NAME_SERVER_PORT: self._served.namesrv_port, BROKER_PORT: self._served.broker_port}

    def start(self) -> None:
        self._served.__enter__()

    def connect(self, port: int = BROKER_PORT, timeout: float = 5.0) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.ports[port]), timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def stop(self) -> None:
        """SIGTERM; its exit code must be 0."""
        self._served.__exit__(None, None, None)

    close = stop

    def kill(self) -> None:
        self._served.process.kill()
