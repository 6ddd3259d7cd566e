"""How fast is our client beside the official one, against the same broker in the same run?

    python -m bench.client [--seconds 10] [--warm-up 6] [--turns 3] [--version 5.5] [--broker ours|official]
        [--only WORD] [--json FILE]

The official benchmark programs (Producer, Consumer) and `pocketmq bench` take turns on one broker, a process of its own
in a network namespace. A row gives messages a second of both, their ratio, and the client's CPU time per message, each
the median of all turns: on a machine that does other work too, CPU time is more reliable than the rates. Needs Java and
Maven. The backlog that both drain is made for that row: a million messages in batches.

The official Producer with -y waits for no answer: it has some 75,000 sends in flight before its client makes it wait.
A broker beside it cannot answer that many within their timeout of three seconds, and from then on all of them fail. So
the row of the futures uses `AsyncSends.java`: the same client, with as many sends in flight as ours.
"""

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from conformance.official.programs import BINARY_HEADER, compile_java, example
from conformance.official.servers import OfficialServer
from conformance.servers.our_server import OurServer
from conformance.servers.processes import Running
from conformance.servers.server import NAMESRV_ADDR, Server

from .frame import cpu_seconds, print_load_average
from .java_loads import FULL_SPEED
from .java_sides import SETTINGS

TOPIC = "BenchClient"
POCKETMQ = (sys.executable, "-c", "from pocketmq.cli.main import main; main()", "bench")
DRAIN_SECONDS = 120.0


@dataclass(frozen=True)
class Load:
    """One row: words of `pocketmq bench`, and those of the official program; none for `AsyncSends.java`."""

    name: str
    python: tuple[str, ...]
    java: tuple[str, ...]


ASYNC_SENDS = Path(__file__).with_name("AsyncSends.java")
UNDER_WAY = "1000"
SENDS = (
    Load("one after the other", ("producer", "-w", "1"), ("-w", "1")),
    Load("64 at once", ("producer", "-w", "64"), ("-w", "64")),
    Load(f"futures, {UNDER_WAY} under way", ("producer", "-w", "1", "-i", UNDER_WAY), ()),
)
DRAIN = Load("drain, Python client and Java client", ("consumer",), ("-w", "20"))
BACKLOG = Load("backlog", ("producer", "-w", "16", "-b", "16"), ())
BACKLOG_SECONDS = 10.0
Found = tuple[float, float]
"""Messages a second, and CPU microseconds of the client a message."""


@dataclass
class Row:
    """Messages a second, and CPU microseconds of the client a message."""

    name: str
    python_per_second: float
    java_per_second: float
    python_us: float
    java_us: float


def python(server: Server, words: tuple[str, ...], seconds: float, warm_up: float) -> Found:
    """One run of `pocketmq bench`."""
    timing = ("-d", str(seconds), "--warm-up", str(warm_up))
    argv = [*POCKETMQ, *words, "-t", TOPIC, "-n", NAMESRV_ADDR, "--json", *timing]
    log = server.home / "run" / f"bench-{time.monotonic_ns()}.json"
    with Running(server.namespace, argv, log, name="pocketmq bench", separate_errors=True) as running:
        if running.finish(seconds + warm_up + 60) != 0:
            raise running.failed("failed")
        found = json.loads(running.output)
        return float(found["per_second"]), float(found["cpu_us_per_message"])


def java_sends(
    server: Server, version: str, load: Load, seconds: float, warm_up: float
) -> tuple[float, float]:
    """Messages a second of the official Producer after its warm-up, and CPU microseconds for each."""
    pattern = r"Send TPS: (\d+)"
    if load.java:
        argv = (*load.java, "-s", "128", "-n", NAMESRV_ADDR, "-t", TOPIC, "-ri", "1000")
        program = example(version, "benchmark.Producer")
    else:
        argv = (NAMESRV_ADDR, TOPIC, UNDER_WAY, "128")
        program = compile_java(version, ASYNC_SENDS)
    with server.programs.start_java(program, *argv, java_opts=(*FULL_SPEED, *BINARY_HEADER)) as running:
        running.wait_for(
            r"Send TPS: [1-9]", timeout=60
        )  # beside other work a JVM may need long for its first sends
        time.sleep(warm_up)
        before = len(re.findall(pattern, running.output))
        began, cpu_began = time.monotonic(), cpu_seconds(running.process.pid)
        time.sleep(seconds)
        elapsed, cpu = time.monotonic() - began, cpu_seconds(running.process.pid) - cpu_began
        rates = [int(text) for text in re.findall(pattern, running.output)[before:]]
        running.kill()
    rate = sum(rates) / max(len(rates), 1)
    return rate, cpu / max(rate * elapsed, 1) * 1e6


