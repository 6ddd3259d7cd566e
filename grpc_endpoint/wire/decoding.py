"""Bytes -> message.

Follows the official libraries where bytes could be read in two ways: the last value of a field wins, a message field
that occurs twice is merged, the last member of a oneof wins, a known field with another wire type is unknown, numbers
are cut to their width, packed and unpacked values mix. Text must be UTF-8.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar, cast

from .declare import (
    END_GROUP,
    FIXED32,
    FIXED64,
    LENGTH,
    START_GROUP,
    VARINT,
    Field,
    Kind,
    Message,
    fields_of,
)
from .limits import DEPTH, FIELD_NUMBER, VALUES, MalformedMessage

MessageT = TypeVar("MessageT", bound=Message)

_FLOAT32: Final = struct.Struct("<f")
_MASK_64: Final = (1 << 64) - 1
_LONGEST: Final = (1 << 31) - 1
"""No length and no tag is beyond it."""
_PLAIN: Final = (1 << 31) - 1
"""Up to here the bits of an integer are its value."""
_KNOWN: Final = 256
"""Messages of one class that are kept because they recur, see `Message.recurs`."""
_KNOWN_BYTES: Final = 160
"""Longer ones are not kept."""


# How the values under one tag are read.
_INTEGER: Final = 0
_NUMBER: Final = 1
"""An integer that is converted: a truth value, an enumeration."""
_FLOAT: Final = 2
_TEXT: Final = 3
_BYTES: Final = 4
_MESSAGE: Final = 5
_MAP: Final = 6
_PACKED: Final = 7
"""Many numbers in one piece."""


class _Reader(NamedTuple):
    """One tag of a message."""

    shape: int
    name: str
    is_single: bool
    """Neither repeated nor in a oneof: the value only has to be kept."""
    convert: Callable[[int], Any] | None
    """For numbers: from the bits on the wire to the value."""
    is_repeated: bool
    type: Any
    rivals: tuple[str, ...]


class _Table(NamedTuple):
    type: type[Message]
    readers: dict[int, _Reader]
    """By tag."""
    defaults: dict[str, Any]
    known: dict[bytes, Message] | None
    """Messages of a class whose values recur."""


class _Budget:
    """How many values the message may still have."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = VALUES

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise MalformedMessage(f"a message has more than {VALUES} values")


def decode(message_type: type[MessageT], data: bytes, *, is_own: bool = False) -> MessageT:
    """The message in `data`. Raises `MalformedMessage`. One that we wrote, `is_own`, may have any number of values."""
    budget = _Budget() if len(data) > VALUES and not is_own else None  # a value takes at least one byte
    try:
        message = _decode(_table(message_type), data, 0, len(data), {}, budget, DEPTH)
    except IndexError:
        raise MalformedMessage(f"{message_type.__name__}: the bytes end inside a field") from None
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"{message_type.__name__}: a text is not UTF-8: {error.reason}") from None
    return cast(MessageT, message)


def _decode(
    table: _Table, data: bytes, at: int, end: int, values: dict[str, Any], budget: _Budget | None, depth: int
) -> Message:
    readers = table.readers
    value: Any
    while at < end:
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = _varint(data, at - 1)
        if budget is not None:
            budget.spend()
        reader = readers.get(tag)
        if reader is None:
            at = _skip(tag, data, at, end, budget, depth)
            continue
        shape, name, is_single, convert, is_repeated, _, rivals = reader
        if shape <= _NUMBER:
            value = data[at]
            at += 1
            if value >= 0x80:
                value, at = _varint(data, at - 1)
            if convert is not None and (shape or value > _PLAIN):
                value = convert(value)
        elif shape == _FLOAT:
            value, at = _FLOAT32.unpack_from(_piece(data, at, at + 4, end))[0], at + 4
        else:
            size = data[at]
            at += 1
            if size >= 0x80:
                size, at = _varint(data, at - 1)
            stop = at + size
            if stop > end:
                raise MalformedMessage(f"{table.type.__name__}.{name} is longer than its message")
            if shape == _TEXT:
                value = data[at:stop].decode()
            elif shape == _BYTES:
                value = data[at:stop]
            elif shape == _MESSAGE:
                value = _nested(reader, data, at, stop, values, budget, depth)
            else:
                if shape == _MAP:
                    _map_entry(values.setdefault(name, {}), data, at, stop, budget, depth)
                else:
                    _packed(reader, values.setdefault(name, []), data, at, stop, budget)
                at = stop
                continue
            at = stop
        if is_single:
            values[name] = value
        elif is_repeated:
            values.setdefault(name, []).append(value)
        else:
            values[name] = value
            for rival in rivals:
                values.pop(rival, None)
    if at > end:
        raise MalformedMessage(f"{table.type.__name__}: a field is longer than its message")
    return table.type(**values)


def _nested(
    reader: _Reader,
    data: bytes,
    at: int,
    stop: int,
    values: dict[str, Any],
    budget: _Budget | None,
    depth: int,
) -> Message:
    if depth <= 1:
        raise MalformedMessage(f"messages are nested more than {DEPTH} deep")
    table = _table(reader.type)
    if reader.is_repeated or reader.name not in values:
        known = table.known
        if known is None or stop - at > _KNOWN_BYTES:
            return _decode(table, data, at, stop, {}, budget, depth - 1)
        piece = data[at:stop]
        found = known.get(piece)
        if found is None:
            found = _decode(table, data, at, stop, {}, budget, depth - 1)
            if len(known) >= _KNOWN:
                known.clear()
            known[piece] = found
        return found
    earlier, inner = values[reader.name], {}  # the second piece of a message is merged with the first
    for name, default in table.defaults.items():
        value = getattr(earlier, name)
        if value is not default and (default is not _NO_DEFAULT or value):
            # Lists and maps are copied: the first piece may be one that is kept for other requests.
            inner[name] = value.copy() if isinstance(value, list | dict) else value
    return _decode(table, data, at, stop, inner, budget, depth - 1)


