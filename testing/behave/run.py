"""Several scenarios, one after the other or at once: a report."""

import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

from .measures import Measures, measure
from .report import Played, Report
from .scenario import Scenario
from .stage import Stage, now_ms
from .steps import play

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
        return measure(stage, now_ms())


def _result(task: Future[Measures]) -> Measures:
    """What a task returned. Looks up now and then: a signal that arrives just before a thread begins to wait for a lock
    does not wake it."""
    while not task.done():
        wait([task], _LOOK_UP_SECONDS)
    return task.result()
