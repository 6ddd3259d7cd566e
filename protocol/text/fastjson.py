"""JSON as the official programs write and read it (fastjson), both ways.

fastjson is not standard JSON. It writes map keys that are no strings without quotes, whole objects among
them:

    {0:"10.0.0.1:10911"}                                                      integer key
    {"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:{...}}}        object key

and it reads unquoted names, single quotes, doubled or trailing commas, a byte order mark, raw control
characters and `{"$ref":"$.a[0]"}` for an object that stands elsewhere in the same tree. All of these are read
here; anything standard goes to orjson or msgspec and never sees the slow reader.

This file knows nothing of any body. `bodies_*.py` declare those; `decode(data, Type)` and `dumps(value)`
serve them."""

import math
from base64 import b64encode
from collections.abc import Callable, Iterable
from enum import Enum
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, Final, TypeVar

import msgspec
import orjson

from ..errors import BodyError
from ..message.message_queue import MessageQueue
from .json_reader import read, resolve_references, without_nulls

__all__ = ["MAX_BYTES", "decode", "dumps", "loads"]

MAX_BYTES: Final = 16 * 1024 * 1024
"""Longest text read from a peer: no frame is longer. Files pass their own limit."""

_Value = TypeVar("_Value")
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_members: dict[type, tuple[tuple[str, str], ...]] = {}


def loads(data: bytes | bytearray | memoryview | str, *, max_bytes: int = MAX_BYTES) -> Any:
    """Text to plain values: dict, list, str, int, float, bool, None.

    A key is a `str`; an unquoted integer key is an `int`; an object key is a `MessageQueue` when it holds
    only that class's members, else its canonical JSON text. Raises BodyError with the place of the fault."""
    if len(data) > max_bytes:
        raise BodyError(f"JSON of {len(data)} bytes, the limit is {max_bytes}")
    value = _parse(data)
    return _resolved(value) if _mentions_reference(data) else value


