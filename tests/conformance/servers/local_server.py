"""PocketMQ on this machine's own network and free ports, for raw frames: needs no Java and no namespaces.

The daily tests use it. Tests name the official ports here too; `connect` maps them to the real ones.
"""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from conformance.servers.server import BROKER_PORT, GET_BROKER_CLUSTER_INFO, NAME_SERVER_PORT, Server

STOP_TIMEOUT_S = 20.0


class LocalServer(Server):
    """`pocketmq serve` as a process; broker_conf as for `OurServer`."""

    def __init__(
        self, home: Path, *, emulate: str = "5", broker_conf: Mapping[str, object] | None = None
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.store = home / "store"
        self.side = "ours"
        self.emulates = "4.9" if emulate == "4.9" else "5.5"
        self.broker_conf = {"emulate": emulate, **(broker_conf or {})}
        self._process: subprocess.Popen[str] | None = None
        self.ports: dict[int, int] = {}

    def start(self) -> None:
        words = ["--store", str(self.store), "--port", "0", "--namesrv-port", "0"]
        for key, value in self.broker_conf.items():
            words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
        with (self.home / "stderr").open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pocketmq.cli", "serve", *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("NAMESRV_ADDR="), (self.home / "stderr").read_text()
        self.ports = {NAME_SERVER_PORT: int(line.rpartition(":")[2])}
        cluster = self.call(GET_BROKER_CLUSTER_INFO, NAME_SERVER_PORT).body.decode()
        matched = re.search(r'"127\.0\.0\.1:(\d+)"', cluster)
        assert matched, cluster
        self.ports[BROKER_PORT] = int(matched[1])

    def connect(self, port: int = BROKER_PORT, timeout: float = 5.0) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.ports[port]), timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def stop(self) -> None:
        """SIGTERM; its exit code must be 0."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=STOP_TIMEOUT_S)
        finally:
            process.kill()
        assert process.returncode == 0, (self.home / "stderr").read_text()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        self.stop()
