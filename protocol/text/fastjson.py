"""JSON as the official programs write and read it (fastjson), both ways: the public functions of this package.

fastjson is not standard JSON. It writes map keys that are not strings without quotes, whole objects among them:

    {0:"10.0.0.1:10911"}                                                      integer key
    {"offsetTable":{{"brokerName":"b","queueId":0,"topic":"t"}:{...}}}        object key

It reads unquoted names, single quotes, doubled or trailing commas, a byte order mark, raw control characters, and
`{"$ref":"$.a[0]"}` for an object elsewhere in the same tree. All of these are read here. Standard text goes to orjson
or msgspec; the slow reader never sees it.

This file knows no body: `bodies/` declares them and calls `decode(data, Type)` and `dumps(value)`.
"""

from typing import Any, Final, TypeVar

import msgspec
import orjson

from ..errors import BodyError
from ..message.message_queue import MessageQueue
from .json_reader import read
from .json_references import resolve_references
from .json_writer import dumps

__all__ = ["MAX_BYTES", "MAX_REQUEST_BYTES", "convert", "decode", "decode_long", "dumps", "loads"]

MAX_BYTES: Final = 16 * 1024 * 1024
"""Longest text that arrives in a frame."""
MAX_REQUEST_BYTES: Final = 2 * 1024 * 1024
"""Longest text of a request: to read as much takes about 20 ms. The largest of honest clients have a tenth of it."""
MAX_NONSTANDARD_BYTES: Final = 64 * 1024
"""Longest text of a request that is not standard JSON: the slow reader needs up to a microsecond a byte."""
_FREE_ITEMS: Final = 30_000
_BYTES_PER_ITEM: Final = 10
"""A request may have so many items, and one more for each ten bytes. Objects and lists count as three: an object of
two bytes may become one of 250."""

_MAX_OBJECT_KEY: Final = 1024

_Value = TypeVar("_Value")
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def loads(
    data: bytes | bytearray | memoryview | str, *, max_bytes: int | None = None, references: bool = True
) -> Any:
    """Text to plain values: dict, list, str, int, float, bool, None.

    A key is a `str`; an unquoted integer key is an `int`; an object key is a `MessageQueue` if it holds only members of
    that class, else its canonical JSON text. `references=False`: a reference is an object like any other.

    Without `max_bytes` the text is that of a request, with limits that keep reading it short: of its length, of the
    number of its items, and of its length if it is not standard JSON. Files and replies have `max_bytes` alone. Raises
    BodyError with the place of the fault.
    """
    max_nonstandard = _check_size(data, max_bytes)
    value = _parse(data, max_nonstandard)
    return _resolved(value, data, max_nonstandard) if references and _mentions_reference(data) else value


def decode(
    data: bytes | bytearray | memoryview | str, form: type[_Value], *, max_bytes: int | None = None
) -> _Value:
    """Text to a value of type `form`, as tolerant as fastjson: unknown members are ignored, absent and null members
    have the default, numbers may be text, map keys may be quoted or not. Limits as in `loads`. Raises BodyError, naming
    the member.
    """
    max_nonstandard = _check_size(data, max_bytes)
    mentions_reference = _mentions_reference(data)
    if not mentions_reference:
        try:
            return _decode_standard(data, form)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # nulls, unquoted keys, ...: the reader below accepts them or reports the fault
    tree = _parse(data, max_nonstandard)
    return convert(_resolved(tree, data, max_nonstandard) if mentions_reference else tree, form)


def decode_long(data: bytes | bytearray | memoryview, form: type[_Value]) -> _Value:
    """As `decode` for a request of up to `MAX_BYTES`, which must be standard JSON without nulls. Of members that are
    `msgspec.Raw` only the end is searched: they are decoded later."""
    if len(data) > MAX_BYTES:
        raise BodyError(f"JSON of {len(data)} bytes; the limit is {MAX_BYTES}")
    _check_items(data)
    try:
        return _decode_standard(data, form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BodyError(f"{getattr(form, '__name__', form)}: {error}") from error


def _decode_standard(data: bytes | bytearray | memoryview | str, form: type[_Value]) -> _Value:
    decoder = _decoders.get(form)
    if decoder is None:
        decoder = _decoders[form] = msgspec.json.Decoder(form, strict=False)
    result: _Value = decoder.decode(data)
    return result


def convert(tree: Any, form: type[_Value]) -> _Value:
    """What `loads` returned to a value of type `form`, by the rules of `decode`. Raises BodyError."""
    try:
        return msgspec.convert(_without_nulls(tree), form, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise BodyError(f"{getattr(form, '__name__', form)}: {error}") from error


def _check_size(data: bytes | bytearray | memoryview | str, max_bytes: int | None) -> int:
    """Refuse a text beyond the limits (BodyError); returns the longest that may be other than standard JSON."""
    limit = MAX_REQUEST_BYTES if max_bytes is None else max_bytes
    if len(data) > limit:
        raise BodyError(f"JSON of {len(data)} bytes; the limit is {limit}")
    if max_bytes is not None:
        return max_bytes
    _check_items(data)
    return MAX_NONSTANDARD_BYTES


def _check_items(data: bytes | bytearray | memoryview | str) -> None:
    if len(data) > _FREE_ITEMS // 3:
        text = data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)
        items = text.count(b",") + 3 * (text.count(b"{") + text.count(b"["))
        if items > _FREE_ITEMS + len(text) // _BYTES_PER_ITEM:
            raise BodyError(f"JSON with too many items: {items} in {len(text)} bytes")


def _parse(data: bytes | bytearray | memoryview | str, max_nonstandard: int) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if len(data) > max_nonstandard:
            raise BodyError(
                f"JSON of {len(data)} bytes that is not standard; the limit is {max_nonstandard}: {error}"
            ) from error
        return read(data, _object_key)


def _resolved(tree: Any, data: bytes | bytearray | memoryview | str, max_nonstandard: int) -> Any:
    if len(data) > max_nonstandard:
        raise BodyError(f"JSON of {len(data)} bytes with references; the limit is {max_nonstandard}")
    return resolve_references(tree, len(data))


def _mentions_reference(data: bytes | bytearray | memoryview | str) -> bool:
    if isinstance(data, str):
        return "$ref" in data
    if isinstance(data, memoryview):
        data = bytes(data)
    return b"$ref" in data


_TREES = frozenset((dict, list))


def _without_nulls(value: Any) -> Any:
    """The tree without object members that are null: fastjson leaves such a member at its default."""
    # A call for each text and number would take half the time of a large body.
    if isinstance(value, dict):
        return {
            key: _without_nulls(member) if member.__class__ in _TREES else member
            for key, member in value.items()
            if member is not None
        }
    if isinstance(value, list):
        return [_without_nulls(member) if member.__class__ in _TREES else member for member in value]
    return value


def _object_key(members: dict[Any, Any]) -> Any:
    """Java may leave topic or broker name of a MessageQueue null; the queue id is always written."""
    if "queueId" in members and members.keys() <= {"brokerName", "queueId", "topic"}:
        try:
            return msgspec.convert(_without_nulls(members), MessageQueue, strict=False)
        except msgspec.ValidationError as error:
            raise BodyError(f"object key: {error}") from error
    text = dumps(members)
    if len(text) > _MAX_OBJECT_KEY:  # a key inside a key doubles the escapes of the inner one
        raise BodyError(f"object key of {len(text)} bytes; the limit is {_MAX_OBJECT_KEY}")
    return text.decode()
