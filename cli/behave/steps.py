"""What each word of a scenario does.

feed: 100 | {messages, seconds, fails}   the bench sends messages to the topic, spread over the time, while it goes on
until: {sent: 20}                 the program has stored so many more messages
until: {delivered: 20 | all}      so many more were delivered; all that the bench has sent
until: {redelivered: 4}           so many deliveries of messages that had failed
until: {joined: 2}                so many clients pull the topic
until: {dead_letters: 2}          so many messages of the group became dead letters
until: {hits: 5}                  rules have hit so many requests; with `seconds`, how long to wait (30)
pause: 2                          seconds
fault: {effect: ...}              a rule, as over HTTP; end_faults removes all rules
stop, kill, start: b0             a broker, a slave (b0-1) or a name server (n0)
hide, show: b1                    routes without this broker, and with it again
slow: {broker: b0, seconds: 1}    every answer later; 0 ends it
replicate                         wait until the slaves have what the masters have
start_program, end_program: 1     so many more programs, or the newest ones fewer
kill_program: 1                   the same without a word: SIGKILL
"""

import time
from collections.abc import Callable
from typing import Any, Final

from pocketmq.broker.errors import StartError
from pocketmq.testing.errors import TestingError
from pocketmq.testing.faults.rule_json import add_rule

from .receives import PULLS
from .scenario import ScenarioError, Step
from .sends import sends_of
from .stage import GROUP, TOPIC, Stage, now_ms

UNTIL_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.05


def play(stage: Stage) -> None:
    """The whole scenario. `ScenarioError` for a step that fails, `ProgramError` if the program cannot be run."""
    scenario = stage.scenario
    for number, step in enumerate(scenario.before, 1):
        _do(stage, step, f"before {number}")
    stage.start_programs(scenario.programs)
    if stage.began_ms is not None:
        stage.began_ms = now_ms()  # it is trouble from the program's start on
    for number, step in enumerate(scenario.steps, 1):
        _do(stage, step, f"steps {number}")


def _do(stage: Stage, step: Step, where: str) -> None:
    mends = step.verb in _MENDING or (step.verb == "slow" and step.value.get("seconds") == 0)
    try:
        if step.verb in _TROUBLE and not mends:
            stage.began_ms = stage.began_ms or now_ms()
        _ACTIONS[step.verb](stage, step.value)
        if mends:
            stage.mended_ms = now_ms()
    except (StartError, TestingError, TypeError) as error:
        raise ScenarioError(f"scenario {stage.scenario.name}: {where}: {step.verb}: {error}") from error


def _until(stage: Stage, words: dict[str, Any]) -> None:
    longest = words.get("seconds", UNTIL_SECONDS)
    deadline = time.monotonic() + longest
    wanted = {name: value for name, value in words.items() if name != "seconds"}
    begun = {name: _COUNTS[name](stage) if name in _FROM_NOW_ON else 0 for name in wanted}
    for name, value in wanted.items():
        while True:
            least = stage.planned if value == "all" else value
            have = _COUNTS[name](stage) - (0 if value == "all" else begun[name])
            if have >= least:
                break
            if time.monotonic() > deadline:
                stage.not_reached.append(f"{name} {value}: {have} of {least} within {longest:g} s")
                break
            stage.wait(_LOOK_SECONDS)


def _fault(stage: Stage, words: dict[str, Any]) -> None:
    filled = {name: _filled(value) for name, value in words.items()}
    stage.rules.append(add_rule(stage.cluster.faults, filled))


def _filled(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return value.replace("{topic}", TOPIC).replace("{group}", GROUP)


def _start_more(stage: Stage, count: int) -> None:
    stage.joined_ms.append(now_ms())
    stage.start_programs(count)


def _end_some(stage: Stage, count: int) -> None:
    running = [program for program in stage.programs if program.is_running]
    stage.left_ms.append(now_ms())
    stage.end_programs(running[-count:])


def _kill_some(stage: Stage, count: int) -> None:
    stage.left_ms.append(now_ms())
    stage.kill_programs(count)


def _sent(stage: Stage) -> int:
    return len({one.message for one in sends_of(stage.requests()) if one.is_stored})


def _delivered(stage: Stage) -> int:
    return len({one.message_id for one in stage.cluster.ledger.deliveries()})


def _joined(stage: Stage) -> int:
    return len({one.client_id for one in stage.requests() if one.name in PULLS and one.topic == TOPIC})


def _redelivered(stage: Stage) -> int:
    return sum(one.is_retry for one in stage.cluster.ledger.deliveries())


_COUNTS: Final[dict[str, Callable[[Stage], int]]] = {
    "sent": _sent,
    "delivered": _delivered,
    "redelivered": _redelivered,
    "joined": _joined,
    "dead_letters": Stage.dead_letters,
    "hits": Stage.hits,
}
_FROM_NOW_ON: Final = ("sent", "delivered")
_TROUBLE: Final = ("fault", "stop", "kill", "hide", "slow", "start_program", "end_program", "kill_program")
_MENDING: Final = ("end_faults", "start", "show")
_ACTIONS: Final[dict[str, Callable[[Stage, Any], None]]] = {
    "feed": lambda stage, value: stage.feed(
        value["messages"], value.get("seconds", 0.0), value.get("fails", 0)
    ),
    "until": _until,
    "pause": Stage.wait,
    "fault": _fault,
    "end_faults": lambda stage, _: stage.cluster.faults.clear(),
    "stop": lambda stage, name: stage.member(name).stop(),
    "kill": lambda stage, name: stage.cluster.broker(name).kill(),
    "start": lambda stage, name: stage.member(name).start(),
    "hide": lambda stage, name: stage.cluster.broker(name).hide(),
    "show": lambda stage, name: stage.cluster.broker(name).show(),
    "slow": lambda stage, value: stage.cluster.broker(value["broker"]).slow(value.get("seconds", 1.0)),
    "replicate": lambda stage, _: stage.cluster.wait_replicated(30.0),
    "start_program": _start_more,
    "end_program": _end_some,
    "kill_program": _kill_some,
}