def decode(
    data: bytes | bytearray | memoryview | str, form: type[_Value], *, max_bytes: int = MAX_BYTES
) -> _Value:
    """Text to a value of type `form`, as forgiving as fastjson: unknown members are ignored, absent and null
    ones take the default, numbers may be text, map keys may be quoted or not. Raises BodyError naming the
    member at fault."""
    if len(data) > max_bytes:
        raise BodyError(f"JSON of {len(data)} bytes, the limit is {max_bytes}")
    if not _mentions_reference(data):
        decoder = _decoders.get(form)
        if decoder is None:
            decoder = _decoders[form] = msgspec.json.Decoder(form, strict=False)
        try:
            result: _Value = decoder.decode(data)
            return result
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # nulls, unquoted keys, ...: the reader below accepts them or says what is wrong
    tree = _parse(data)
    try:
        tree = without_nulls(tree)
        if _mentions_reference(data):
            tree = _resolved(tree)
        return msgspec.convert(tree, form, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise BodyError(f"{getattr(form, '__name__', form)}: {error}") from error


def dumps(
    value: Any, *, quote_integer_keys: bool = False, browser_compatible: bool = False, pretty: bool = False
) -> bytes:
    """A value to fastjson's text. Members of structs and string-keyed maps stand in alphabetical order,
    members that are None are left out (None in a list stays `null`), NaN and infinity become `null`, text is
    raw UTF-8.

    quote_integer_keys   `{"0":1}` instead of `{0:1}`: every reader takes it, also in a member it does not know
    browser_compatible   quoted integer keys and `\\u` escapes (4.x route data, clients since V4_9_4)
    pretty               one member a line, indented with tabs, as in the official configuration files
    """
    writer = _Writer(
        quote_integer_keys=quote_integer_keys or browser_compatible,
        text=encode_basestring_ascii if browser_compatible else encode_basestring,
        pretty=pretty,
    )
    writer.write(value, "\n" if pretty else "")
    # A lone surrogate (half a character, legal in Java strings) has no UTF-8 form: Java writes '?' for it.
    return "".join(writer.pieces).encode("utf-8", "replace")


class _Writer:
    """Collects the pieces of one text. `break_` is the line break plus indentation of the current level, or
    empty."""

    __slots__ = ("pieces", "pretty", "quote_integer_keys", "text")

    def __init__(self, *, quote_integer_keys: bool, text: Callable[[str], str], pretty: bool) -> None:
        self.pieces: list[str] = []
        self.quote_integer_keys = quote_integer_keys
        self.text = text
        self.pretty = pretty

    def write(self, value: Any, break_: str) -> None:
        kind = type(value)
        if kind is str:
            self.pieces.append(self.text(value))
        elif kind is int:
            self.pieces.append(str(value))
        elif kind is bool:
            self.pieces.append("true" if value else "false")
        elif value is None:
            self.pieces.append("null")
        elif kind is dict:
            self._map(value, break_)
        elif kind is float:
            self.pieces.append(repr(value) if math.isfinite(value) else "null")
        else:
            self._other(value, break_)

    def _other(self, value: Any, break_: str) -> None:
        if isinstance(value, msgspec.Struct):
            self._struct(value, break_)
        elif isinstance(value, list | tuple):
            self._list(value, break_)
        elif isinstance(value, set | frozenset):
            self._list(sorted(value, key=_set_order), break_)
        elif isinstance(value, bytes):
            self.pieces.append(f'"{b64encode(value).decode()}"')
        elif isinstance(value, Enum):
            self.write(value.value, break_)
        elif isinstance(value, dict):
            self._map(value, break_)
        else:
            raise TypeError(f"no JSON form for {type(value).__name__}")

    def _struct(self, value: msgspec.Struct, break_: str) -> None:
        kind = type(value)
        members = _members.get(kind)
        if members is None:
            wire_names = zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True)
            members = _members[kind] = tuple(
                (f'"{name}":', attribute) for name, attribute in sorted(wire_names)
            )
        self._members(
            [
                (name, member)
                for name, attribute in members
                if (member := getattr(value, attribute)) is not None
            ],
            break_,
        )

    def _map(self, value: dict[Any, Any], break_: str) -> None:
        if value and all(type(key) is int and type(member) is int for key, member in value.items()):
            self._numbers(value, break_)
            return
        present = [(key, member) for key, member in value.items() if member is not None]
        present.sort(key=_key_order)
        self._members([(self._key(key), member) for key, member in present], break_)

    def _numbers(self, value: dict[int, int], break_: str) -> None:
        """Queue id to offset: by far the most members of a large offset table, which is saved every 5 s."""
        inner = break_ + "\t" if self.pretty else ""
        quote = '"' if self.quote_integer_keys else ""
        members = [f"{quote}{key}{quote}:{value[key]}" for key in sorted(value)]
        self.pieces.append(f"{{{inner}{f',{inner}'.join(members)}{break_}}}")

    def _members(self, members: list[tuple[str, Any]], break_: str) -> None:
        if not members:
            self.pieces.append("{}")
            return
        inner = break_ + "\t" if self.pretty else ""
        opening = "{" + inner
        for key, member in members:
            self.pieces.append(opening)
            self.pieces.append(key)
            self.write(member, inner)
            opening = "," + inner
        self.pieces.append(break_ + "}")

    def _list(self, values: Iterable[Any], break_: str) -> None:
        inner = break_ + "\t" if self.pretty else ""
        opening = "[" + inner
        for value in values:
            self.pieces.append(opening)
            self.write(value, inner)
            opening = "," + inner
        self.pieces.append(break_ + "]" if opening[0] == "," else "[]")

    def _key(self, key: Any) -> str:
        if isinstance(key, str):
            return self.text(key) + ":"
        if isinstance(key, int):
            return f'"{key}":' if self.quote_integer_keys else f"{key}:"
        if isinstance(key, MessageQueue):
            writer = _Writer(quote_integer_keys=False, text=self.text, pretty=False)
            writer.write(key, "")
            return "".join(writer.pieces) + ":"
        raise TypeError(f"no JSON key for {type(key).__name__}")


def _key_order(member: tuple[Any, Any]) -> tuple[str, Any]:
    key = member[0]
    return type(key).__name__, key


def _set_order(value: Any) -> tuple[str, Any]:
    if isinstance(value, msgspec.Struct) and not isinstance(value, MessageQueue):
        return type(value).__name__, dumps(value)
    return type(value).__name__, value


def _parse(data: bytes | bytearray | memoryview | str) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return read(data, _object_key)


def _resolved(tree: Any) -> Any:
    try:
        return resolve_references(tree)
    except RecursionError as error:
        raise BodyError("JSON nested too deep") from error


def _mentions_reference(data: bytes | bytearray | memoryview | str) -> bool:
    if isinstance(data, str):
        return "$ref" in data
    if isinstance(data, memoryview):
        data = bytes(data)
    return b"$ref" in data


def _object_key(members: dict[Any, Any]) -> Any:
    """Java may leave topic or broker name of a MessageQueue null; the queue id is always written."""
    if "queueId" in members and members.keys() <= {"brokerName", "queueId", "topic"}:
        try:
            return msgspec.convert(without_nulls(members), MessageQueue, strict=False)
        except msgspec.ValidationError as error:
            raise BodyError(f"object key: {error}") from error
    return dumps(members).decode()
