"""The forms a body can have: JSON of an official class, a list of such, text, bytes. And DataVersion.

A JSON body is a struct whose fields are the members of the official class, renamed to camelCase. Every field has a
default, because the official reader leaves an absent member at its default. Which request has which body is declared
with the request (`wire/schema.py`); `decode_body` and `encode_body` serve all forms.
"""

import re
from typing import Annotated, Any, Self, get_args

import msgspec

from ..errors import BodyError
from ..text import fastjson
from ..text.java_properties import decode_text

Int = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
"""A Java `int`. Official programs do not read a table in which a number is larger."""
Long = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A Java `long`."""


class Body(msgspec.Struct, frozen=True, rename="camel"):
    """Mirrors the official RemotingSerializable."""

    def encode(self) -> bytes:
        """Official text: members in alphabetical order, None left out, integer keys unquoted."""
        return fastjson.dumps(self)

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview | None, *, max_bytes: int | None = None) -> Self:
        """Raises BodyError naming the class and the member at fault, also when there is no body. Without `max_bytes`
        it is the body of a request, with the limits of `fastjson.loads`."""
        if not data:
            raise BodyError(f"{cls.__name__}: the body is missing")
        return fastjson.decode(data, cls, max_bytes=max_bytes)


class Records(bytes):
    """Messages as stored, back to back (`message/record.py`)."""


class MessageContent(bytes):
    """The content of one message, plain or compressed."""


class MessageBatch(bytes):
    """Several messages of one send (`message/batch.py`)."""


class Text(str):
    """Any text in UTF-8."""

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview) -> Self:
        return cls(str(data, "utf-8", "replace"))


class PropertiesText(Text):
    """Java properties, one `key=value` a line (`text/java_properties.py`)."""

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview) -> Self:
        return cls(decode_text(data))


def form_name(form: Any) -> str:
    """How tables and errors name a form: `KVTable`, `list[UserInfo]`."""
    return (
        form.__name__ if isinstance(form, type) and not get_args(form) else re.sub(r"[\w.]*\.", "", str(form))
    )


def decode_body(
    form: Any, data: bytes | bytearray | memoryview | None, *, max_bytes: int | None = None
) -> Any:
    """A body of that form. Without `max_bytes` it is that of a request, with the limits of `fastjson.loads`. Raises
    BodyError naming the form and what is wrong; JSON must not be missing."""
    if isinstance(form, type) and not get_args(form):
        if issubclass(form, Body):
            return form.decode(data, max_bytes=max_bytes)
        if issubclass(form, bytes):
            return form(data or b"")
        if issubclass(form, Text):
            return form.decode(data or b"")
    if not data:
        raise BodyError(f"{form_name(form)}: the body is missing")
    return fastjson.decode(data, form, max_bytes=max_bytes)


def encode_body(value: Any) -> bytes | memoryview:
    """The bytes of a body: a struct or list as JSON, text in UTF-8, bytes as they are."""
    if isinstance(value, bytes | memoryview):
        return value
    if isinstance(value, str):
        return value.encode()
    return value.encode() if isinstance(value, Body) else fastjson.dumps(value)


class DataVersion(Body, frozen=True):
    """Which version of a table a peer has. Programs compare it for equality only; the counter is for people.
    `timestamp` in ms; `state_version` is 0 outside controller mode and absent in 4.x.
    """

    state_version: Long = 0
    timestamp: Long = 0
    counter: Long = 0

    def next_version(self, now_ms: int) -> "DataVersion":
        """The version after a change made at `now_ms`."""
        return DataVersion(state_version=self.state_version, timestamp=now_ms, counter=self.counter + 1)
