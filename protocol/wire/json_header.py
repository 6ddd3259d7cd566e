"""The JSON form of the command header (serialize type 0).

    {"code":30,"extFields":{"topic":"T","queueId":"0"},"flag":0,"language":"JAVA","opaque":7,
     "serializeTypeCurrentRPC":"JSON","version":513}

The outer keys are written in alphabetical order, the fields in the order of their declaration; absent values are left
out. Readers accept any order, unknown keys and numbers as text. A well-formed header is decoded in one pass; any other
goes to the lenient reader of `text/fastjson.py`. Replies always have `extFields`: some clients read it unchecked.
"""

from typing import Annotated, Any, Final

import msgspec

from ..errors import BodyError, FrameError
from ..languages import LANGUAGE_CODES, language_of
from ..text import fastjson
from .command import JSON, Command

_Int = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]


class _Header(msgspec.Struct, omit_defaults=True):
    code: _Int
    extFields: dict[str, str] | None = None
    flag: _Int = -1  # never sent, so that omit_defaults keeps every real value
    language: str = ""
    opaque: _Int = -(1 << 40)
    remark: str | None = None
    serializeTypeCurrentRPC: str = ""
    version: _Int = -1


_MAX_QUOTES: Final = 20_000
"""In one header: 5,000 fields. A field of six bytes becomes an entry of 200. No official header has forty fields."""

_decode: Final = msgspec.json.Decoder(_Header).decode
_encode: Final = msgspec.json.Encoder().encode


def decode_json_header(header: memoryview, body: memoryview | None) -> Command:
    """The command of a JSON header. Raises FrameError if the text is not a JSON object, or has too many fields."""
    if len(header) > _MAX_QUOTES and bytes(header).count(b'"') > _MAX_QUOTES:
        raise FrameError(f"JSON header of {len(header)} bytes: more than {_MAX_QUOTES} quotes")
    try:
        seen = _decode(header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _decode_leniently(header, body)
    language = seen.language
    if language not in LANGUAGE_CODES:
        language = language_of(language) or "JAVA"
    return Command(
        seen.code,
        seen.opaque if seen.opaque != -(1 << 40) else 0,
        seen.flag if seen.flag != -1 else 0,
        seen.remark,
        seen.extFields,
        body,
        language,
        seen.version if seen.version != -1 else 0,
        JSON,
    )


def encode_json_header(command: Command) -> bytes:
    """The header text of a command."""
    return _encode(
        _Header(
            command.code,
            command.fields,
            command.flag,
            command.language,
            command.opaque,
            command.remark,
            "JSON",
            command.version,
        )
    )


def _decode_leniently(header: memoryview, body: memoryview | None) -> Command:
    if len(header) > fastjson.MAX_NONSTANDARD_BYTES:
        raise FrameError(
            f"JSON header of {len(header)} bytes that is not standard, or has fields that are no text"
        )
    try:
        seen = fastjson.loads(header, references=False)
        if not isinstance(seen, dict):
            raise FrameError("JSON header is not an object")
        remark = seen.get("remark")
        remark = None if remark is None else _text(remark)
        fields = _fields(seen.get("extFields"))
    except BodyError as error:
        raise FrameError(f"JSON header: {error}") from error
    return Command(
        _number(seen, "code"),
        _number(seen, "opaque"),
        _number(seen, "flag"),
        remark,
        fields,
        body,
        language_of(seen.get("language")) or "JAVA",
        _number(seen, "version"),
        JSON,
    )


def _number(seen: dict[Any, Any], key: str) -> int:
    value = seen.get(key)
    if value is None:
        return 0
    try:
        number = int(float(value)) if isinstance(value, str) and "." in value else int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise FrameError(f"JSON header: {key} must be a number, got {value!r:.100}") from error
    if not -(1 << 31) <= number < 1 << 31:
        raise FrameError(f"JSON header: {key} must be a 32-bit number, got {number}")
    return number


def _fields(value: object) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise FrameError("JSON header: extFields is not an object")
    return {str(key): _text(item) for key, item in value.items() if item is not None}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return fastjson.dumps(value).decode()
