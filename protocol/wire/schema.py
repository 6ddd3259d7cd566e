"""Declare a request or reply once, and turn it into header fields and back.

A request is one class: its code, its fields with types and defaults, and its reply as type argument.

    @request(30)
    class GetMaxOffset(Request[OffsetReply], frozen=True, kw_only=True):
        topic: str
        queue_id: Int

On the wire every value is text under its camelCase name (`queueId`); `field(name="a")` names the odd ones. A
field without default is mandatory. Unknown fields are ignored. Two classes with one code fail at import.
"""

import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final, Generic, TypeVar, get_args

import msgspec
from msgspec import Meta, field

from ..errors import FieldError

__all__ = [
    "REQUESTS",
    "Int",
    "Long",
    "NoReply",
    "Reply",
    "Request",
    "field",
    "from_fields",
    "request",
    "to_fields",
]

Int = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
"""A Java `int` as decimal text."""
Long = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""A Java `long` as decimal text."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Header fields of an answer."""


class NoReply(Reply, frozen=True, kw_only=True):
    """An answer without header fields of its own."""


ReplyT = TypeVar("ReplyT", bound=Reply)
RequestT = TypeVar("RequestT", bound="Request[Any]")
StructT = TypeVar("StructT", bound=msgspec.Struct)


class Request(msgspec.Struct, Generic[ReplyT], frozen=True, kw_only=True, rename="camel"):
    """Header fields of a request. `code`, `name` and `reply_type` are set by `@request`."""

    code: ClassVar[int]
    name: ClassVar[str]
    reply_type: ClassVar[type[Reply]]


REQUESTS: Final[dict[int, type[Request[Any]]]] = {}
"""Every declared request by its code."""


def request(code: int, name: str | None = None) -> Callable[[type[RequestT]], type[RequestT]]:
    """Give a request class its code; `name` where the official name is not the class name in capitals."""

    def declare(cls: type[RequestT]) -> type[RequestT]:
        if code in REQUESTS:
            raise TypeError(f"code {code} is declared by {REQUESTS[code].__name__} and {cls.__name__}")
        cls.code = code
        cls.name = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).upper()
        cls.reply_type = _reply_type_of(cls)
        REQUESTS[code] = cls
        return cls

    return declare


def from_fields(cls: type[StructT], fields: dict[str, str] | None) -> StructT:
    """The object of a header's fields; `FieldError` naming class, key and text where one is bad or missing."""
    if fields is None:
        fields = {}
    flags = _flags.get(cls)
    for wire in _flags_of(cls) if flags is None else flags:
        if fields.get(wire) in _MISREAD_FLAGS:
            return _from_fields_like_java(cls, fields)
    try:
        return msgspec.convert(fields, cls, strict=False)
    except msgspec.ValidationError:
        return _from_fields_like_java(cls, fields)


def to_fields(value: msgspec.Struct) -> dict[str, str]:
    """The header fields of an object: `None` left out, booleans as true/false, numbers decimal."""
    fields: dict[str, str] = {}
    for attribute, wire in _names_of(type(value)):
        item = getattr(value, attribute)
        if item is None:
            continue
        if item.__class__ is str:
            fields[wire] = item
        elif item.__class__ is bool:
            fields[wire] = "true" if item else "false"
        else:
            fields[wire] = str(item)
    return fields


_JAVA_INTEGER: Final = re.compile(r"[+-]?\d{1,19}")
"""What `Integer.parseInt` takes: a plus, leading zeros, digits of any script."""
_MISREAD_FLAGS: Final = ("1", "null")
"""Texts of a boolean that `convert` takes for something else than false."""
_flags: dict[type[msgspec.Struct], tuple[str, ...]] = {}


def _flags_of(cls: type[msgspec.Struct]) -> tuple[str, ...]:
    """Wire names of the class's booleans."""
    flags = tuple(member.encode_name for member in msgspec.structs.fields(cls) if _is_flag(member.type))
    _flags[cls] = flags
    return flags


def _is_flag(kind: object) -> bool:
    return kind is bool or bool in get_args(kind)


_names: dict[type[msgspec.Struct], tuple[tuple[str, str], ...]] = {}


def _names_of(cls: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    names = _names.get(cls)
    if names is None:
        names = tuple(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))
        _names[cls] = names
    return names


def _reply_type_of(cls: type[Any]) -> type[Reply]:
    for parent in cls.__mro__:
        for origin in getattr(parent, "__orig_bases__", ()):
            for argument in get_args(origin):
                if isinstance(argument, type) and issubclass(argument, Reply):
                    return argument
    raise TypeError(f"{cls.__name__} names no reply: write Request[SomeReply]")


def _from_fields_like_java(cls: type[StructT], fields: dict[str, str]) -> StructT:
    """The slow path: the official reader takes "yes" for false and drops a number it cannot parse."""
    readable: dict[str, object] = {}
    for member in msgspec.structs.fields(cls):
        text = fields.get(member.encode_name)
        if text is None:
            continue
        try:
            readable[member.encode_name] = _read(text, member.type)
        except msgspec.ValidationError as error:
            if member.required:
                raise FieldError(f"{cls.__name__}: {member.encode_name} is {text!r:.100}") from error
            continue
    for member in msgspec.structs.fields(cls):
        if member.required and member.encode_name not in readable:
            raise FieldError(f"{cls.__name__}: the field {member.encode_name} is missing")
    return msgspec.convert(readable, cls)


def _read(text: str, kind: object) -> object:
    if _is_flag(kind):
        return text.lower() == "true"
    if _JAVA_INTEGER.fullmatch(text) and kind is not str and str not in get_args(kind):
        return msgspec.convert(int(text), kind)
    return msgspec.convert(text, kind, strict=False)
