"""`/openapi.json`: every address of the port with what it reads and answers, as the functions of the views declare it.

`app.py` serves the same `OPERATIONS`, so an address is neither served nor described without the other.
"""

from functools import cache
from typing import Any, Final

import msgspec
from starlette.responses import Response

from . import cluster_views, message_views, metrics  # noqa: F401  they fill OPERATIONS
from .answers import BINARY, JSON, OPERATIONS, Call, Operation, as_json, serves
from .values import Error, Health

_REFS: Final = "#/components/schemas/{name}"
PARAMETERS: Final = {
    "after": (
        "string",
        "begin after this entry; the header `Link` of a page has the address of the next one",
    ),
    "all": ("string", "`true`: with the topics of the broker itself"),
    "broker": ("string", "the broker that got the request"),
    "client_id": ("string", "the client that sent the request"),
    "code": ("string", "a request, by its official name or number"),
    "filter": ("string", "a part of the name"),
    "from_ms": ("integer", "stored at this time or later, ms since 1970"),
    "group": ("string", "a consumer group; of requests also a producer group"),
    "key": ("string", "a key or an id of the message"),
    "last": ("integer", "how many of the newest"),
    "limit": ("integer", "how many at most, beginning with the oldest; a page also ends after 1 MiB"),
    "message": ("string", "the id of a message"),
    "offset": ("integer", "begin at this offset of each queue"),
    "oneway": ("string", "`true` or `false`: whether no reply was wanted"),
    "queue": ("integer", "the id of a queue"),
    "queue_id": ("integer", "the id of a queue"),
    "response": ("string", "a response code, by its official name or number"),
    "rule": ("string", "the id of a rule"),
    "to_ms": ("integer", "stored at this time or earlier, ms since 1970"),
    "topic": ("string", "a topic"),
}
"""Parameters of all addresses: type and meaning."""


@serves("GET", "/healthz", answer=Health)
@serves("GET", "/readyz", answer=Health)
async def health(call: Call) -> Response:
    """The server runs, and clients can connect."""
    return as_json(Health("up"))


@serves("GET", "/openapi.json", answer=dict[str, Any])
async def description(call: Call) -> Response:
    """This description."""
    return as_json(openapi())


@cache
def openapi() -> dict[str, Any]:
    """The description, as OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    kinds = [Error]
    for one in OPERATIONS:
        kinds += [kind for kind in (*each_kind(one.answer), *each_kind(one.body)) if kind is not bytes]
    _, components = msgspec.json.schema_components(kinds, ref_template=_REFS)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "PocketMQ",
            "version": "1",
            "description": "Look into a stand-in broker, and make it do wrong. Names are in snake_case.",
        },
        "paths": paths,
        "components": {"schemas": components},
    }


def each_kind(kind: Any) -> tuple[Any, ...]:
    """The types of a body or an answer."""
    return () if kind is None else kind if isinstance(kind, tuple) else (kind,)


def _described(operation: Operation) -> dict[str, Any]:
    summary = (operation.answering.__doc__ or "").partition(".")[0]
    in_path = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    described: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}{operation.path.translate(_ID)}",
        "summary": summary,
        "responses": {
            str(operation.code): {
                "description": summary,
                "content": {operation.content: {"schema": _answered(operation)}},
            },
            "4XX": {"description": "An error", "content": {JSON: {"schema": _schema(Error)}}},
        },
    }
    parameters = [
        {
            "name": name,
            "in": place,
            "required": place == "path",
            "description": PARAMETERS[name][1],
            "schema": {"type": PARAMETERS[name][0]},
        }
        for place, names in (("path", in_path), ("query", operation.query))
        for name in names
    ]
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        is_json = operation.accepts == JSON
        schema = _schema(operation.body) if is_json else {"type": "string", "format": "binary"}
        described["requestBody"] = {"required": True, "content": {operation.accepts: {"schema": schema}}}
    return described


_ID: Final = str.maketrans({"/": "_", "{": "", "}": "", ".": "_"})


def _answered(operation: Operation) -> dict[str, Any]:
    if operation.content == BINARY:
        return {"type": "string", "format": "binary"}
    if operation.content != JSON:
        return {"type": "string"}
    return {"type": "object"} if operation.answer is None else _schema(operation.answer)


def _schema(kind: Any) -> dict[str, Any]:
    schemas, _ = msgspec.json.schema_components(each_kind(kind), ref_template=_REFS)
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}
