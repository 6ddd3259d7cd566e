"""What the programs share: options, the loop of a server, a broker in it, server processes, their figures, limits.

Load averages are printed beside rates, to interpret them.
"""

import argparse
import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.config.name_server_config import NameServerConfig
from pocketmq.broker.node import Node
from pocketmq.broker.process import loop_factory
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.store.config import StoreConfig

THRESHOLDS = Path(__file__).with_name("thresholds.toml")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def parsed(document: str | None, **options: Any) -> argparse.Namespace:
    """`--name VALUE` for each, of its default's type; False is a flag. `document` is the program's docstring."""
    parser = argparse.ArgumentParser(description=(document or "").partition("\n")[0])
    for name, default in options.items():
        words = "rows whose name holds it" if name == "only" else None
        if default is False:
            parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=words)
        else:
            kind = str if default is None else type(default)
            parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default, help=words)
    return parser.parse_args()


def run(measure: Callable[[Path], Coroutine[Any, Any, None]]) -> None:
    """In a loop as a broker has it and with a temporary folder, between load averages."""
    print_load_average()
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(measure(Path(folder)))
    print_load_average()


@contextlib.asynccontextmanager
async def started_node(folder: Path, **settings: Any) -> AsyncIterator[Node]:
    """Name server and broker in this process, on free ports."""
    config = BrokerConfig(store=StoreConfig(store_path_root_dir=str(folder)), listen_port=0, **settings)
    node = Node(config, NameServerConfig(listen_port=0))
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


def ask(peer: socket.socket, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> Command:
    """One request and its answer."""
    peer.sendall(encode_frame(Command(code, 1, fields=fields, body=body or None)))
    cutter, found = FrameCutter(), list[Command]()
    while not found:
        found = cutter.feed(peer.recv(1 << 20))
    return found[0]


# -- a server process


@dataclass(frozen=True)
class Served:
    """The address of its name server, and its process id."""

    namesrv: str
    pid: int
    output: IO[str]
    """What it prints after the line with the address."""


@contextlib.contextmanager
def served(
    folder: str | Path,
    *words: str,
    ports: tuple[str, ...] = ("--port", "0", "--namesrv-port", "0"),
    log_level: str = "error",
    errors: IO[str] | None = None,
) -> Iterator[Served]:
    """A server with its store in `folder`, on free ports, until the block ends."""
    command = [sys.executable, "-m", "pocketmq.cli", "serve", "--store", str(folder), *ports, *words]
    server = subprocess.Popen(
        [*command, "--log-level", log_level], stdout=subprocess.PIPE, stderr=errors, text=True
    )
    assert server.stdout is not None
    try:
        address = server.stdout.readline().strip().partition("=")[2]
        yield Served(address, server.pid, server.stdout)
    finally:
        server.terminate()
        server.wait()


# -- figures of processes


def print_load_average() -> None:
    """The system's load averages over 1, 5 and 15 minutes."""
    print("load average", *(f"{value:.1f}" for value in os.getloadavg()), flush=True)


def cpu_seconds(process_id: int) -> float:
    """User and system time a process has used, its threads included."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def tree_seconds(name: str) -> float:
    """User and system time of the programs of this name that this process started, and of all below them."""
    return sum(processor_seconds(name))


def processor_seconds(name: str) -> tuple[float, float]:
    """User and system time of (the programs of this name that this process started, all processes below them)."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:  # it has ended
            continue
        head, _, tail = text.rpartition(")")
        processes[int(path.parent.name)] = (head.partition("(")[2], tail.split())
    roots = {
        process
        for process, (program, fields) in processes.items()
        if program == name and int(fields[1]) == os.getpid()
    }
    wanted, counted = set(roots), set[int]()
    while wanted - counted:
        counted |= wanted
        wanted |= {process for process, (_, fields) in processes.items() if int(fields[1]) in counted}
    own = below = 0
    for process in counted:
        user, system, *of_ended_children = map(int, processes[process][1][11:15])
        own += user + system if process in roots else 0
        below += sum(of_ended_children) + (0 if process in roots else user + system)
    return own / _TICKS_PER_SECOND, below / _TICKS_PER_SECOND


def memory_bytes(process_id: int, kind: str = "RssAnon") -> int:
    """Private memory of a process, which it would not give back by closing its files; VmRSS is all that is resident."""
    found = re.search(rf"{kind}:\s+(\d+) kB", Path(f"/proc/{process_id}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


# -- limits


def check(program: str, measured_ms: dict[str, float]) -> None:
    """Raises SystemExit with a line for each figure above its limit; a figure without a limit is only a figure."""
    limits = tomllib.loads(THRESHOLDS.read_text("utf-8"))[program]
    above = [
        f"{name}: {measured_ms[name]:.1f} ms, the limit is {limit} ms"
        for name, limit in limits.items()
        if measured_ms.get(name, 0) > limit
    ]
    if above:
        raise SystemExit("\n".join(above))
