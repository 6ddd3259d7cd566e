"""Several scenarios, one after the other or at once: a report."""

import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import msgspec
from pocketmq.client.clock import wall_ms

from .measures import Measures, measure
from .scenario import Scenario
from .stage import Stage
from .steps import play


class ReportError(Exception):
    """A report that cannot be read or written; the text is one line."""


class Played(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One scenario with its figures."""

    about: str
    role: str
    measures: Measures


class Report(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client did; scenarios in the order they were asked for."""

    client: str
    command: list[str]
    scenarios: dict[str, Played]

    def trouble(self) -> list[str]:
        """What a program should not do: one sentence each."""
        found = []
        for name, played in self.scenarios.items():
            measures = played.measures
            if measures.lost:
                ids = "; ".join(measures.lost_messages)
                found.append(f"{name}: {measures.lost} messages were lost{f': {ids}' if ids else ''}")
            found += [f"{name}: not reached: {text}" for text in measures.not_reached]
            if measures.killed:
                found.append(f"{name}: the program did not end after SIGTERM")
        return found


def write_report(path: Path, report: Report) -> None:
    """Raises `ReportError`."""
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror or error}") from error


def read_report(path: Path) -> Report:
    """Raises `ReportError`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except OSError as error:
        raise ReportError(f"cannot read {path}: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise ReportError(f"{path} is no report of pocketmq behave: {error}") from error


MAX_AT_ONCE: Final = 16
_LOOK_UP_SECONDS: Final = 0.2


def run(
    scenarios: Sequence[Scenario], command: Sequence[str], client: str, jobs: int, output: Path | None
) -> Report:
    """Play the scenarios with a client program, `jobs` at once. The first error ends it all.

    `output` keeps what the programs print; without it, that goes to a temporary folder.
    """
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    folders: Any = tempfile.TemporaryDirectory() if output is None else nullcontext(str(output))
    ended = threading.Event()
    with folders as folder, ThreadPoolExecutor(jobs) as pool:
        tasks = [pool.submit(run_scenario, one, command, Path(folder), ended) for one in scenarios]
        try:
            measured = [_result(task) for task in tasks]
        except BaseException:
            ended.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    played = {
        one.name: Played(about=one.about, role=one.role, measures=measures)
        for one, measures in zip(scenarios, measured, strict=True)
    }
    return Report(client=client, command=list(command), scenarios=played)


def run_scenario(
    scenario: Scenario, command: Sequence[str], folder: Path, ended: threading.Event | None = None
) -> Measures:
    """Play one scenario; files of its programs go to `folder`. `ScenarioError` soon after `ended` is set."""
    with Stage(scenario, command, folder, ended) as stage:
        play(stage)
        return measure(stage, wall_ms())


def _result(task: Future[Measures]) -> Measures:
    """What a task returned. Looks up now and then: a signal that arrives just before a thread begins to wait for a lock
    does not wake it."""
    while not task.done():
        wait([task], _LOOK_UP_SECONDS)
    return task.result()
