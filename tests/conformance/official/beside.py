"""A Java program of ours beside a server in this process: it finds the server through NAMESRV_ADDR alone.

Not in a namespace, so several may run at once, and a test can look into the server meanwhile. Programs with servers of
their own: `programs.py`.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance import JAVA
from conformance.official.jars import prepare_home
from conformance.official.programs import CLIENT_HEAP, compile_java
from waiting import wait_until

START_S = 60.0
"""Longer than a JVM needs to start and get its first messages, on a busy machine."""


class BesideClient:
    """One run of a program that a line on its standard input ends; `said` are the lines that match."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log

    def said(self, pattern: str) -> list[str]:
        return re.findall(pattern, self._log.read_text(encoding="utf-8"), re.MULTILINE)

    def wait_for(self, pattern: str, count: int = 1, timeout: float = START_S) -> list[str]:
        wait_until(lambda: len(self.said(pattern)) >= count, f"{count} times {pattern}", timeout)
        return self.said(pattern)

    def leave(self) -> None:
        """End it cleanly."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.close()
        self.process.wait(START_S)


StartBeside = Callable[..., BesideClient]


@contextmanager
def java_beside(version: str, home: Path) -> Iterator[StartBeside]:
    """start(program of tests/conformance/java, namesrv_addr, *words) with the client of a version, "4.9" or "5.5".

    `home` is their home directory. What is left running is ended.
    """
    started: list[BesideClient] = []
    prepare_home(home)

    def start(source: str, namesrv_addr: str, *words: str) -> BesideClient:
        program = compile_java(version, JAVA / f"{source}.java")
        log = home / f"{len(started)}.out"
        with log.open("wb") as output:
            process = subprocess.Popen(
                program.command(home, CLIENT_HEAP, words),
                env={**os.environ, "HOME": str(home), "NAMESRV_ADDR": namesrv_addr},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        started.append(BesideClient(process, log))
        return started[-1]

    yield start
    for client in started:
        client.process.kill()
        client.process.communicate()
