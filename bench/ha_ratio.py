"""How fast is a master with one slave, ours against the official pair in the same run?

    python -m bench.ha_ratio [--seconds 10] [--warm-up 6] [--version 5.5] [--set KEY=VALUE]

The official benchmark producer sends to an ASYNC_MASTER whose slave copies the log meanwhile: once both of ours, once
both official, in turns, each pair in a network namespace of its own and stopped while the other is measured. A row
gives what `bench.java_ratio` gives; below it is the time each slave took, after the last message, until it had the
whole log. Needs Java and Maven, like the interop tests. `replication.py` measures how fast an empty slave catches up.
"""

import argparse
import contextlib
import tempfile
import time
from pathlib import Path
from typing import cast

from bench.java_ratio import LOADS, SETTINGS, Row, Side, measure, table
from conformance.official.servers import OfficialServer
from conformance.servers.our_server import OurServer
from conformance.servers.processes import Running
from conformance.servers.server import BROKER_PORT, NAMESRV_ADDR

SLAVE_PORT = 10931
SLAVE_ROLE: dict[str, object] = {"brokerRole": "SLAVE", "brokerId": 1}
LOAD = "sync send, 64 threads, 128 B"
RUNTIME_INFO = 28
CATCH_UP_SECONDS = 120.0


class Pair(Side):
    """A side of `bench.java_ratio` and the slave of its broker."""

    def __init__(self, name: str, home: Path, version: str, settings: dict[str, object]) -> None:
        super().__init__(name, home, version, settings)
        self._slave_home = home / "slave"
        self._settings = settings
        self._our_slave: OurServer | None = None
        self._slave: Running | None = None

    def start_slave(self) -> None:
        """Start it once the master is in the route table; returns when the slave has the whole log."""
        if isinstance(self.server, OfficialServer):
            ports = {"listenPort": SLAVE_PORT, "haListenPort": SLAVE_PORT + 1}
            self._slave = self.server.start_broker("slave", self._slave_home, {**SLAVE_ROLE, **ports})
        else:
            words = ("--no-namesrv", "--namesrv", NAMESRV_ADDR, "--port", str(SLAVE_PORT))
            self._our_slave = OurServer(
                self._slave_home,
                namespace=self.server.namespace,
                broker_conf={**self._settings, **SLAVE_ROLE},
                options=(*words, "--log-level", "error"),
            )
            self._our_slave.start()
            self._slave = self._our_slave.process

    def end_slave(self) -> None:
        if self._our_slave is not None:
            self._our_slave.kill()

    @property
    def processes(self) -> list[Running]:
        return [*super().processes, *([self._slave] if self._slave is not None else [])]

    def log_end(self, port: int) -> int:
        reply = cast(dict[str, dict[str, str]], self.server.call(RUNTIME_INFO, port).json())
        return int(reply["table"]["commitLogMaxOffset"])

    def seconds_behind(self) -> float:
        """How long it takes from now until the slave's log is as long as the master's."""
        began = time.monotonic()
        while self.log_end(SLAVE_PORT) != (end := self.log_end(BROKER_PORT)) or not end:
            if time.monotonic() - began > CATCH_UP_SECONDS:
                raise TimeoutError(f"{self.name}: the slave never had the log up to {end}")
            time.sleep(0.02)
        return time.monotonic() - began


def run(
    seconds: float, warm_up: float, version: str, settings: dict[str, object]
) -> tuple[list[Row], dict[str, float]]:
    """The rows of both pairs, and how long each slave took to catch up."""
    load = next(load for load in LOADS if load.name == LOAD)
    rows: list[Row] = []
    behind: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as servers:
        for name in ("official", "ours"):
            pair = Pair(name, Path(folder) / name, version, settings)
            servers.enter_context(pair.server)
            servers.callback(pair.end_slave)
            pair.start_slave()
            # Too short for a measurement, but after it the pair is connected and has its first log file.
            measure(pair.server, load, pair.broker.process.pid, 0.5, 1.0, version)
            pair.seconds_behind()
            row = measure(pair.server, load, pair.broker.process.pid, warm_up, seconds, version)
            behind[name] = pair.seconds_behind()
            for process in pair.processes:
                process.freeze()
                servers.callback(process.thaw)
            rows.append(row)
            print(f"  {name:9} {row.name:32} {row.per_second:9.0f} /s", flush=True)
    return rows, behind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--warm-up", type=float, default=6.0)
    parser.add_argument("--version", choices=("4.9", "5.5"), default="5.5")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="for all four brokers"
    )
    options = parser.parse_args()
    settings = SETTINGS | dict(word.split("=", 1) for word in options.set)
    rows, behind = run(options.seconds, options.warm_up, options.version, settings)
    print(table(rows, [load for load in LOADS if load.name == LOAD]))
    print("slave had the log after " + ", ".join(f"{name} {took:.2f} s" for name, took in behind.items()))


if __name__ == "__main__":
    main()
