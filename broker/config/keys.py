"""The keys of broker.conf and namesrv.conf: what each is called, reads as, and does here.

`official_keys.tsv` is the list, taken from official brokers of both lines: every key with its defaults, which line
answers it to 26 or 319, and our verdict. A key is *honoured* where a config has its field, *harmless* where leaving
it out changes nothing a user could see, and *unsupported* otherwise; the reason stands beside it. Keys of our own
are in the list too. Not here: files and their lines (`loading.py`).
"""

import functools
import re
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import msgspec
from pocketmq.store.config import StoreConfig

from .broker_config import BrokerConfig, NameServerConfig

Program = Literal["broker", "namesrv"]

_TABLE: Final = Path(__file__).with_name("official_keys.tsv")
_HUMP: Final = re.compile("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WHOLE_NUMBER: Final = re.compile("[+-]?[0-9]+")
_LINE: Final = re.compile(r"([45])(?:\.\w+)*")
_BITS: Final = {"int": 31, "long": 63}
_NO_LIMIT: Final = "2147483647"

_RANGES: Final[dict[str, tuple[int, int]]] = {
    "listenPort": (0, 65535),
    "haListenPort": (1, 65535),
    "haTransferBatchSize": (1, 4 << 20),
    "brokerPermission": (0, 7),
    "brokerId": (0, 2**63 - 1),
    "defaultTopicQueueNums": (1, 2**31 - 1),
    "reviveQueueNum": (1, 998),
    "maxErrorRateOfBloomFilter": (1, 99),
    "expectConsumerNumUseFilter": (1, 2**31 - 1),
    "accessMessageInMemoryMaxRatio": (0, 2**31 - 1),
    "memorySizeBytes": (1, 2**63 - 1),
    "writeBufferHighWaterMark": (0, 2**31 - 1),
}
"""Beyond these no broker works; what official brokers take for granted."""
_AT_LEAST_ONE: Final = re.compile(".*(?:Interval|Period|TimeSeconds|PollingTimeMills|PerConnection)")


class Key(msgspec.Struct, frozen=True):
    """One row of the list. `default` is None where the official value is null."""

    program: Program
    name: str
    kind: Literal["int", "long", "double", "boolean", "text"]
    default: str | None
    default_4: str | None
    """Where it differs in the 4.9 line."""
    answered_by: str
    """The lines ("4", "5") whose answer to 26 or 319 holds it."""
    verdict: Literal["honoured", "harmless", "unsupported"]
    reason: str
    """What it does where honoured, otherwise why nothing is lost, or what is."""

    def default_of(self, emulate: int) -> str | None:
        return self.default_4 if emulate == 4 and self.default_4 is not None else self.default


class Place(msgspec.Struct, frozen=True):
    """Where the value of an honoured key is kept."""

    is_store: bool
    field: str
    declared: Any
    """The field's type."""


@functools.cache
def keys(program: Program) -> dict[str, Key]:
    """Every key of a program, by name in alphabetical order."""
    rows = _TABLE.read_text(encoding="utf-8").splitlines()[1:]
    listed = (_key(row) for row in rows if row.startswith(program))
    return {key.name: key for key in listed}


def _key(row: str) -> Key:
    cells: list[str | None] = list(row.split("\t"))
    if cells[3] == "null":
        cells[3] = None
    cells[4] = cells[4] or None
    return msgspec.convert(dict(zip(Key.__struct_fields__, cells, strict=True)), Key)


@functools.cache
def places(program: Program) -> dict[str, Place]:
    """Where the honoured keys of a program live."""
    return {
        key.name: _place(program, key.name) for key in keys(program).values() if key.verdict == "honoured"
    }


def _place(program: Program, name: str) -> Place:
    field = snake_case(name)
    if program == "namesrv":
        return Place(False, field, _declared(NameServerConfig)[field])
    own = _declared(BrokerConfig)
    return (
        Place(False, field, own[field]) if field in own else Place(True, field, _declared(StoreConfig)[field])
    )


@functools.cache
def _declared(config: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(config)}


def snake_case(name: str) -> str:
    """`brokerIP1` -> `broker_ip1`, `tls.server.mode` -> `tls_server_mode`."""
    return "read_uncommitted" if name == "readUnCommitted" else _HUMP.sub("_", name).lower().replace(".", "_")


# -- values


def read_value(key: Key, text: str) -> Any:
    """The value of a key, by the official rules except that what official brokers pass over in silence is refused:
    `ValueError` says what would do."""
    if key.verdict != "honoured":
        return _read_kind(key, text)
    declared = places(key.program)[key.name].declared
    if key.name == "emulate":
        line = _LINE.fullmatch(text.strip())
        if line is None:
            raise ValueError("4 (or 4.9) and 5 (or 5.5) are the official lines")
        return int(line[1])
    if type(None) in get_args(declared):
        if not text.strip():
            return None
        declared = next(kind for kind in get_args(declared) if kind is not type(None))
    if get_origin(declared) is Literal:
        return _one_of(get_args(declared), text.strip())
    if declared is bool:
        return _truth(text)
    if declared is int:
        return _whole_number(key, text)
    return text.strip()


def _read_kind(key: Key, text: str) -> Any:
    """What no config keeps has an official type all the same."""
    if key.kind == "boolean":
        return _truth(text)
    if key.kind == "double":
        return float(text)
    return text.strip() if key.kind == "text" else _whole_number(key, text)


def _one_of(choices: tuple[Any, ...], text: str) -> Any:
    if text not in choices:
        raise ValueError(f"it is one of {', '.join(map(str, choices))}")
    return text


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it is true or false" + _blank_hint(text))
    return text.lower() == "true"


def _whole_number(key: Key, text: str) -> int:
    if _WHOLE_NUMBER.fullmatch(text) is None:
        raise ValueError("it is a whole number" + _blank_hint(text))
    value, bits = int(text), _BITS[key.kind]
    least = 1 if _AT_LEAST_ONE.fullmatch(key.name) else -(2**bits)
    low, high = _RANGES.get(key.name, (least, 2**bits - 1))
    if not low <= value <= high:
        raise ValueError(f"it is at least {low}" if value < low else f"it is at most {high}")
    return value


def _blank_hint(text: str) -> str:
    return ", without a blank" if text != text.strip() else ""


def write_value(value: Any) -> str | None:
    """A value as official brokers write it; None for null."""
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- configs


def get(config: BrokerConfig | NameServerConfig, name: str) -> Any:
    """The value an honoured key has in this config."""
    place = places(_program(config))[name]
    return getattr(_holder(config, place), place.field)


def put(config: BrokerConfig | NameServerConfig, name: str, value: Any) -> None:
    """Give an honoured key a value `read_value` made."""
    place = places(_program(config))[name]
    setattr(_holder(config, place), place.field, value)
    if name == "emulate" and isinstance(config, BrokerConfig):
        config.store.emulate = value


def shown(config: BrokerConfig | NameServerConfig, key: Key, emulate: int) -> str | None:
    """The value 26 and 319 answer for a key: what waits for a restart, what is set, or the official default."""
    if key.name in config.others:
        return config.others[key.name]
    if key.verdict != "honoured":
        return key.default_of(emulate)
    value = write_value(get(config, key.name))
    if value is None and key.name == "storePathCommitLog" and isinstance(config, BrokerConfig):
        return str(config.store.commit_log_dir)
    return _NO_LIMIT if value is None and key.answered_by and key.kind != "text" else value


def official_text(config: BrokerConfig | NameServerConfig, emulate: int) -> str:
    """The body of 26 or 319: the keys of that line in order, unescaped, without those that are null."""
    line = str(emulate)
    rows = [
        (key.name, shown(config, key, emulate))
        for key in keys(_program(config)).values()
        if line in key.answered_by
    ]
    return "".join(f"{name}={value}\n" for name, value in rows if value is not None)


def _program(config: BrokerConfig | NameServerConfig) -> Program:
    return "broker" if isinstance(config, BrokerConfig) else "namesrv"


def _holder(config: BrokerConfig | NameServerConfig, place: Place) -> msgspec.Struct:
    return config.store if place.is_store and isinstance(config, BrokerConfig) else config


def nearest(name: str) -> str | None:
    """The known key most like this one."""
    from difflib import get_close_matches  # wanted only where somebody mistyped

    known = {key.lower(): key for program in get_args(Program) for key in keys(program)}
    matches = get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return known[matches[0]] if matches else None
