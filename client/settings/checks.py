"""How settings are checked: types and ranges by annotation.

A wrong setting raises InvalidSetting before anything else happens; its text has the Python name and value, then the
official words if Java has some. The settings are in `client_settings.py` and its neighbours.
"""

import re
from enum import Enum
from functools import lru_cache
from types import NoneType
from typing import Annotated, Final, TypeAlias, get_type_hints

import msgspec
from msgspec.structs import force_setattr

from ..arguments import Annotation, annotation_of, is_of
from ..errors import InvalidSetting, ValidationFailed
from ..values.validators import check_topic

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
OFF: Final = -1
"""The official "not set" of a number."""
MIB: Final = 1024 * 1024


class Range(msgspec.Struct, frozen=True):
    """The numbers that a setting may have, both ends included; with `or_off` OFF besides."""

    low: int
    high: int = INT_MAX
    or_off: bool = False


AtLeast0: TypeAlias = Annotated[int, Range(0)]
AtLeast1: TypeAlias = Annotated[int, Range(1)]


def invalid_setting(name: str, value: object, reason: str) -> InvalidSetting:
    """The error for one setting, to be raised."""
    return InvalidSetting(f"{name}={value!r}: {reason}")


def official_name(name: str) -> str:
    """`consume_thread_min` to `consumeThreadMin`."""
    return re.sub(r"_([a-z0-9])", lambda found: found.group(1).upper(), name)


def check_range(name: str, value: int, limits: Range) -> None:
    """Raises InvalidSetting for a number outside its range."""
    if not limits.low <= value <= limits.high and not (limits.or_off and value == OFF):
        reason = f"{official_name(name)} Out of range [{limits.low}, {limits.high}]"
        raise invalid_setting(name, value, reason)


def check_values(settings: msgspec.Struct) -> None:
    """Raises InvalidSetting for a value that is not of its annotated type or range, or a member of a collection.

    Names of enum members, and any collection for a frozenset or tuple, are converted.
    """
    for name, (kinds, members), limits in _annotations(type(settings)):
        value = getattr(settings, name)
        if type(value) not in kinds:
            converted = _converted(value, kinds)
            if converted is None:
                wanted = " or ".join("None" if kind is NoneType else kind.__name__ for kind in kinds)
                raise invalid_setting(name, value, f"expected {wanted}, not {type(value).__name__}")
            force_setattr(settings, name, converted)
        if limits is not None:
            check_range(name, value, limits)
        if members:
            parts = (*value, *value.values()) if isinstance(value, dict) else value
            if not all(is_of(part, members) for part in parts):
                raise invalid_setting(name, value, f"every member must be {members[0].__name__}")


def _converted(value: object, kinds: tuple[type, ...]) -> object | None:
    """`value` as one of the kinds, None if it cannot be one."""
    for kind in kinds:
        if is_of(value, (kind,)):
            return value
        if issubclass(kind, Enum) and isinstance(value, str):
            try:
                return kind(value.upper())
            except ValueError:
                continue
        if kind in (frozenset, tuple) and isinstance(value, list | tuple | set | frozenset):
            return kind(value)
    return None


@lru_cache
def _annotations(settings_class: type[msgspec.Struct]) -> list[tuple[str, Annotation, Range | None]]:
    """Field, annotation and range, without fields that take any object with certain methods."""
    hints, ranges = get_type_hints(settings_class), get_type_hints(settings_class, include_extras=True)
    found = []
    for name in settings_class.__struct_fields__:
        annotation = annotation_of(hints[name])
        if annotation is not None:
            limits = next(iter(getattr(ranges[name], "__metadata__", ())), None)
            found.append((name, annotation, limits))
    return found


def check_topic_name(name: str, topic: str) -> None:
    """Raises InvalidSetting for a setting whose value is not the name of a topic."""
    try:
        check_topic(topic)
    except ValidationFailed as error:
        raise invalid_setting(name, topic, str(error)) from error
