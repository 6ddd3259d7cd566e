"""Declare a request once: its code, its header fields, its body, and what its reply holds.

    @request(30)
    class GetMaxOffset(Request[OffsetReply], frozen=True, kw_only=True):
        topic: str
        queue_id: Int

    @request(34, body=HeartbeatData)
    class HeartBeat(Request[HeartBeatReply], frozen=True, kw_only=True): ...

    @request(208)
    class GetConsumeStats(Request[ConsumeStats], frozen=True, kw_only=True): ...

The type argument is what a caller gets back, and the type checker knows it: the header fields of the reply (a `Reply`),
or its body where the reply has no fields of its own. `Request[UserInfo | None]`: the body may be missing. A reply with
fields and a body names its body in `reply_body=`. Where official programs use two forms, `body_variants=` and
`reply_body_variants=` say when the other one is used. `only_in=` names the line, 4 (4.9) or 5 (5.x), that alone knows
the request.

On the wire every header value is text under its camelCase name (`queueId`); `field(name="a")` names the odd ones. A
field without default is mandatory. Unknown fields are ignored. Two classes with one code fail at import.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType, NoneType
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import field

from ..bodies.body import Body, Int, Long, decode_body, encode_body, form_name
from ..errors import FieldError
from ..text import fastjson

__all__ = [
    "REQUESTS",
    "Int",
    "Line",
    "Long",
    "NoReply",
    "Reply",
    "Request",
    "RequestBody",
    "encode_request_body",
    "field",
    "from_fields",
    "read_reply",
    "request",
    "to_fields",
]


class Reply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Header fields of a reply."""


class NoReply(Reply, frozen=True, kw_only=True):
    """A reply without header fields of its own."""


Line = Literal[4, 5]
"""An official line: 4.9 or 5.x."""
Form = Any
"""A type `decode_body` knows: a `Body`, `list[...]` of bodies, a kind of text or bytes."""

RequestBody = Body | str | bytes | memoryview
"""What a caller gives as the body of a request: a value of the declared form, or its bytes."""

ReplyT = TypeVar("ReplyT")
RequestT = TypeVar("RequestT", bound="Request[Any]")
StructT = TypeVar("StructT", bound=msgspec.Struct)
_NO_VARIANTS: Final[Mapping[str, Form]] = MappingProxyType({})


class Request(msgspec.Struct, Generic[ReplyT], frozen=True, kw_only=True, rename="camel"):
    """Header fields of a request. `@request` sets the class variables."""

    code: ClassVar[int]
    name: ClassVar[str]
    only_in: ClassVar[Line | None]
    body_form: ClassVar[Form | None]
    """None: the request has no body."""
    body_variants: ClassVar[Mapping[str, Form]]
    """When the body has another form -> that form."""
    reply_type: ClassVar[type[Reply]]
    """Header fields of the reply."""
    reply_body_form: ClassVar[Form | None]
    reply_body_variants: ClassVar[Mapping[str, Form]]
    may_lack_reply_body: ClassVar[bool]
    returns_body: ClassVar[bool]
    """True if a caller gets the reply's body, False if its header fields."""


REQUESTS: Final[dict[int, type[Request[Any]]]] = {}
"""Every declared request by its code."""


def request(
    code: int,
    name: str | None = None,
    *,
    only_in: Line | None = None,
    body: Form | None = None,
    body_variants: Mapping[str, Form] = _NO_VARIANTS,
    reply_body: Form | None = None,
    reply_body_variants: Mapping[str, Form] = _NO_VARIANTS,
) -> Callable[[type[RequestT]], type[RequestT]]:
    """Give a request class its code and bodies; `name` where the official name is not the class name in capitals."""

    def declare(cls: type[RequestT]) -> type[RequestT]:
        if code in REQUESTS:
            raise TypeError(f"code {code} is declared by {REQUESTS[code].__name__} and {cls.__name__}")
        returned, may_be_none = _returned_by(cls)
        has_header = isinstance(returned, type) and issubclass(returned, Reply)
        if not has_header and reply_body is not None:
            raise TypeError(f"{cls.__name__} names the body of its reply twice: {returned} and {reply_body}")
        cls.code = code
        cls.name = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).upper()
        cls.only_in = only_in
        cls.body_form, cls.body_variants = body, body_variants
        cls.reply_type = returned if has_header else NoReply
        cls.reply_body_form = reply_body if has_header else returned
        cls.reply_body_variants, cls.may_lack_reply_body = reply_body_variants, may_be_none
        cls.returns_body = not has_header
        REQUESTS[code] = cls
        return cls

    return declare


