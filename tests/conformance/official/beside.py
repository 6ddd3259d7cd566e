"""A Java program of ours beside a server in this process: it finds the server through NAMESRV_ADDR alone.

Not in a namespace, so several may run at once, and a test can look into the server meanwhile. Programs with servers of
their own: `programs.py`.
"""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from conformance.official.jars import prepare_home
from conformance.official.programs import CLIENT_HEAP, compile_java
from waiting import wait_until

JAVA = Path(__file__).parent.parent / "java"
START_S = 60.0
"""Longer than a JVM needs to start and get its first messages, on a busy machine."""


class BesideClient:
    """One run of a program that a line on its standard input ends; `said` are the lines that match."""

    def __init__(self, argv: Sequence[str], environment: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                argv, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
            )

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


class BesideClients:
    """Starts them, and ends what a test left running. `home` is the home directory of the Java programs."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._started: list[BesideClient] = []
        prepare_home(home)

    def java(self, version: str, source: str, namesrv_addr: str, *words: str) -> BesideClient:
        """Start a program of tests/conformance/java with the client of a version, "4.9" or "5.5"."""
        program = compile_java(version, (JAVA / f"{source}.java").read_text(encoding="utf-8"))
        return self.run(program.command(self._home, CLIENT_HEAP, words), NAMESRV_ADDR=namesrv_addr)

    def run(self, argv: Sequence[str], **environment: str) -> BesideClient:
        log = self._home / f"{len(self._started)}.out"
        client = BesideClient(argv, {**os.environ, "HOME": str(self._home), **environment}, log)
        self._started.append(client)
        return client

    def close(self) -> None:
        for client in self._started:
            client.process.kill()
            client.process.communicate()
