"""Attributes of topics and groups (5.x): their names, their allowed values, how a request alters them.

A request writes `+key=value` and `-key`; tables and replies hold plain keys. The error messages are the official ones,
since tools show them.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import Refusal

_LONG: Final = re.compile(r"[+-]?\d{1,100}")
"""What Java reads as a `long`, if it is not too large: Python reads more."""
_LONG_MAX: Final = (1 << 63) - 1
_MAX_LITE_EXPIRATION_MINUTES: Final = 30 * 24 * 60


class AttributeRefusedError(Refusal):
    """An attribute or its value is not allowed; the table does not change."""

    def __init__(self, text: str) -> None:
        super().__init__(ResponseCode.SYSTEM_ERROR, text)


class Attribute(msgspec.Struct, frozen=True):
    """Official Attribute. One that is not `changeable` can be set only at creation. `verify` raises
    AttributeRefusedError."""

    changeable: bool
    verify: Callable[[str], None]


def _one_of(*values: str) -> Callable[[str], None]:
    def verify(value: str) -> None:
        if value not in values:
            raise AttributeRefusedError(f"value is not in set: [{', '.join(values)}]")

    return verify


def _between(low: int, high: int) -> Callable[[str], None]:
    def verify(value: str) -> None:
        if not _LONG.fullmatch(value) or not -_LONG_MAX <= int(value) <= _LONG_MAX:
            raise AttributeRefusedError(f'For input string: "{value}"')
        if not low <= int(value) <= high:
            raise AttributeRefusedError(f"value is not in range({low}, {high})")

    return verify


def _truth(value: str) -> None:
    if value.lower() not in ("true", "false"):
        raise AttributeRefusedError("boolean attribute format is wrong.")


def _any_text(value: str) -> None:
    """Allows every text."""


TOPIC_ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "queue.type": Attribute(False, _one_of("BatchCQ", "SimpleCQ")),
    "cleanup.policy": Attribute(False, _one_of("DELETE", "COMPACTION")),
    "message.type": Attribute(
        True, _one_of("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "PRIORITY", "LITE", "MIXED")
    ),
    "reserve.time": Attribute(True, _between(-1, _LONG_MAX)),
    "lite.topic.expiration": Attribute(True, _between(-1, _MAX_LITE_EXPIRATION_MINUTES)),
}
"""Official TopicAttributes."""

GROUP_ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "priority.factor": Attribute(True, _between(0, 100)),
    "lite.bind.topic": Attribute(True, _any_text),
    "lite.sub.model": Attribute(True, _one_of("Shared", "Exclusive")),
    "lite.sub.reset.offset.exclusive": Attribute(True, _truth),
    "lite.sub.reset.offset.unsubscribe": Attribute(True, _truth),
    "lite.sub.client.quota": Attribute(True, _between(-1, _LONG_MAX)),
    "lite.sub.client.max.event.cnt": Attribute(True, _between(10, _LONG_MAX)),
    "lite.sub.wildcard": Attribute(True, _any_text),
}
"""Official SubscriptionGroupAttributes."""


def parse_attributes(text: str | None) -> dict[str, str]:
    """`+key=value,-key` of request 17 to `{"+key": "value", "-key": ""}` (official AttributeParser.parseToMap).

    Raises AttributeRefusedError.
    """
    changes: dict[str, str] = {}
    text = (text or "").rstrip(",")
    for part in text.split(",") if text else ():
        key, equals, value = part.partition("=")
        if equals and "+" not in key:
            raise AttributeRefusedError(f"add/alter attribute format is wrong: {key}")
        if equals and not value:
            raise AttributeRefusedError(f"add/alter attribute without value: {key}")
        if not equals and "-" not in key:
            raise AttributeRefusedError(f"delete attribute format is wrong: {key}")
        if key in changes:
            raise AttributeRefusedError(f"key duplication: {key}")
        changes[key] = value.split("=", 1)[0]
    return changes


def alter_attributes(
    known: Mapping[str, Attribute], current: Mapping[str, str] | None, changes: Mapping[str, str]
) -> dict[str, str]:
    """`current` (None: the topic or group is being created) with `changes`, whose keys begin with `+` or `-`.

    Official AttributeUtil.alterCurrentAttributes. Raises AttributeRefusedError.
    """
    result = dict(current or {})
    seen: set[str] = set()
    removed: list[str] = []
    for prefixed, value in changes.items():
        sign, key = prefixed[:1], prefixed[1:]
        if not key or "+" in key or "-" in key:
            raise AttributeRefusedError("kv string format wrong.")
        if key in seen:
            raise AttributeRefusedError(f"alter duplication key. key: {key}")
        seen.add(key)
        if current is None and sign != "+":
            raise AttributeRefusedError(f"only add attribute is supported while creating topic. key: {key}")
        if sign not in ("+", "-"):
            raise AttributeRefusedError(f"wrong format key: {key}")
        if sign == "-" and key not in result:
            raise AttributeRefusedError(f"attempt to delete a nonexistent key: {key}")
        if key not in known:
            raise AttributeRefusedError(f"unsupported key: {key}")
        if current is not None and not known[key].changeable:
            raise AttributeRefusedError(f"attempt to update an unchangeable attribute. key: {key}")
        if sign == "-":
            removed.append(key)
            continue
        known[key].verify(value)
        result[key] = value
    for key in removed:
        del result[key]
    return result
