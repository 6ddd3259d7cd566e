"""How fast is our broker for the official Java clients, against the official broker in the same run?

    python -m bench.java_ratio [--seconds 10] [--warm-up 6] [--version 5.5] [--only WORD] [--json FILE]
    python -m bench.java_ratio --set flushDiskType=SYNC_FLUSH --only "64 threads, 128"

Official benchmark programs (Producer, BatchProducer, Consumer, TransactionProducer) drive both brokers in turns, on one
machine, each in a network namespace of its own and stopped while the other is measured. A row gives messages per second
on both, their ratio, and messages per second of broker CPU. Needs Java and Maven, as the interop tests do.
"""

import argparse
import contextlib
import json
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from conformance.official.programs import example
from conformance.official.servers import OfficialServer
from conformance.servers.our_server import OurServer
from conformance.servers.processes import Running
from conformance.servers.server import Server

from .processor import cpu_seconds, print_load_average

COMMIT_LOG_BYTES = 1_073_741_824
TOPIC = "BenchmarkTest"
DRAIN_LIMIT_SECONDS = 120.0
SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": COMMIT_LOG_BYTES,
    "maxHashSlotNum": 5_000_000,
    "maxIndexNum": 20_000_000,
}
FULL_SPEED = ("-XX:TieredStopAtLevel=4", "-Xms1g", "-Xmx1g")
"""The tests run Java with its quick compiler; a comparison has to give it the good one."""


@dataclass
class Row:
    """One measurement of one side."""

    name: str
    side: str
    per_second: float
    per_cpu_second: float


@dataclass(frozen=True)
class Load:
    """One benchmark program: its arguments, and the number it prints every second."""

    name: str
    program: str
    words: tuple[str, ...]
    pattern: str
    drains: bool = False
    """It ends when the backlog of the loads before it is read."""


LOADS = (
    Load("sync send, 1 thread, 128 B", "benchmark.Producer", ("-w", "1", "-s", "128"), r"Send TPS: (\d+)"),
    Load("sync send, 64 threads, 128 B", "benchmark.Producer", ("-w", "64", "-s", "128"), r"Send TPS: (\d+)"),
    Load(
        "batch of 16, 64 threads, 128 B",
        "benchmark.BatchProducer",
        ("-w", "64", "-b", "16"),
        r"Send MPS: (\d+)",
    ),
    Load(
        "backlog drain, push consumer", "benchmark.Consumer", ("-w", "20"), r"Consume TPS: (\d+)", drains=True
    ),
    Load(
        "transactions, 32 threads, 128 B",
        "benchmark.TransactionProducer",
        ("-w", "32", "-s", "128"),
        r"Send TPS:\s*(\d+)",
    ),
)


def measure(server: Server, load: Load, process_id: int, warm_up: float, seconds: float, version: str) -> Row:
    """Run one program against one server; the mean of the seconds after the warm-up."""
    words = (*load.words, "-n", "127.0.0.1:9876", "-t", TOPIC, "-ri", "1000")
    program = example(version, load.program)
    cpu_at_start = cpu_seconds(process_id)
    with server.programs.start_java(program, *words, java_opts=FULL_SPEED) as running:
        running.wait_for(load.pattern, timeout=60)
        if load.drains:
            return measure_drain(server, load, process_id, running, cpu_at_start)
        time.sleep(warm_up)
        seen = len(re.findall(load.pattern, running.output))
        began, cpu_began = time.monotonic(), cpu_seconds(process_id)
        time.sleep(seconds)
        elapsed, cpu = time.monotonic() - began, cpu_seconds(process_id) - cpu_began
        rates = [int(text) for text in re.findall(load.pattern, running.output)[seen:]]
        running.kill()
    rate = sum(rates) / len(rates) if rates else 0.0
    return Row(load.name, server.side, rate, rate * elapsed / cpu if cpu else 0.0)


def measure_drain(server: Server, load: Load, process_id: int, running: Running, cpu_at_start: float) -> Row:
    """Read the backlog to its end; the mean of the full seconds of reading."""
    deadline = time.monotonic() + DRAIN_LIMIT_SECONDS
    rates: list[int] = []
    while time.monotonic() < deadline and not (any(rates) and rates[-1] == 0):
        time.sleep(0.2)
        rates = [int(text) for text in re.findall(load.pattern, running.output)]
    cpu = cpu_seconds(process_id) - cpu_at_start
    running.kill()
    reading = [rate for rate in rates if rate]
    full = reading[1:-1] or reading
    return Row(load.name, server.side, sum(full) / len(full), sum(reading) / cpu if cpu else 0.0)


class Side:
    """One server and the processes it consists of; frozen while the other side is measured."""

    def __init__(self, name: str, home: Path, version: str, settings: dict[str, object]) -> None:
        self.name = name
        if name == "ours":
            self.server: Server = OurServer(home, broker_conf=settings, options=("--log-level", "error"))
        else:
            self.server = OfficialServer(version, home, broker_conf=settings, java_opts=FULL_SPEED)

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
    def processes(self) -> list[Running]:
        server = self.server
        if isinstance(server, OfficialServer) and server.name_server is not None:
            return [server.name_server, self.broker]
        return [self.broker]


def run(
    seconds: float, warm_up: float, version: str, loads: Sequence[Load], settings: dict[str, object]
) -> list[Row]:
    """Each load on both sides, one right after the other, so that a noisy minute affects both."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as servers:
        sides = [Side(name, Path(folder) / name, version, settings) for name in ("official", "ours")]
        for side in sides:
            servers.enter_context(side.server)
            time.sleep(3)  # a JVM's own start-up work
            for process in side.processes:
                process.freeze()
        for load in loads:
            for side in sides:
                for process in side.processes:
                    process.thaw()
                row = measure(side.server, load, side.broker.process.pid, warm_up, seconds, version)
                for process in side.processes:
                    process.freeze()
                rows.append(row)
                print(f"  {side.name:9} {load.name:32} {row.per_second:9.0f} /s", flush=True)
        for side in sides:
            for process in side.processes:
                process.thaw()
    return rows


def table(rows: list[Row], loads: Sequence[Load]) -> str:
    lines = [
        "| load | official /s | ours /s | ratio | official /CPU s | ours /CPU s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for load in loads:
        official, ours = (
            next(r for r in rows if r.name == load.name and (r.side == "ours") is own)
            for own in (False, True)
        )
        ratio = ours.per_second / official.per_second if official.per_second else 0.0
        lines.append(
            f"| {load.name} | {official.per_second:.0f} | {ours.per_second:.0f} | {ratio:.2f} | "
            f"{official.per_cpu_second:.0f} | {ours.per_cpu_second:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--warm-up", type=float, default=6.0)
    parser.add_argument("--version", choices=("4.9", "5.5"), default="5.5")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for both brokers")
    parser.add_argument("--only", default="", metavar="TEXT", help="loads whose name holds it")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    loads = [load for load in LOADS if options.only in load.name]
    settings = SETTINGS | dict(word.split("=", 1) for word in options.set)
    print_load_average()
    rows = run(options.seconds, options.warm_up, options.version, loads, settings)
    print_load_average()
    print(table(rows, loads))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
