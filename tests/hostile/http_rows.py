"""Hostile requests for the HTTP port, made from its own description (`/openapi.json`): every address and method.

One parameter at a time is missing, empty, negative, too large or a long text; bodies are deep, wide, long, or no JSON.
Streams that never end are tried in `tests/console`.
"""

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from pocketmq.console.openapi import openapi
from pocketmq.testing.server import stand_in_views  # noqa: F401  openapi describes its addresses too

from hostile.generated_rows import LONG, SHORT, Row
from hostile.judge import Attack

SERVED: Final = [
    (path, method)
    for path, methods in openapi()["paths"].items()
    for method in methods
    if not path.endswith("/stream")
]
HEAD_BYTES: Final = 8_000
"""The longest request line that is of interest: servers refuse longer ones before they read on."""
PLAUSIBLE: Final = {"topic": "Good", "group": "g", "limit": "1"}
DEEP: Final = 200_000


def request_of(method: str, target: str, body: bytes | None = None, *, headers: str = "") -> bytes:
    """One request, after whose answer the server closes the connection."""
    length = "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    head = (
        f"{method.upper()} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}{headers}\r\n"
    )
    return head.encode("latin-1") + (body or b"")


def rows(path: str, method: str, body_bytes: int) -> Iterator[Row]:
    """All of one address and method."""
    action = openapi()["paths"][path][method]
    for what, data in _requests(path, method, action, body_bytes):
        yield Row(f"http {method} {path} {what}", Attack("http", data))


def _requests(path: str, method: str, action: dict[str, Any], size: int) -> Iterator[tuple[str, bytes]]:
    parameters = {one["name"]: one["in"] for one in action.get("parameters", ())}
    has_body = "requestBody" in action
    plain = {name: PLAUSIBLE[name] for name in parameters if name in PLAUSIBLE}
    body = b"{}" if has_body else None
    yield "plain", request_of(method, _target(path, parameters, plain), body)
    for name in parameters:
        less = {other: value for other, value in plain.items() if other != name}
        yield f"without {name}", request_of(method, _target(path, parameters, less), body)
        for text in (*SHORT, *(text * (HEAD_BYTES // 3 // len(text.encode())) for text in LONG)):
            target = _target(path, parameters, {**plain, name: text})
            yield f"{name}={text[:20]!r} ({len(text)})", request_of(method, target, body)
    target = _target(path, parameters, plain)
    many = "".join(f"X-Header-{number}: value\r\n" for number in range(size // 20))
    yield "many headers", request_of(method, target, body, headers=many)
    yield "a long header", request_of(method, target, body, headers=f"X: {'x' * size}\r\n")
    yield "many parameters", request_of(method, target + "?" + "a=b&" * (HEAD_BYTES // 4), body)
    if has_body:
        for what, data in _bodies(size):
            yield f"body {what}", request_of(method, target, data)


def _target(path: str, parameters: dict[str, str], values: dict[str, str]) -> str:
    query = []
    for name, text in values.items():
        if parameters[name] == "path":
            path = path.replace(f"{{{name}}}", quote(text, safe=""))
        else:
            query.append(f"{name}={quote(text, safe='')}")
    return path + ("?" + "&".join(query) if query else "")


NAMES: Final = (
    *("name", "queues", "text", "body_base64", "tags", "keys", "properties", "queue_id", "delay_level"),
    *("delay_ms", "effect", "code", "topic", "group", "client_id", "times", "after", "probability"),
    *("response", "remark", "seconds", "fields", "by", "to_next"),
)


def _bodies(size: int) -> Iterator[tuple[str, bytes]]:
    yield "empty", b""
    yield "no json", b"x" * size
    yield "deep", b"[" * min(size, DEEP)
    yield "deep objects", b'{"a":' * (min(size, DEEP) // 5)
    yield "zeros", bytes(size)
    yield "many names", json.dumps({f"n{number}": 1 for number in range(size // 12)}).encode()
    for name in NAMES:
        good = {"name": "T", "text": "x", "effect": "refuse", "code": "GET_MAX_OFFSET", "topic": "none"}
        for what, value in (
            ("long", "x" * size),
            ("long digits", "9" * min(size, DEEP)),
            ("a list", ["x"] * (size // 5)),
            ("an object", {f"n{number}": "x" for number in range(size // 12)}),
            ("null", None),
            ("-1", -1),
            ("huge", 2**63),
            ("1e308", 1e308),
        ):
            yield f"{name} is {what}", json.dumps({**good, name: value}).encode()
    yield "a number of many digits", b'{"queues":' + b"9" * min(size, DEEP) + b"}"
