"""The bytes of a request -> its message, unless it would take too much of the server.

protobuf makes up to a hundred bytes of one: an empty message inside another has two on the wire.
So the values of a long request are counted before it is decoded. Depth, lengths and UTF-8 are protobuf's own checks.
"""

from functools import cache
from typing import Any, Final, TypeVar, cast

from google.protobuf.message import DecodeError

from .proto import Message

VALUES: Final = 10_000
"""Values in one message, all levels together; one that is a message counts as two. What the handlers do with one takes
up to 20 us. The largest that clients send have a few hundred."""
UNCOUNTED_BYTES: Final = 5_000
"""A request of so many bytes cannot hold too much."""
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
"""The wire types: the low three bits of a tag. Groups (3, 4) are of the time before proto3."""
_LONGEST_VARINT: Final = 10

_MessageT = TypeVar("_MessageT", bound=Message)
_Parts = dict[int, Any]
"""The parts of a message that are messages, by tag."""


class MalformedMessage(ValueError):
    """The bytes are not a message of the expected type, or one beyond the limits."""


def decode(kind: type[_MessageT], data: bytes) -> _MessageT:
    """Raises `MalformedMessage`."""
    if len(data) > UNCOUNTED_BYTES:
        _count(data, _parts(cast(Any, kind)))
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise MalformedMessage(f"{kind.__name__}: {error}") from None


@cache
def _parts(kind: Any) -> _Parts:
    return _parts_of(kind.DESCRIPTOR)


def _parts_of(descriptor: Any) -> _Parts:
    return {
        field.number << 3 | _LENGTH: _parts_of(field.message_type)
        for field in descriptor.fields
        if field.message_type is not None
    }


def _count(data: bytes, parts: _Parts) -> None:
    """Raises `MalformedMessage` for more than `VALUES` values, and for bytes that protobuf does not read either."""
    at, values = 0, 0
    outer: list[tuple[int, _Parts]] = []
    end = len(data)
    while True:
        while at < end:
            tag, at = _varint(data, at)
            values += 1
            if values > VALUES:
                raise MalformedMessage(f"a message has more than {VALUES} values")
            wire_type = tag & 7
            if wire_type == _LENGTH:
                size, at = _varint(data, at)
                if at + size > end:
                    raise MalformedMessage("a field is longer than its message")
                inner = parts.get(tag)
                if inner is None:
                    at += size
                else:
                    values += 1
                    outer.append((end, parts))
                    end, parts = at + size, inner
            elif wire_type == _VARINT:
                at = _varint(data, at)[1]
            elif wire_type in (_FIXED32, _FIXED64):
                at += 4 if wire_type == _FIXED32 else 8
            else:
                raise MalformedMessage(f"a field of wire type {wire_type}")
        if at > end:
            raise MalformedMessage("a field is longer than its message")
        if not outer:
            return
        end, parts = outer.pop()


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, position after it)."""
    value = shift = 0
    for byte in data[at : at + _LONGEST_VARINT]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise MalformedMessage("a number does not end")