def java_drains(server: Server, version: str) -> tuple[float, float]:
    """The same of the official Consumer, over the full seconds in which it reads the backlog."""
    pattern = r"Consume TPS: (\d+)"
    # A group of its own each time: the next one reads from the beginning again.
    argv = (*DRAIN.java, "-n", NAMESRV_ADDR, "-t", TOPIC, "-g", f"drain-{time.monotonic_ns()}", "-ri", "1000")
    program = example(version, "benchmark.Consumer")
    with server.programs.start_java(program, *argv, java_opts=FULL_SPEED) as running:
        deadline = time.monotonic() + DRAIN_SECONDS
        rates: list[int] = []
        while time.monotonic() < deadline and not (any(rates) and rates[-1] == 0):
            time.sleep(0.2)
            rates = [int(text) for text in re.findall(pattern, running.output)]
        cpu = cpu_seconds(running.process.pid)
        running.kill()
    reading = [rate for rate in rates if rate]
    full = reading[1:-1] or reading
    return sum(full) / max(len(full), 1), cpu / max(sum(reading), 1) * 1e6


def run(server: Server, seconds: float, warm_up: float, version: str, only: str, turns: int) -> list[Row]:
    """Every load with both clients in turns."""
    rows = []
    for load in SENDS:
        if only in load.name:

            def ours(load: Load = load) -> Found:
                return python(server, load.python, seconds, warm_up)

            def official(load: Load = load) -> Found:
                return java_sends(server, version, load, seconds, warm_up)

            rows.append(in_turns(load.name, ours, official, turns))
    if only in DRAIN.name:
        python(server, BACKLOG.python, BACKLOG_SECONDS, 0)
        rows.append(
            in_turns(
                DRAIN.name,
                lambda: python(server, DRAIN.python, DRAIN_SECONDS, 0),
                lambda: java_drains(server, version),
                turns,
            )
        )
    return rows


def in_turns(name: str, ours: Callable[[], Found], official: Callable[[], Found], turns: int) -> Row:
    """The medians of so many runs of each, one after the other."""
    found = [(ours(), official()) for _ in range(turns)]
    row = Row(
        name,
        statistics.median(our[0] for our, _ in found),
        statistics.median(their[0] for _, their in found),
        statistics.median(our[1] for our, _ in found),
        statistics.median(their[1] for _, their in found),
    )
    print(
        f"  {name:38} Python {row.python_per_second:9.0f} /s   Java {row.java_per_second:9.0f} /s", flush=True
    )
    return row


def table(rows: list[Row]) -> str:
    lines = [
        "| load, 128 B | Python /s | Java /s | ratio | Python CPU us | Java CPU us |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        ratio = row.python_per_second / row.java_per_second if row.java_per_second else 0.0
        lines.append(
            f"| {row.name} | {row.python_per_second:.0f} | {row.java_per_second:.0f} | {ratio:.2f} | "
            f"{row.python_us:.1f} | {row.java_us:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--warm-up", type=float, default=6.0)
    parser.add_argument("--turns", type=int, default=3, help="runs of each client, in turns; medians count")
    parser.add_argument("--version", choices=("4.9", "5.5"), default="5.5")
    parser.add_argument("--broker", choices=("ours", "official"), default="ours")
    parser.add_argument("--only", default="", metavar="TEXT", help="loads whose name holds it")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print_load_average()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / options.broker
        server: Server = (
            OurServer(home, broker_conf=SETTINGS, options=("--log-level", "error"))
            if options.broker == "ours"
            else OfficialServer(options.version, home, broker_conf=SETTINGS, java_opts=FULL_SPEED)
        )
        with server:
            rows = run(server, options.seconds, options.warm_up, options.version, options.only, options.turns)
    print_load_average()
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
