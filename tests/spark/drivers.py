"""Programs with a driver of their own, and the Parquet files that their streams wrote."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyspark
import pytest
from pocketmq.pipeline.errors import NoJavaError
from pocketmq.pipeline.spark.session.java import find_java

SPARK_HOME = Path(pyspark.__file__).parent
LIMIT_SECONDS = 420
INSTALL_SECONDS = 600
JOB = "from pocketmq.cli.main import main; main()"
"""The command line as a program: `[python, "-c", JOB, "pipeline", ...]`."""

Ran = subprocess.CompletedProcess[str]


def need_java() -> None:
    """Skip the test if Spark has no Java to run on."""
    try:
        find_java()
    except NoJavaError as error:
        pytest.skip(f"Spark suite skipped: {error}")


def run(argv: Sequence[str | Path], env: Mapping[str, str] | None = None, folder: Path | None = None) -> Ran:
    """A program, run to its end."""
    return subprocess.run(
        argv, capture_output=True, text=True, env=env, check=False, timeout=LIMIT_SECONDS, cwd=folder
    )


def run_job(env: Mapping[str, str], *words: str) -> Ran:
    """`pocketmq pipeline` with these words, in a process of its own."""
    return run([sys.executable, "-c", JOB, "pipeline", *words], env)


def pip(*words: str, what: str) -> None:
    """Run pip; skip the test if it cannot do that here, as without a network."""
    argv = [sys.executable, "-m", "pip", *words]
    try:
        made = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{what} cannot be had within {INSTALL_SECONDS} s")
    if made.returncode != 0:
        pytest.skip(f"{what} cannot be had here: {made.stderr.strip()[-300:]}")


class Driver:
    """A driver in a process group of its own, with its JVM."""

    def __init__(self, log: Path, argv: Sequence[str], env: Mapping[str, str] | None) -> None:
        self._log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                argv, stdout=output, stderr=output, env=env, start_new_session=True
            )

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition, which must come true while the driver runs."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not condition():
            assert self.process.poll() is None, self.output()[-4000:]
            assert time.monotonic() < deadline, self.output()[-4000:]
            time.sleep(0.002)

    def wait_for(self, pattern: str) -> str:
        """The first group of a pattern, once it is in what the driver printed."""
        found: list[str] = []

        def search() -> bool:
            found.extend(re.findall(pattern, self.output(), re.MULTILINE))
            return bool(found)

        self.wait_until(search)
        return found[0]

    def found(self) -> dict[str, Any]:
        """What it printed after FOUND, once it has ended."""
        what: dict[str, Any] = json.loads(self.wait_for(r"^FOUND (.*)$"))
        self.end()
        return what

    def end(self) -> int:
        """Wait for its end; returns the exit code."""
        return self.process.wait(LIMIT_SECONDS)

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def signal(self, number: int) -> None:
        """A signal for all of its processes, as a terminal sends Ctrl-C."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def driver(log: Path, argv: Sequence[str], env: Mapping[str, str] | None = None) -> Iterator[Driver]:
    """A driver that is killed at the end at the latest."""
    one = Driver(log, argv, env)
    try:
        yield one
    finally:
        one.kill()


def stream_files(folder: Path) -> list[Path]:
    """The files that the log of a stream's sink names: a batch that was interrupted leaves others behind."""
    names = set()
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            names.add(unquote(json.loads(line)["path"].removeprefix("file://")))
    return sorted(Path(name) for name in names)


def stream_column(folder: Path, column: str = "text") -> list[Any]:
    """A column of what a stream wrote, sorted."""
    import pyarrow.parquet as pq

    tables = [pq.read_table(path, columns=[column], partitioning=None) for path in stream_files(folder)]
    return sorted(value for table in tables for value in table.column(column).to_pylist())
