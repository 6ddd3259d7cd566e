"""A server process for a measurement: starts it, finds its address, ends it."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO


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
