"""The keys of broker.conf and namesrv.conf: the name, type, limits and effect of each.

`official_keys.tsv` is the list, recorded from official brokers of both lines, plus keys of our own. A row says
everything we know about a key:

    default, default 4.9    the official defaults
    answered by             the lines whose answer to 26 or 319 contains the key
    verdict                 honoured: a config has its field; harmless: a user could not see that it has no effect;
                            unsupported: the user loses something, the reason says what
    limits                  smallest and greatest value, `1..998`; without them the limits of a Java int or long
    traits                  restart: a change over the wire waits for the next start
                            refused: it cannot be changed over the wire (refused-by-5: by the 5.x line)
                            secret: its value is not shown

`loading.py` reads files and their lines, `changes.py` applies what 25 and 318 change.
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import msgspec
from pocketmq.store import StoreConfig

from .addresses import check_addresses, host_and_port
from .broker_config import BrokerConfig, EndpointConfig
from .name_server_config import NameServerConfig

Program = Literal["broker", "namesrv"]
Config = BrokerConfig | NameServerConfig

_TABLE: Final = Path(__file__).with_name("official_keys.tsv")
_HUMP: Final = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WHOLE_NUMBER: Final = re.compile("[+-]?[0-9]+")
_LINE: Final = re.compile(r"(4)(?:\.9(?:\.\d+)?)?|(5)(?:\.5(?:\.\d+)?)?")
_BITS: Final = {"int": 31, "long": 63}
_NO_LIMIT: Final = "2147483647"
_HIDDEN: Final = "(hidden)"


class Key(msgspec.Struct, frozen=True):
    """One row of the list. `default` is None if the official value is null."""

    program: Program
    name: str
    kind: Literal["int", "long", "double", "boolean", "text"]
    default: str | None
    default_4: str | None
    """If it differs in the 4.9 line."""
    answered_by: str
    """The lines ("4", "5") whose answer to 26 or 319 contains the key."""
    verdict: Literal["honoured", "harmless", "unsupported"]
    limits: tuple[int, int] | None
    """The smallest and the greatest value of a number."""
    traits: frozenset[Literal["restart", "refused", "refused-by-5", "secret"]]
    reason: str
    """What an honoured key does; why nothing is lost without the others, or what is."""

    def default_of(self, *, is_5: bool) -> str | None:
        return self.default if is_5 or self.default_4 is None else self.default_4


class Field(msgspec.Struct, frozen=True):
    """The field that holds the value of an honoured key."""

    place: Literal["", "store", "endpoint"]
    """The config of the store or of the gRPC port, not the config itself."""
    name: str
    declared: Any
    """Its type."""


@functools.cache
def keys(program: Program) -> dict[str, Key]:
    """Every key of a program, by name in alphabetical order."""
    rows = _TABLE.read_text(encoding="utf-8").splitlines()[1:]
    listed = (_key(row) for row in rows if row.startswith(program))
    return {key.name: key for key in listed}


def _key(row: str) -> Key:
    cells: dict[str, Any] = dict(zip(Key.__struct_fields__, row.split("\t"), strict=True))
    cells["default"] = None if cells["default"] == "null" else cells["default"]
    cells["default_4"] = cells["default_4"] or None
    cells["limits"] = _limits(cells["kind"], cells["limits"])
    cells["traits"] = cells["traits"].split()
    return msgspec.convert(cells, Key)


def _limits(kind: str, text: str) -> tuple[int, int] | None:
    if kind not in _BITS:
        return None
    low, _, high = text.partition("..")
    bits = _BITS[kind]
    return int(low or -(2**bits)), int(high or 2**bits - 1)


@functools.cache
def fields(program: Program) -> dict[str, Field]:
    return {
        key.name: _field(program, key.name) for key in keys(program).values() if key.verdict == "honoured"
    }


def _field(program: Program, key: str) -> Field:
    name = snake_case(key)
    own = _declared(NameServerConfig if program == "namesrv" else BrokerConfig)
    endpoint = _declared(EndpointConfig)
    if program == "broker" and name in endpoint and "." not in key:  # not tls.test.mode.enable
        return Field("endpoint", name, endpoint[name])
    if program == "namesrv" or name in own:
        return Field("", name, own[name])
    return Field("store", name, _declared(StoreConfig)[name])


@functools.cache
def _declared(config: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(config)}


def snake_case(name: str) -> str:
    """`brokerIP1` -> `broker_ip1`, `tls.server.mode` -> `tls_server_mode`."""
    return "read_uncommitted" if name == "readUnCommitted" else _HUMP.sub("_", name).lower().replace(".", "_")


# -- values


def read_value(key: Key, text: str) -> Any:
    """The value of a key, by Java's rules. `ValueError` says what is allowed, for a value that the official broker
    would silently replace by the default."""
    if key.verdict != "honoured":
        return _read_kind(key, text)
    declared = fields(key.program)[key.name].declared
    if key.name == "emulate":
        line = _LINE.fullmatch(text.strip())
        if line is None:
            raise ValueError("must be 4 (or 4.9) or 5 (or 5.5)")
        return int(line[1] or line[2])
    if key.name == "namesrvAddr":
        check_addresses(text.strip())
    if key.name in ("advertise", "metricCollectorAddress") and text.strip():
        host_and_port(text.strip())
    if type(None) in get_args(declared):
        if not text.strip():
            return None
        declared = next(kind for kind in get_args(declared) if kind is not type(None))
    if key.name == "metricCollectorMode":
        text = text.lower()
    if get_origin(declared) is Literal:
        return _one_of(get_args(declared), text.strip())
    if declared is bool:
        return _truth(text)
    if declared is int:
        return _whole_number(key, text)
    return text.strip()


def _read_kind(key: Key, text: str) -> Any:
    if key.kind == "boolean":
        return _truth(text)
    if key.kind == "double":
        return float(text)
    return text.strip() if key.kind == "text" else _whole_number(key, text)


def _one_of(choices: tuple[Any, ...], text: str) -> Any:
    if text not in choices:
        raise ValueError(f"must be {', '.join(map(str, choices[:-1]))} or {choices[-1]}")
    return text


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false" + _blank_hint(text))
    return text.lower() == "true"


def _whole_number(key: Key, text: str) -> int:
    if _WHOLE_NUMBER.fullmatch(text) is None:
        raise ValueError("must be a whole number" + _blank_hint(text))
    assert key.limits is not None
    low, high = key.limits
    value = int(text)
    if not low <= value <= high:
        raise ValueError(f"must be a number from {low} to {high}")
    return value


def _blank_hint(text: str) -> str:
    return " without blanks" if text != text.strip() else ""


def write_value(value: Any) -> str | None:
    """A value as official brokers write it; None for null."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- configs