def read_reply(
    request: Request[ReplyT], fields: dict[str, str] | None, body: bytes | memoryview | None
) -> ReplyT:
    """What a caller of the request gets: the header fields of a reply, or its body. Raises FieldError, BodyError."""
    if not request.returns_body:
        return cast(ReplyT, from_fields(request.reply_type, fields))
    if not body and request.may_lack_reply_body:
        return cast(ReplyT, None)
    return cast(ReplyT, decode_body(request.reply_body_form, body, max_bytes=fastjson.MAX_BYTES))


def encode_request_body(request: Request[Any], body: Any) -> bytes | memoryview | None:
    """The bytes of a request's body; bytes stay as they are. Raises TypeError for a form that is not declared."""
    if body is None or isinstance(body, bytes | memoryview):
        return body
    if type(body) not in (request.body_form, *request.body_variants.values()):
        declared = "no body" if request.body_form is None else form_name(request.body_form)
        raise TypeError(f"{type(request).__name__} has {declared}, not a {type(body).__name__}")
    return encode_body(body)


def from_fields(cls: type[StructT], fields: dict[str, str] | None) -> StructT:
    """The object of a header's fields. Raises FieldError, naming class, key and text, for a bad or missing field."""
    if fields is None:
        fields = {}
    for wire in _flags_of(cls):
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
"""What `Integer.parseInt` accepts: a plus, leading zeros, digits of any script."""
_MISREAD_FLAGS: Final = ("1", "null")
"""Texts that Java reads as false and `convert` does not."""


@cache
def _flags_of(cls: type[msgspec.Struct]) -> tuple[str, ...]:
    """Wire names of the class's booleans."""
    return tuple(member.encode_name for member in msgspec.structs.fields(cls) if _is_flag(member.type))


def _is_flag(kind: object) -> bool:
    return kind is bool or bool in get_args(kind)


@cache
def _names_of(cls: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))


def _returned_by(cls: type[Any]) -> tuple[Any, bool]:
    """The type argument of a request class, and whether it may be None."""
    for parent in cls.__mro__:
        for origin in getattr(parent, "__orig_bases__", ()):
            if get_origin(origin) is Request:
                (argument,) = get_args(origin)
                others = [option for option in get_args(argument) if option is not NoneType]
                return (others[0], True) if NoneType in get_args(argument) else (argument, False)
    raise TypeError(f"{cls.__name__} names no reply: write Request[SomeReply]")


@cache
def _members(cls: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """It evaluates every annotation, for 20 to 100 us."""
    return msgspec.structs.fields(cls)


def _from_fields_like_java(cls: type[StructT], fields: dict[str, str]) -> StructT:
    """The slow path: the official reader reads "yes" as false and drops a number that it cannot parse."""
    readable: dict[str, object] = {}
    for member in _members(cls):
        text = fields.get(member.encode_name)
        if text is None:
            continue
        try:
            readable[member.encode_name] = _read(text, member.type)
        except msgspec.ValidationError as error:
            if member.required:
                raise FieldError(f"{cls.__name__}: {member.encode_name} is {text!r:.100}") from error
            continue
    for member in _members(cls):
        if member.required and member.encode_name not in readable:
            raise FieldError(f"{cls.__name__}: the field {member.encode_name} is missing")
    return msgspec.convert(readable, cls)


def _read(text: str, kind: object) -> object:
    if _is_flag(kind):
        return text.lower() == "true"
    if _JAVA_INTEGER.fullmatch(text) and kind is not str and str not in get_args(kind):
        return msgspec.convert(int(text), kind)
    return msgspec.convert(text, kind, strict=False)
