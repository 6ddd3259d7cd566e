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

A step is one word, alone or with its value: the members of its class below, or only the first of them. `steps.py` does
it. Every error is one line that names the file and the place.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec

from ..errors import LoadError
from ..state.load import read_yaml

MAX_RETRIES: Final = 16
FOLDER: Final = Path(__file__).with_name("scenarios")

Count = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Members = Annotated[int, msgspec.Meta(ge=1, le=8)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class ScenarioError(LoadError):
    """A scenario that cannot be read or played; the text is one line."""


def _word(name: str) -> str:
    """`EndFaults` is written `end_faults`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).strip("_")


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="step", tag=_word):
    """One thing that happens."""


class Feed(Step, frozen=True):
    """The bench sends messages to the topic, spread over the time, while it goes on. With `fails`, every tenth one
    says that so many deliveries of it shall fail."""

    messages: Count
    seconds: Seconds = 0.0
    fails: Annotated[int, msgspec.Meta(ge=0, le=MAX_RETRIES + 1)] = 0


class Until(Step, frozen=True):
    """Wait until all of these are so, each for `seconds` at most."""

    sent: Count | None = None
    """The program has stored so many more messages."""
    delivered: Count | Literal["all"] | None = None
    """So many more were delivered; all that the bench has sent."""
    redelivered: Count | None = None
    """Deliveries of messages that had failed."""
    joined: Members | None = None
    """So many clients read the topic."""
    dead_letters: Count | None = None
    """Messages of the group that became dead letters."""
    hits: Count | None = None
    """Requests that rules have hit."""
    seconds: Seconds = 30.0


class Pause(Step, frozen=True):
    """Let time pass."""

    seconds: Seconds


class Fault(Step, frozen=True):
    """A rule, as over HTTP."""

    words: dict[str, Any]


class EndFaults(Step, frozen=True):
    """Remove all rules."""


class MemberStep(Step, frozen=True):
    """What happens to one member of the cluster."""

    name: Name


class Stop(MemberStep, frozen=True):
    """A broker, a slave (b0-1) or a name server (n0)."""


class Kill(MemberStep, frozen=True):
    """A broker, without a word."""


class Start(MemberStep, frozen=True):
    """What was stopped or killed."""


class Hide(MemberStep, frozen=True):
    """Routes without this broker."""


class Show(MemberStep, frozen=True):
    """Routes with it again."""


class Slow(Step, frozen=True):
    """Every answer of a broker later; 0 ends it."""

    broker: Name
    seconds: Seconds = 1.0


class Replicate(Step, frozen=True):
    """Wait until the slaves have what the masters have."""


class StartProgram(Step, frozen=True):
    """So many more programs."""

    count: Members


class EndProgram(Step, frozen=True):
    """So many fewer programs: the newest ones."""

    count: Members


class KillProgram(Step, frozen=True):
    """The same without a word: SIGKILL."""

    count: Members


AnyStep = (
    Feed | Until | Pause | Fault | EndFaults | Stop | Kill | Start | Hide | Show | Slow | Replicate
    | StartProgram | EndProgram | KillProgram
)  # fmt: skip
STEPS: Final = {_word(kind.__name__): kind for kind in get_args(AnyStep)}


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is played."""

    name: str
    about: Name
    steps: tuple[AnyStep, ...]
    before: tuple[AnyStep, ...] = ()
    role: Literal["producer", "consumer", "ordered", "both"] = "both"
    clients: Literal["all", "grpc", "remoting"] = "all"
    """The programs for which it is played unless they ask for it by name."""
    retries: Annotated[int, msgspec.Meta(ge=0, le=MAX_RETRIES)] = MAX_RETRIES
    """How often a message that fails is delivered again before it becomes a dead letter."""
    brokers: Members = 1
    slaves: Annotated[int, msgspec.Meta(ge=0, le=8)] = 0
    name_servers: Members = 1
    queues: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4
    programs: Annotated[int, msgspec.Meta(ge=0, le=8)] = 1
    emulate: Name = "5"
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
    content = dict(read_yaml(path, Scenario.__struct_fields__[1:]))
    try:
        for part in ("before", "steps"):
            if isinstance(content.get(part), list):
                content[part] = [_step(one) for one in content[part]]
        if "emulate" in content:
            content["emulate"] = str(content["emulate"])  # 4.9 is a number in YAML
        return msgspec.convert({"name": path.stem, **content}, Scenario)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{path}: {error}") from error


def _step(value: object) -> object:
    """`{"pause": 2}` as `{"step": "pause", "seconds": 2}`; ValueError for an unknown word."""
    pair = {value: None} if isinstance(value, str) else value
    if not isinstance(pair, Mapping) or len(pair) != 1:
        raise ValueError(f"a step must be one word with its value, got {value!r:.100}")
    [(word, given)] = pair.items()
    if word not in STEPS:
        raise ValueError(f"unknown step {word!r:.60}, allowed are {', '.join(STEPS)}")
    if given is None:
        given = {}
    elif word == "fault" or not isinstance(given, Mapping):
        fields = STEPS[word].__struct_fields__
        if not fields:
            raise ValueError(f"{word} takes no value, got {given!r:.60}")
        given = {fields[0]: given}
    return {"step": word, **given}
