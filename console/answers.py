"""What the port answers: JSON, and errors as `{"error": ..., "allowed": [...]}`.

    400  a value that is not allowed; `allowed` says which are     403  a request of another origin
    404  a topic, group or rule that does not exist                405  another method
    409  something this server does not have (virtual time, for example), or a topic that exists already

After an error nothing has changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

JSON_BYTES: Final = 64 << 10
"""The longest body of which JSON objects are made: `[[],[],` needs twenty times its length."""
MESSAGE_BYTES: Final = 6 << 20
"""The longest body with a message."""
_encode: Final = msgspec.json.Encoder().encode
FieldsT = TypeVar("FieldsT", bound=msgspec.Struct)


class Problem(Exception):
    """Ends a request with an error."""

    def __init__(self, status: int, text: str, allowed: Sequence[object] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.allowed = list(allowed)


def as_json(value: object, status: int = 200) -> Response:
    return Response(_encode(value), status, media_type="application/json")


def as_error(problem: Problem) -> Response:
    value: dict[str, Any] = {"error": problem.text}
    if problem.allowed:
        value["allowed"] = problem.allowed
    return as_json(value, problem.status)


async def read_body(request: Request, most_bytes: int) -> bytes:
    """The whole body. A body that is too long is refused before it is read."""
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most_bytes:
        raise _too_long(most_bytes)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most_bytes:
            raise _too_long(most_bytes)
        parts.append(part)
    return b"".join(parts)


def _too_long(most_bytes: int) -> Problem:
    return Problem(400, f"the body is too long: at most {most_bytes} bytes are read", [most_bytes])


async def read_object(request: Request, allowed: Sequence[str] | None = None) -> dict[str, Any]:
    """A body that is a JSON object; with `allowed`, one that has no other names."""
    body = await read_body(request, JSON_BYTES)
    try:
        value = msgspec.json.decode(body) if body else {}
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, f"the body is not valid JSON: {error}", ["a JSON object"]) from error
    if not isinstance(value, dict):
        raise Problem(400, "the body must be a JSON object", ["a JSON object"])
    if allowed is not None:
        check_names(value, allowed)
    return value


async def read_fields(request: Request, kind: type[FieldsT]) -> FieldsT:
    """A body that is a JSON object with the fields of a struct; fields of type `Raw` are read by `field_of`."""
    body = await read_body(request, MESSAGE_BYTES)
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        names = list(kind.__struct_fields__)
        raise Problem(400, f"the body is no JSON object with {', '.join(names)}: {error}", names) from error


def field_of(name: str, raw: msgspec.Raw) -> Any:
    """The JSON value of a field: a text of any length, or a short value."""
    view = memoryview(raw)
    if len(view) > JSON_BYTES and view[0] != ord('"'):
        raise Problem(400, f"{name} is too long: at most {JSON_BYTES} bytes are read", [JSON_BYTES])
    try:
        return msgspec.json.decode(view)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Problem(400, f"{name} is no JSON: {error}", ["JSON"]) from error


def check_names(given: Mapping[str, object], allowed: Sequence[str]) -> None:
    for name in given:
        if name not in allowed:
            raise Problem(400, f"unknown name {name!r}; allowed: {', '.join(allowed)}", allowed)


def query_of(request: Request, allowed: Sequence[str]) -> dict[str, str]:
    """The parameters of the address, empty ones left out. An unknown one is refused."""
    given = dict(request.query_params)
    check_names(given, allowed)
    return {name: value for name, value in given.items() if value}


def number_of(given: Mapping[str, str], name: str, default: int, most: int = 1 << 62) -> int:
    """A whole number of the address, from 0 on."""
    text = given.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 19 or int(text) > most:
        raise Problem(400, f"{name} must be a whole number from 0 to {most}, got {text!r:.60}", [0, most])
    return int(text)


def needed(given: Mapping[str, str], name: str) -> str:
    if name not in given:
        raise Problem(400, f"{name} is missing", [name])
    return given[name]
