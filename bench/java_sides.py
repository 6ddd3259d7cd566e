"""The servers that `bench.java_ratio` compares: each in a network of its own, stopped while others are measured."""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from conformance.official.servers import OfficialServer
from conformance.servers.our_server import READY, OurServer
from conformance.servers.processes import Running
from conformance.servers.server import BROKER_PORT, NAMESRV_ADDR, Server

from .java_loads import FULL_SPEED, prime

OURS, TEMPLATE, WITH_PORT = "ours", "template", "with gRPC port"
OFFICIAL = {"4.9": "official 4.9", "5.5": "official 5.5"}

SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 1 << 30,
    "maxHashSlotNum": 5_000_000,
    "maxIndexNum": 20_000_000,
}
SERVERS: dict[str, dict[str, object]] = {
    "plain": {},
    "SYNC_FLUSH": {"flushDiskType": "SYNC_FLUSH"},
    "with slave": {},
}
"""What the brokers of a load have besides SETTINGS; "with slave" also starts a slave for each."""

SLAVE_PORT = 10931
SLAVE_ROLE: dict[str, object] = {"brokerRole": "SLAVE", "brokerId": 1}
RUNTIME_INFO = 28
CATCH_UP_SECONDS = 120.0


class TemplateServer(OurServer):
    """`template_server.py` in place of our broker."""

    def start(self) -> None:
        words = [sys.executable, "-m", "bench.template_server"]
        log = self.home / "run" / "template.out"
        self.process = Running(
            self.namespace, words, log, name="template server", cwd=Path(__file__).parents[1]
        )
        self._stopped = False
        self.process.wait_for(READY)


def new_server(name: str, home: Path, settings: Mapping[str, object]) -> Server:
    """A server of that side, not started."""
    if name == TEMPLATE:
        return TemplateServer(home)
    if name in (OURS, WITH_PORT):
        port = ("--grpc-port", "0") if name == WITH_PORT else ()
        return OurServer(home, broker_conf=settings, options=("--log-level", "error", *port))
    version = next(line for line, side in OFFICIAL.items() if side == name)
    return OfficialServer(version, home, broker_conf=settings, java_opts=FULL_SPEED)


class Side:
    """One server and the processes it consists of; they are stopped except within `awake`."""

    def __init__(self, name: str, home: Path, settings: Mapping[str, object], *, with_slave: bool) -> None:
        self.name = name
        self._home = home
        self._settings = settings
        self._our_slave: OurServer | None = None
        self._slave: Running | None = None
        self.server = new_server(name, home, settings)
        try:
            self.server.start()
            if with_slave:
                self._start_slave()
            prime(self.server)
            if with_slave:
                self.seconds_behind()
        except BaseException:
            self.close()
            raise
        self._freeze()

    def _start_slave(self) -> None:
        home = self._home / "slave"
        if isinstance(self.server, OfficialServer):
            ports = {"listenPort": SLAVE_PORT, "haListenPort": SLAVE_PORT + 1}
            self._slave = self.server.start_broker("slave", home, {**SLAVE_ROLE, **ports})
        else:
            words = ("--no-namesrv", "--namesrv", NAMESRV_ADDR, "--port", str(SLAVE_PORT))
            self._our_slave = OurServer(
                home,
                namespace=self.server.namespace,
                broker_conf={**self._settings, **SLAVE_ROLE},
                options=(*words, "--log-level", "error"),
            )
            self._our_slave.start()
            self._slave = self._our_slave.process

    @property
    def broker(self) -> Running:
        server = self.server
        running = (
            server.process
            if isinstance(server, OurServer)
            else cast(OfficialServer, server).brokers["broker"]
        )
        assert running is not None, "the server has been started"
        return running

    @property
    def pid(self) -> int:
        return self.broker.process.pid

    @property
    def alive(self) -> bool:
        return self.broker.alive

    @contextlib.contextmanager
    def awake(self) -> Iterator[None]:
        """Its processes run within the block."""
        self._thaw()
        try:
            yield
        finally:
            self._freeze()

    def _processes(self) -> list[Running]:
        server = self.server
        names = server.name_server if isinstance(server, OfficialServer) else None
        return [running for running in (names, self.broker, self._slave) if running is not None]

    def _freeze(self) -> None:
        for process in self._processes():
            if process.alive:
                process.freeze()

    def _thaw(self) -> None:
        for process in self._processes():
            if process.alive:
                process.thaw()

    def _log_end(self, port: int) -> int:
        reply = cast(dict[str, dict[str, str]], self.server.call(RUNTIME_INFO, port).json())
        return int(reply["table"]["commitLogMaxOffset"])

    def seconds_behind(self) -> float:
        """Seconds from now until the slave's log is as long as the master's; TimeoutError after two minutes."""
        began = time.monotonic()
        while self._log_end(SLAVE_PORT) < (end := self._log_end(BROKER_PORT)):
            if time.monotonic() - began > CATCH_UP_SECONDS:
                raise TimeoutError(f"{self.name}: the slave never had the log up to {end}")
            time.sleep(0.02)
        return time.monotonic() - began

    def close(self) -> None:
        """End all its processes, whatever state they are in."""
        with contextlib.suppress(KeyError, AssertionError):
            self._thaw()
        if self._our_slave is not None:
            self._our_slave.kill()
        self.server.kill()
        self.server.close()