def get(config: Config, name: str) -> Any:
    field = fields(program_of(config))[name]
    return getattr(_holder(config, field), field.name)


def put(config: Config, name: str, value: Any) -> None:
    """Set an honoured key to a value that `read_value` returned."""
    field = fields(program_of(config))[name]
    setattr(_holder(config, field), field.name, value)
    if name == "emulate" and isinstance(config, BrokerConfig):
        config.store.emulate = value


def displayed_value(config: Config, key: Key, *, is_5: bool) -> str | None:
    """The value that 26 and 319 answer for a key: what waits for a restart, what is set, or the official default."""
    if key.name in config.not_applied:
        return config.not_applied[key.name]
    if key.verdict != "honoured":
        return key.default_of(is_5=is_5)
    value = write_value(get(config, key.name))
    if value is None and key.name == "storePathCommitLog" and isinstance(config, BrokerConfig):
        return str(config.store.commit_log_dir)
    return _NO_LIMIT if value is None and key.answered_by and key.kind != "text" else value


def without_secret(key: Key, value: str | None) -> str | None:
    """A value as a log or a listing may show it."""
    return _HIDDEN if value and "secret" in key.traits else value


def official_text(config: Config, *, is_5: bool, computed: Mapping[str, str] | None = None) -> str:
    """The body of the answer to 26 or 319: the keys of that line in alphabetical order, unescaped, without nulls.

    `computed` are effective values that no setting contains.
    """
    line, known = "5" if is_5 else "4", computed or {}
    rows = [
        (key.name, known[key.name] if key.name in known else displayed_value(config, key, is_5=is_5))
        for key in keys(program_of(config)).values()
        if line in key.answered_by
    ]
    return "".join(f"{name}={value}\n" for name, value in rows if value is not None)


def program_of(config: Config) -> Program:
    return "broker" if isinstance(config, BrokerConfig) else "namesrv"


def _holder(config: Config, field: Field) -> msgspec.Struct:
    if not field.place or not isinstance(config, BrokerConfig):
        return config
    return config.store if field.place == "store" else config.endpoint


_LONGEST_NAME: Final = 80


def did_you_mean(name: str) -> str:
    """`, did you mean y?` for a misspelled key, or nothing, also for a name longer than any key."""
    if len(name) > _LONGEST_NAME:
        return ""
    from difflib import get_close_matches  # only needed after a spelling mistake

    known = {key.lower(): key for program in get_args(Program) for key in keys(program)}
    matches = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return f", did you mean {known[matches[0]]}?" if matches else ""
