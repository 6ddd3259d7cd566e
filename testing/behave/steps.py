"""What each step of a scenario does; `scenario.py` has the words."""

import time
from collections.abc import Callable
from typing import Any, Final

from pocketmq.broker.errors import StartError
from pocketmq.client.clock import wall_ms

from ..errors import TestingError
from ..faults.rule_json import add_rule
from . import scenario as words
from .receives import PULLS
from .scenario import AnyStep, ScenarioError
from .sends import sends_of
from .stage import GROUP, TOPIC, Stage

_LOOK_SECONDS: Final = 0.05
_TROUBLE: Final = (
    words.Fault,
    words.Stop,
    words.Kill,
    words.Hide,
    words.Slow,
    words.StartProgram,
    words.EndProgram,
    words.KillProgram,
)
_MENDING: Final = (words.EndFaults, words.Start, words.Show)


def play(stage: Stage) -> None:
    """The whole scenario. `ScenarioError` for a step that fails, `ProgramError` if the program cannot be run."""
    scenario = stage.scenario
    for number, step in enumerate(scenario.before, 1):
        _do(stage, step, f"before {number}")
    stage.start_programs(scenario.programs)
    if stage.began_ms is not None:
        stage.began_ms = wall_ms()  # it is trouble from the program's start on
    for number, step in enumerate(scenario.steps, 1):
        _do(stage, step, f"steps {number}")


def _do(stage: Stage, step: AnyStep, where: str) -> None:
    mends = isinstance(step, _MENDING) or (isinstance(step, words.Slow) and step.seconds == 0)
    try:
        if isinstance(step, _TROUBLE) and not mends:
            stage.began_ms = stage.began_ms or wall_ms()
        _act(stage, step)
        if mends:
            stage.mended_ms = wall_ms()
    except (StartError, TestingError, TypeError) as error:
        raise ScenarioError(f"scenario {stage.scenario.name}: {where}: {_tag(step)}: {error}") from error


def _tag(step: AnyStep) -> str:
    return str(step.__struct_config__.tag)


def _act(stage: Stage, step: AnyStep) -> None:
    cluster = stage.cluster
    match step:
        case words.Feed():
            stage.feed(step.messages, step.seconds, step.fails)
        case words.Until():
            _until(stage, step)
        case words.Pause():
            if stage.end_of_programs() is None:
                stage.wait(step.seconds)
        case words.Fault():
            filled = {name: _filled(value) for name, value in step.words.items()}
            stage.rules.append(add_rule(cluster.faults, filled))
        case words.EndFaults():
            cluster.faults.clear()
        case words.Stop() | words.Start():
            getattr(stage.member(step.name), _tag(step))()
        case words.MemberStep():
            getattr(cluster.broker(step.name), _tag(step))()
        case words.Slow():
            cluster.broker(step.broker).slow(step.seconds)
        case words.Replicate():
            cluster.wait_replicated(30.0)
        case words.StartProgram():
            stage.joined_ms.append(wall_ms())
            stage.start_programs(step.count)
        case words.EndProgram():
            running = [program for program in stage.programs if program.is_running]
            stage.left_ms.append(wall_ms())
            stage.end_programs(running[-step.count :])
        case words.KillProgram():
            stage.left_ms.append(wall_ms())
            stage.kill_programs(step.count)


def _until(stage: Stage, step: words.Until) -> None:
    deadline = time.monotonic() + step.seconds
    wanted = {name: value for name in _COUNTS if (value := getattr(step, name)) is not None}
    begun = {name: _COUNTS[name](stage) if name in _FROM_NOW_ON else 0 for name in wanted}
    for name, value in wanted.items():
        while True:
            least = stage.planned if value == "all" else value
            have = _COUNTS[name](stage) - (0 if value == "all" else begun[name])
            if have >= least:
                break
            end = stage.end_of_programs()
            if end is not None or time.monotonic() > deadline:
                how = f"within {step.seconds:g} s" if end is None else f"when {end}"
                stage.not_reached.append(f"{name} {value}: {have} of {least} {how}")
                break
            stage.wait(_LOOK_SECONDS)


def _filled(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return value.replace("{topic}", TOPIC).replace("{group}", GROUP)


_COUNTS: Final[dict[str, Callable[[Stage], int]]] = {
    "sent": lambda stage: len({one.message for one in sends_of(stage.requests()) if one.is_stored}),
    "delivered": lambda stage: len({one.message_id for one in stage.cluster.ledger.deliveries()}),
    "redelivered": lambda stage: sum(one.is_retry for one in stage.cluster.ledger.deliveries()),
    "joined": lambda stage: len(
        {one.client_id for one in stage.requests() if one.name in PULLS and one.topic == TOPIC}
    ),
    "dead_letters": Stage.dead_letters,
    "hits": Stage.hits,
}
_FROM_NOW_ON: Final = ("sent", "delivered")
