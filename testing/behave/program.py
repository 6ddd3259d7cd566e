"""The program under test: a process group that is started, asked to end, and ended.

What a scenario wants of it is in its environment, and in the words of its command line that are written in braces:

    NAMESRV_ADDR             {namesrv}   the name servers
    ROCKETMQ_GRPC_ENDPOINT   {grpc}      the gRPC ports of all brokers, joined by `;`; not with emulate: 4.9
    BEHAVE_TOPIC             {topic}     the topic to send to or to read
    BEHAVE_GROUP             {group}     the consumer group
    BEHAVE_ROLE              {role}      producer, consumer, ordered or both

A program that knows none of them but the address is judged all the same, by whatever topics and groups it uses. It runs
until SIGTERM. Lines of its standard output that begin with a word in capitals are counted by that word.
"""

import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from ..server.after_death import end_after_death, let_live

END_SECONDS: Final = 30.0
"""How long a program may take to end after SIGTERM. The Java client for gRPC waits for its receive: 20 seconds."""
MAX_OUTPUT: Final = 16 << 20
"""Bytes of a program's output that are looked at."""
_IN_BRACES: Final = {"NAMESRV_ADDR": "namesrv", "ROCKETMQ_GRPC_ENDPOINT": "grpc"}
"""Variables whose word in braces is not their end in small letters."""
_SAID: Final = re.compile(rb"^([A-Z][A-Z_]+)\b", re.MULTILINE)


class ProgramError(Exception):
    """The program cannot be run; the text is one line."""


class Program:
    """One process with its children. Not restarted."""

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], output: Path) -> None:
        """Start it; what it prints goes to `output`. `ProgramError` if it cannot be run."""
        values = {
            _IN_BRACES.get(name, name.removeprefix("BEHAVE_").lower()): value
            for name, value in variables.items()
        }
        words = [_filled(word, values) for word in command]
        self._output: Final = output
        self._file: IO[bytes] = output.open("wb")
        self.started_ms: Final = time.time_ns() // 1_000_000
        self.end_ms: int | None = None
        """How long it took to end after it was asked to; None if it ended before."""
        self.was_killed = False
        try:
            self._process = subprocess.Popen(
                words,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=self._file,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        except OSError as error:
            self._file.close()
            raise ProgramError(f"cannot run {words[0]}: {error.strerror or error}") from error
        end_after_death(-self._process.pid)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """As shells say it: 128 and the signal's number, if a signal ended it. None while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def kill(self) -> None:
        """SIGKILL: it closes nothing and notifies no broker."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        """SIGTERM, and SIGKILL for what is left after `END_SECONDS`."""
        if self._file.closed:
            return
        try:
            self._end()
        finally:
            self._signal(signal.SIGKILL)  # children that outlived it
            let_live(-self._process.pid)
            self._file.close()

    def _end(self) -> None:
        if not self.is_running:
            return
        began = time.monotonic()
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(END_SECONDS)
            self.end_ms = round((time.monotonic() - began) * 1000)
        except subprocess.TimeoutExpired:
            self.was_killed = True
            self._signal(signal.SIGKILL)
            self._process.wait()

    def said(self) -> Counter[str]:
        """How many lines it printed with each first word in capitals."""
        with self._output.open("rb") as file:
            text = file.read(MAX_OUTPUT)
        return Counter(word.decode() for word in _SAID.findall(text))

    def tail(self, lines: int = 5) -> str:
        """The last lines of its output."""
        with self._output.open("rb") as file:
            file.seek(max(0, self._output.stat().st_size - 4096))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word
