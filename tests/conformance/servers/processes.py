"""A program under test: started in a namespace, its output kept in a file, always ended.

Output goes to a file, not a pipe: a program never blocks because no one reads, and the file remains after a failure.
"""

import base64
import contextlib
import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from conformance.servers.namespaces import Namespace, clean_environment

POLL_S = 0.03
COMMAND_TIMEOUT_S = 60.0


class ProgramFailed(AssertionError):
    """A program ended, printed nothing or printed the wrong thing; the text ends with its last output."""


class Running:
    """A started program. `wait_for` its output, then `stop` it, `kill` it or `finish`: wait until it ends by itself."""

    def __init__(
        self,
        namespace: Namespace,
        argv: Sequence[str],
        log: Path,
        *,
        name: str = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        separate_errors: bool = False,
    ) -> None:
        self.name = name or os.path.basename(argv[0])
        self.log = log
        self.error_log = log.with_suffix(log.suffix + ".err") if separate_errors else log
        self._namespace = namespace
        log.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as files:
            output = files.enter_context(log.open("wb"))
            errors = files.enter_context(self.error_log.open("wb")) if separate_errors else None
            environment = clean_environment() if env is None else env
            self.process = namespace.popen(argv, output, environment, cwd or log.parent, errors)

    @property
    def output(self) -> str:
        """All of stdout (and of stderr, unless separate) so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def errors(self) -> str:
        return self.error_log.read_text(encoding="utf-8", errors="replace")

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def wait_for(self, pattern: str, timeout: float = 30.0, count: int = 1) -> re.Match[str]:
        """The count-th match of pattern (MULTILINE) in the output; ProgramFailed if it ends or time is up."""
        compiled = re.compile(pattern, re.MULTILINE)
        deadline = time.monotonic() + timeout
        while True:
            ended = (
                not self.alive
            )  # checked before reading, so that the last output of an ending program is still read
            matches = list(compiled.finditer(self.output))
            if len(matches) >= count:
                return matches[count - 1]
            if ended:
                raise self.failed(
                    f"ended with {self.process.returncode} before saying {pattern!r} ({len(matches)}/{count})"
                )
            if time.monotonic() > deadline:
                raise self.failed(f"did not say {pattern!r} within {timeout:g} s ({len(matches)}/{count})")
            time.sleep(POLL_S)

    def say_words(self, *words: str) -> None:
        """Write a line of words that may have blanks: each in Base64."""
        self.say(" ".join(base64.b64encode(word.encode()).decode() for word in words))

    def say(self, line: str) -> None:
        """Write one line to the program's standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def finish(self, timeout: float = 60.0) -> int:
        """Wait until it ends by itself; its exit code."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self.failed(f"still running after {timeout:g} s") from None
        self._ended()
        return code

    def stop(self, timeout: float = 20.0) -> int:
        """SIGTERM, then SIGKILL if it does not end; its exit code (143 or -15 is usual for Java)."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
        self._ended()
        return self.process.returncode

    def kill(self) -> None:
        """SIGKILL to the whole group, like a crash."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._ended()

    def freeze(self) -> None:
        """SIGSTOP: alive for the kernel, silent for its peers."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def failed(self, what: str) -> ProgramFailed:
        tail = "\n".join(self.output.splitlines()[-25:])
        if self.error_log != self.log:
            tail += "\n--- stderr\n" + "\n".join(self.errors.splitlines()[-25:])
        return ProgramFailed(f"{self.name} {what}; its last output:\n{tail}")

    def _ended(self) -> None:
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        self._namespace.forget(self.process)

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class CommandShell:
    """A program that runs one command after the other: after what a command printed it prints a mark."""

    def __init__(self, start: Callable[[str], Running]) -> None:
        """`start` starts it with that mark as an argument; it prints the mark first."""
        self._mark = f"--- {uuid.uuid4().hex} ---"
        self._done = 1
        self._running = start(self._mark)
        self._running.wait_for(re.escape(self._mark))

    @property
    def alive(self) -> bool:
        return self._running.alive

    def __call__(self, *words: str) -> str:
        """What the command printed. Raises ProgramFailed when the command ends the program or the time is up."""
        before = len(self._running.output)
        self._running.say_words(*words)
        self._done += 1
        self._running.wait_for(f"^{re.escape(self._mark)}$", COMMAND_TIMEOUT_S, count=self._done)
        return self._running.output[before:].replace(self._mark, "").strip("\n")

    def close(self) -> None:
        self._running.stop()
