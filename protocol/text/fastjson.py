"""JSON as the official programs write and read it (fastjson), both ways: the door to the other JSON files here.

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

__all__ = ["MAX_BYTES", "decode", "dumps", "loads"]

MAX_BYTES: Final = 16 * 1024 * 1024
"""Longest text read from a peer: no frame is longer. Files pass their own limit."""

_Value = TypeVar("_Value")
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def loads(data: bytes | bytearray | memoryview | str, *, max_bytes: int = MAX_BYTES) -> Any:
    """Text to plain values: dict, list, str, int, float, bool, None.

    A key is a `str`; an unquoted integer key is an `int`; an object key is a `MessageQueue` if it holds only members of
    that class, else its canonical JSON text. Raises BodyError with the place of the fault.
    """
    if len(data) > max_bytes:
        raise BodyError(f"JSON of {len(data)} bytes; the limit is {max_bytes}")
    value = _parse(data)
    return _resolved(value) if _mentions_reference(data) else value


def decode(
    data: bytes | bytearray | memoryview | str, form: type[_Value], *, max_bytes: int = MAX_BYTES
) -> _Value:
    """Text to a value of type `form`, as tolerant as fastjson: unknown members are ignored, absent and null members
    have the default, numbers may be text, map keys may be quoted or not. Raises BodyError, naming the member.
    """
    if len(data) > max_bytes:
        raise BodyError(f"JSON of {len(data)} bytes; the limit is {max_bytes}")
    if not _mentions_reference(data):
        decoder = _decoders.get(form)
        if decoder is None:
            decoder = _decoders[form] = msgspec.json.Decoder(form, strict=False)
        try:
            result: _Value = decoder.decode(data)
            return result
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # nulls, unquoted keys, ...: the reader below accepts them or reports the fault
    tree = _parse(data)
    try:
        tree = _without_nulls(tree)
        if _mentions_reference(data):
            tree = _resolved(tree)
        return msgspec.convert(tree, form, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise BodyError(f"{getattr(form, '__name__', form)}: {error}") from error


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


def _without_nulls(value: Any) -> Any:
    """The tree without object members that are null: fastjson leaves such a member at its default."""
    if isinstance(value, dict):
        return {key: _without_nulls(member) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(member) for member in value]
    return value


def _object_key(members: dict[Any, Any]) -> Any:
    """Java may leave topic or broker name of a MessageQueue null; the queue id is always written."""
    if "queueId" in members and members.keys() <= {"brokerName", "queueId", "topic"}:
        try:
            return msgspec.convert(_without_nulls(members), MessageQueue, strict=False)
        except msgspec.ValidationError as error:
            raise BodyError(f"object key: {error}") from error
    return dumps(members).decode()