def _map_entry(
    entries: dict[str, str], data: bytes, at: int, stop: int, budget: _Budget | None, depth: int
) -> None:
    """One entry of a map: a message with the fields 1 key and 2 value, either of which may be absent."""
    pair = ["", ""]
    while at < stop:
        tag, at = _varint(data, at)
        if budget is not None:
            budget.spend()
        if tag not in (0x0A, 0x12):
            at = _skip(tag, data, at, stop, budget, depth)
            continue
        size, at = _varint(data, at)
        if at + size > stop:
            raise MalformedMessage("the entry of a map is longer than its map")
        pair[(tag >> 3) - 1] = str(data[at : at + size], "utf-8")
        at += size
    if at > stop:
        raise MalformedMessage("the entry of a map is longer than its map")
    entries[pair[0]] = pair[1]


def _packed(
    reader: _Reader, into: list[Any], data: bytes, at: int, stop: int, budget: _Budget | None
) -> None:
    convert = reader.convert
    while at < stop:
        if budget is not None:
            budget.spend()
        if convert is None:
            into.append(_FLOAT32.unpack_from(_piece(data, at, at + 4, stop))[0])
            at += 4
        else:
            bits, at = _varint(data, at)
            into.append(convert(bits))
    if at > stop:
        raise MalformedMessage(f"a number of {reader.name} is longer than its field")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(bits, position after them). At most ten bytes."""
    bits = shift = 0
    while True:
        byte = data[at]
        at += 1
        bits |= (byte & 0x7F) << shift
        if byte < 0x80:
            return bits & _MASK_64, at
        shift += 7
        if shift == 70:
            raise MalformedMessage("a number is longer than ten bytes")


def _piece(data: bytes, at: int, stop: int, end: int) -> bytes:
    if stop > end:
        raise MalformedMessage("a number is longer than its message")
    return data[at:stop]


def _skip(tag: int, data: bytes, at: int, end: int, budget: _Budget | None, depth: int) -> int:
    """The position after an unknown field."""
    wire_type, number = tag & 7, tag >> 3
    if not 1 <= number <= FIELD_NUMBER:
        raise MalformedMessage(f"{number} is no field number")
    if wire_type == VARINT:
        at = _varint(data, at)[1]
    elif wire_type == LENGTH:
        size, at = _varint(data, at)
        at += min(size, _LONGEST)
    elif wire_type in (FIXED32, FIXED64):
        at += 4 if wire_type == FIXED32 else 8
    elif wire_type == START_GROUP:
        return _skip_group(number, data, at, end, budget, depth)
    else:
        raise MalformedMessage(
            "a group ends that did not begin" if wire_type == END_GROUP else f"{wire_type} is no wire type"
        )
    if at > end:
        raise MalformedMessage("an unknown field is longer than its message")
    return at


def _skip_group(number: int, data: bytes, at: int, end: int, budget: _Budget | None, depth: int) -> int:
    if depth <= 1:
        raise MalformedMessage(f"messages are nested more than {DEPTH} deep")
    while at < end:
        tag, at = _varint(data, at)
        if budget is not None:
            budget.spend()
        if tag & 7 == END_GROUP:
            if tag >> 3 != number:
                raise MalformedMessage("a group ends inside another")
            return at
        at = _skip(tag, data, at, end, budget, depth - 1)
    raise MalformedMessage("a group does not end")


# -- tables

_SHAPES: Final = {
    Kind.STRING: _TEXT,
    Kind.BYTES: _BYTES,
    Kind.BOOL: _NUMBER,
    Kind.INT32: _INTEGER,
    Kind.INT64: _INTEGER,
    Kind.FLOAT: _FLOAT,
    Kind.ENUM: _NUMBER,
    Kind.MESSAGE: _MESSAGE,
    Kind.MAP: _MAP,
}
_NO_DEFAULT: Final = object()
"""The default of a field whose default is made anew for each message: a map."""


@cache
def _table(message_type: type[Message]) -> _Table:
    readers: dict[int, _Reader] = {}
    defaults: dict[str, Any] = {}
    for field in fields_of(message_type):
        defaults[field.name] = _NO_DEFAULT if field.kind is Kind.MAP else field.default
        is_single = not field.is_repeated and not field.rivals
        shape = _SHAPES[field.kind]
        convert = _converter(field)
        one = _Reader(shape, field.name, is_single, convert, field.is_repeated, field.type, field.rivals)
        readers[field.number << 3 | field.wire_type] = one
        if field.is_repeated and (shape <= _NUMBER or shape == _FLOAT):
            readers[field.number << 3 | LENGTH] = one._replace(shape=_PACKED)
    return _Table(message_type, readers, defaults, {} if message_type.recurs else None)


def _converter(field: Field) -> Callable[[int], Any] | None:
    if field.kind is Kind.BOOL:
        return bool
    if field.kind is Kind.INT32:
        return _int32
    if field.kind is Kind.INT64:
        return _int64
    if field.kind is not Kind.ENUM:
        return None
    return _Members({int(member): member for member in field.type}).__getitem__


class _Members(dict[int, int]):
    """The members of an enumeration by number; an unknown number is itself."""

    def __missing__(self, bits: int) -> int:
        value = _int32(bits)
        return self.get(value, value)


def _int32(bits: int) -> int:
    return (bits & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def _int64(bits: int) -> int:
    return (bits ^ 0x8000000000000000) - 0x8000000000000000
