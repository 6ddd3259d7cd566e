"""A scenario: which brokers, what happens to them, and what the program is asked to do meanwhile. Read from YAML.

    about: The broker refuses five sends as busy.
    role: producer                       what the program should do: producer, consumer, ordered (a consumer), or both
    clients: grpc                        played for programs that speak `grpc`, `remoting`, or `all`
    brokers: 1                           also: slaves (of each broker), name_servers, queues, programs, emulate,
                                         settings (of broker.conf), retries (of a message that fails)
    before: [stop: n0]                   done before the program is started
    steps:
      - until: {sent: 20}
      - fault: {effect: refuse, broker: b0, topic: "{topic}", response: SYSTEM_BUSY, times: 5}
      - until: {sent: 20}

`steps.py` says what each word of `before` and `steps` does. Every error is one line that names the file and the place.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from pocketmq.testing.errors import LoadError
from pocketmq.testing.state.yaml_file import read_yaml

ROLES: Final = ("producer", "consumer", "ordered", "both")
CLIENTS: Final = ("all", "grpc", "remoting")
MOST_MEMBERS: Final = 8
MOST_RETRIES: Final = 16
MOST_QUEUES: Final = 64
MOST_MESSAGES: Final = 10_000
MOST_SECONDS: Final = 3600.0
FOLDER: Final = Path(__file__).with_name("scenarios")


class ScenarioError(LoadError):
    """A scenario that cannot be read or played; the text is one line."""


class Step(NamedTuple):
    """One thing that happens."""

    verb: str
    value: Any


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What is played."""

    name: str
    about: str
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    role: str = "both"
    clients: str = "all"
    """The programs for which it is played unless they ask for it by name."""
    retries: int = MOST_RETRIES
    """How often a message that fails is delivered again before it becomes a dead letter."""
    brokers: int = 1
    slaves: int = 0
    name_servers: int = 1
    queues: int = 4
    programs: int = 1
    emulate: str = "5"
    settings: dict[str, Any] = {}


def built_in() -> dict[str, Path]:
    """The scenarios that come with PocketMQ, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def played_for(protocol: str) -> list[Scenario]:
    """Those of them that are for programs which speak `grpc`, or `remoting`."""
    return [one for one in map(read_scenario, built_in()) if one.clients in ("all", protocol)]


def read_scenario(word: str) -> Scenario:
    """A scenario by its name, or from a file. `LoadError` for one that does not exist or is wrong."""
    known = built_in()
    path = known.get(word)
    if path is None:
        path = Path(word)
        if not path.suffix:
            raise ScenarioError(f"no scenario is called {word}: use a file, or one of {', '.join(known)}")
    return scenario_of(path.stem, read_yaml(path, list(_WORDS)), str(path))


def scenario_of(name: str, content: Mapping[Any, Any], where: str) -> Scenario:
    """A scenario from the content of its file. `ScenarioError` names `where` and what is wrong."""
    for word in content:
        if word not in _WORDS:
            raise ScenarioError(f"{where}: unknown word {word}, allowed are {', '.join(_WORDS)}")
    values: dict[str, Any] = {}
    for word, value in content.items():
        try:
            values[word] = _WORDS[word](value)
        except ValueError as error:
            raise ScenarioError(f"{where}: {word} {error}") from error
    for word in ("about", "steps"):
        if word not in values:
            raise ScenarioError(f"{where}: {word} is missing")
    return Scenario(name=name, **values)


# -- checks: each returns the value, or raises ValueError with the end of a sentence that begins with the word


def text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"must be a text that is not empty, got {value!r}")
    return value


def whole(least: int, most: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least} to {most}, got {value!r}")
        return value

    return check


def seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_SECONDS:
        raise ValueError(f"must be a number of seconds from 0 to {MOST_SECONDS:g}, got {value!r}")
    return float(value)


def nothing(value: object) -> None:
    if value is not None:
        raise ValueError(f"takes no value, got {value!r}")


def words(**checks: Callable[[Any], Any]) -> Callable[[object], dict[str, Any]]:
    """A map with some of these words."""

    def check(value: object) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not value:
            raise ValueError(f"must be a map with {', '.join(checks)}, got {value!r}")
        for word in value:
            if word not in checks:
                raise ValueError(f"has no word {word}, allowed are {', '.join(checks)}")
        return {word: _named(word, checks[word], one) for word, one in value.items()}

    return check


def _named(word: str, check: Callable[[Any], Any], value: object) -> Any:
    try:
        return check(value)
    except ValueError as error:
        raise ValueError(f"{word} {error}") from error


def _count_or_all(value: object) -> "int | str":
    return "all" if value == "all" else whole(1, MOST_MESSAGES)(value)


def _mapping(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a map, got {value!r}")
    return dict(value)


def _one_of(allowed: Sequence[str]) -> Callable[[object], str]:
    def check(value: object) -> str:
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}, got {value!r}")
        return str(value)

    return check


def _feed(value: object) -> dict[str, Any]:
    return _FEED({"messages": value} if isinstance(value, int) else value)


_FEED: Final = words(messages=whole(1, MOST_MESSAGES), seconds=seconds, fails=whole(1, MOST_RETRIES + 1))
VERBS: Final[dict[str, Callable[[Any], Any]]] = {
    "feed": _feed,
    "until": words(
        sent=whole(1, MOST_MESSAGES),
        delivered=_count_or_all,
        redelivered=whole(1, MOST_MESSAGES),
        joined=whole(1, MOST_MEMBERS),
        dead_letters=whole(1, MOST_MESSAGES),
        hits=whole(1, MOST_MESSAGES),
        seconds=seconds,
    ),
    "pause": seconds,
    "fault": _mapping,
    "end_faults": nothing,
    "stop": text,
    "kill": text,
    "start": text,
    "hide": text,
    "show": text,
    "slow": words(broker=text, seconds=seconds),
    "replicate": nothing,
    "start_program": whole(1, MOST_MEMBERS),
    "end_program": whole(1, MOST_MEMBERS),
    "kill_program": whole(1, MOST_MEMBERS),
}
"""What may happen, and the check of its value."""


def _steps(value: object) -> tuple[Step, ...]:
    if not isinstance(value, list):
        raise ValueError(f"must be a list, got {value!r}")
    return tuple(_step(number, one) for number, one in enumerate(value, 1))


def _step(number: int, value: object) -> Step:
    pair = {value: None} if isinstance(value, str) else value
    if not isinstance(pair, Mapping) or len(pair) != 1:
        raise ValueError(f"{number} must be one word with its value, got {value!r}")
    [(verb, given)] = pair.items()
    if verb not in VERBS:
        raise ValueError(f"{number}: unknown word {verb}, allowed are {', '.join(VERBS)}")
    try:
        return Step(verb, VERBS[verb](given))
    except ValueError as error:
        raise ValueError(f"{number}: {verb} {error}") from error


_WORDS: Final[dict[str, Callable[[Any], Any]]] = {
    "about": text,
    "role": _one_of(ROLES),
    "clients": _one_of(CLIENTS),
    "retries": whole(0, MOST_RETRIES),
    "brokers": whole(1, MOST_MEMBERS),
    "slaves": whole(0, MOST_MEMBERS),
    "name_servers": whole(1, MOST_MEMBERS),
    "queues": whole(1, MOST_QUEUES),
    "programs": whole(0, MOST_MEMBERS),
    "emulate": lambda value: text(str(value)),
    "settings": _mapping,
    "before": _steps,
    "steps": _steps,
}
