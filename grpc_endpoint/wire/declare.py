"""How a message is declared, and the table of fields that is read from the declaration.

The table is made when the class is first encoded or decoded: a process that never sees a lite subscription never makes
its table.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
START_GROUP: Final = 3
END_GROUP: Final = 4
FIXED32: Final = 5
"""The wire types: the low three bits of a tag."""


class Kind(IntEnum):
    """What a field holds, and how it is written."""

    STRING = 1
    BYTES = 2
    BOOL = 3
    INT32 = 4
    INT64 = 5
    FLOAT = 6
    ENUM = 7
    MESSAGE = 8
    MAP = 9


Int32 = Annotated[int, Kind.INT32]
Int64 = Annotated[int, Kind.INT64]
Float = Annotated[float, Kind.FLOAT]


class OneOf(NamedTuple):
    """Marks the members of one oneof: at most one of them is set."""

    name: str


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A proto3 message. Subclasses declare their fields; every field has a default."""

    recurs: ClassVar[bool] = False
    """Whether clients send the same few values again and again, so that it pays to keep what was decoded: topics,
    queues, spans of time."""


class Field(NamedTuple):
    """One line of a table."""

    number: int
    name: str
    kind: Kind
    is_repeated: bool
    has_presence: bool
    """Whether `None` is its default: proto3 `optional`, or the member of a oneof."""
    type: Any
    """The message's class, or that of the enumeration; else `None`."""
    default: Any
    oneof: str | None = None
    rivals: tuple[str, ...] = ()
    """The other members of its oneof."""

    @property
    def wire_type(self) -> int:
        """The wire type of one value."""
        if self.kind is Kind.FLOAT:
            return FIXED32
        return VARINT if self.kind in (Kind.BOOL, Kind.INT32, Kind.INT64, Kind.ENUM) else LENGTH


@cache
def fields_of(message_type: type[Message]) -> tuple[Field, ...]:
    """The fields of a class by number. Raises `TypeError` for a declaration that says too little or two things."""
    hints = get_type_hints(message_type, include_extras=True)
    infos = {info.name: info for info in msgspec.structs.fields(message_type)}
    fields = [_field(message_type, name, hints[name], infos[name]) for name in message_type.__struct_fields__]
    if len({field.number for field in fields}) < len(fields):
        raise TypeError(f"{message_type.__name__}: two fields have one number")
    groups: dict[str, list[str]] = {}
    for field in fields:
        if field.oneof is not None:
            groups.setdefault(field.oneof, []).append(field.name)
    return tuple(
        field._replace(rivals=tuple(name for name in groups.get(field.oneof or "", ()) if name != field.name))
        for field in sorted(fields)
    )


def _field(owner: type[Message], name: str, hint: Any, info: Any) -> Field:
    if get_origin(hint) is not Annotated:
        raise TypeError(f"{owner.__name__}.{name} has no field number")
    inner, *marks = get_args(hint)
    numbers = [mark for mark in marks if type(mark) is int]
    if len(numbers) != 1:
        raise TypeError(f"{owner.__name__}.{name} must have one field number, got {numbers}")
    oneof = next((mark.name for mark in marks if isinstance(mark, OneOf)), None)
    has_presence = get_origin(inner) in (UnionType, Union)
    if has_presence:
        inner = next(part for part in get_args(inner) if part is not NoneType)
    is_repeated = get_origin(inner) is Sequence
    if is_repeated:
        inner = get_args(inner)[0]
    if get_origin(inner) is Annotated:
        inner, *more = get_args(inner)
        marks += more
    kind = next((mark for mark in marks if isinstance(mark, Kind)), None) or _kind(owner, name, inner)
    type_ = inner if kind in (Kind.MESSAGE, Kind.ENUM) else None
    default = None if info.default is msgspec.NODEFAULT else info.default
    return Field(numbers[0], name, kind, is_repeated, has_presence, type_, default, oneof)


def _kind(owner: type[Message], name: str, inner: Any) -> Kind:
    if get_origin(inner) is Mapping:
        return Kind.MAP
    for base, kind in ((str, Kind.STRING), (bytes, Kind.BYTES), (bool, Kind.BOOL)):
        if inner is base:
            return kind
    if isinstance(inner, type) and issubclass(inner, IntEnum):
        return Kind.ENUM
    if isinstance(inner, type) and issubclass(inner, Message):
        return Kind.MESSAGE
    raise TypeError(f"{owner.__name__}.{name}: a field cannot hold {inner}")


def is_present(message: Message, name: str) -> bool:
    """Whether the field was set: for a message field, whether it was sent at all, even empty."""
    value = getattr(message, name)
    return value is not next(field.default for field in fields_of(type(message)) if field.name == name)
