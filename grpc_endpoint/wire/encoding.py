"""Message -> bytes. Fields are written by number, as the official libraries do.

A field without presence is not written while it has its default; a message field is not written if it was never set.
Numbers of a repeated field are packed.
"""

import struct
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, Final

from .declare import LENGTH, Field, Kind, Message, fields_of

_FLOAT: Final = struct.Struct("<f")
_ONE_BYTE: Final = tuple(bytes((value,)) for value in range(128))
_MASK_64: Final = (1 << 64) - 1

_Write = Callable[[Any, bytearray], None]
"""Appends one field to the bytes of its message."""


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    out = bytearray()
    _encode_into(message, out)
    return bytes(out)


def _encode_into(message: Message, out: bytearray) -> None:
    for read, default, write in _writers(type(message)):
        value = read(message)
        if value is not default:
            write(value, out)


def varint(value: int) -> bytes:
    """An integer as a varint; a negative one takes ten bytes."""
    if 0 <= value < 128:
        return _ONE_BYTE[value]
    if 0 < value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    value &= _MASK_64
    out = bytearray()
    while value >= 128:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized_field(tag: bytes, data: bytes) -> bytes:
    """A field that is a text, bytes or a message, written with its tag."""
    size = len(data)
    return tag + (_ONE_BYTE[size] if size < 128 else varint(size)) + data


@cache
def _writers(message_type: type[Message]) -> tuple[tuple[Callable[[Any], Any], Any, _Write], ...]:
    return tuple((attrgetter(field.name), field.default, _writer(field)) for field in fields_of(message_type))


def _writer(field: Field) -> _Write:
    if field.kind is Kind.MAP:
        return _map_writer(field)
    if not field.is_repeated:
        return _value_writer(field, skips_zero=not field.has_presence)
    if field.wire_type == LENGTH:
        write_one = _value_writer(field, skips_zero=False)

        def write_each(values: Any, out: bytearray) -> None:
            for value in values:
                write_one(value, out)

        return write_each
    return _packed_writer(field)


def _value_writer(field: Field, *, skips_zero: bool) -> _Write:
    """Writes one value with its tag."""
    tag = varint(field.number << 3 | field.wire_type)

    def write_text(value: str, out: bytearray) -> None:
        if value or not skips_zero:
            data = value.encode()
            size = len(data)
            out += tag
            out += _ONE_BYTE[size] if size < 128 else varint(size)
            out += data

    def write_bytes(value: bytes, out: bytearray) -> None:
        if value or not skips_zero:
            out += tag
            out += varint(len(value))
            out += value

    def write_integer(value: int, out: bytearray) -> None:
        if value or not skips_zero:
            out += tag
            out += _ONE_BYTE[value] if 0 <= value < 128 else varint(value)

    def write_float(value: float, out: bytearray) -> None:
        data = _FLOAT.pack(value)
        if any(data) or not skips_zero:
            out += tag
            out += data

    def write_message(value: Message, out: bytearray) -> None:
        data = bytearray()
        _encode_into(value, data)
        size = len(data)
        out += tag
        out += _ONE_BYTE[size] if size < 128 else varint(size)
        out += data

    writers: dict[Kind, _Write] = {
        Kind.STRING: write_text,
        Kind.BYTES: write_bytes,
        Kind.FLOAT: write_float,
        Kind.MESSAGE: write_message,
    }
    return writers.get(field.kind, write_integer)


def _packed_writer(field: Field) -> _Write:
    tag = varint(field.number << 3 | LENGTH)
    is_float = field.kind is Kind.FLOAT

    def write_packed(values: Any, out: bytearray) -> None:
        data = b"".join(map(_FLOAT.pack if is_float else varint, values))
        if data:
            out += tag
            out += varint(len(data))
            out += data

    return write_packed


def _map_writer(field: Field) -> _Write:
    tag = varint(field.number << 3 | LENGTH)

    def write_map(entries: dict[str, str], out: bytearray) -> None:
        for key, value in entries.items():
            key_bytes, value_bytes = key.encode(), value.encode()
            pair = b"".join(
                (b"\x0a", varint(len(key_bytes)), key_bytes, b"\x12", varint(len(value_bytes)), value_bytes)
            )
            out += tag
            out += varint(len(pair))
            out += pair

    return write_map
