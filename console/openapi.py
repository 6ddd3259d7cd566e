"""Every address of the port with what it reads and answers; and `/openapi.json`, which is made from that.

`app.py` serves this table, so an address is neither served nor described without the other.
"""

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Final

import msgspec
from starlette.responses import Response

from . import cluster_views as cluster
from . import message_views as messages
from . import stand_in_views as stand_in
from .answers import as_json
from .metrics import metrics
from .server_access import Call
from .values import (
    Clock,
    Error,
    Fault,
    FirstPosition,
    Group,
    GroupQueue,
    Health,
    Lag,
    LedgerMessage,
    LedgerVerdict,
    LoggedRequest,
    Message,
    NewFault,
    NewMessage,
    NewTopic,
    Sent,
    Step,
    Topic,
    TopicChanges,
    Words,
)

JSON: Final = "application/json"
BINARY: Final = "application/octet-stream"
_REFS: Final = "#/components/schemas/{name}"
_NUMBERS: Final = frozenset(("queue", "offset", "limit", "last", "from_ms", "to_ms", "queue_id"))
"""Parameters that are numbers; all others are texts."""


class Operation(msgspec.Struct, frozen=True):
    """One method of one address."""

    method: str
    path: str
    answering: Callable[[Call], Awaitable[Response]]
    """Returns the answer, or raises `Problem`."""
    summary: str
    query: tuple[str, ...] = ()
    """Parameters that it may have; any other is refused if there are some."""
    answer: Any = None
    """The type of a JSON answer, or a tuple of them; None for an empty object."""
    body: Any = None
    """The type of a JSON body."""
    code: int = 200
    content: str = JSON
    """What the answer is; anything but JSON is text or bytes."""
    accepts: str = JSON
    """What the body is; of anything but JSON, `body` is `bytes`."""


_PAGES: Final = ("after", "limit")
_NAMES: Final = ("filter", *_PAGES)
"""`filter` is a part of the names that are wanted."""
_MESSAGES: Final = ("queue", "offset", "limit", "key", "from_ms", "to_ms", "after")


async def health(call: Call) -> Response:
    return as_json(Health("up"))


async def description(call: Call) -> Response:
    return as_json(openapi())


OPERATIONS: Final = (
    Operation("GET", "/healthz", health, "200 while the server runs", answer=Health),
    Operation("GET", "/readyz", health, "200 once clients can connect", answer=Health),
    Operation("GET", "/metrics", metrics, "Prometheus text", content="text/plain"),
    Operation("GET", "/openapi.json", description, "This description", answer=dict[str, Any]),
    Operation("GET", "/api/topics", cluster.topics, "Topics", ("all", *_NAMES), list[Topic]),
    Operation("POST", "/api/topics", cluster.make_topic, "Make a topic", (), Topic, NewTopic, 201),
    Operation("GET", "/api/topics/{topic}", cluster.topic, "One topic", answer=Topic),
    Operation(
        "PUT",
        "/api/topics/{topic}",
        cluster.change_topic,
        "Change what is given of a topic",
        (),
        Topic,
        TopicChanges,
    ),
    Operation(
        "GET",
        "/api/topics/{topic}/messages",
        messages.messages,
        "Messages, oldest first; looking moves no offset",
        _MESSAGES,
        list[Message],
    ),
    Operation(
        "POST",
        "/api/topics/{topic}/messages",
        messages.send_message,
        "Send a message",
        (),
        Sent,
        NewMessage,
        201,
    ),
    Operation("GET", "/api/groups", cluster.groups, "Consumer groups", _NAMES, list[Group]),
    Operation("GET", "/api/groups/{group}", cluster.group, "One group", answer=Group),
    Operation("GET", "/api/groups/{group}/lag", cluster.lag, "Messages still to read", answer=Lag),
    Operation(
        "GET",
        "/api/groups/{group}/queues",
        cluster.group_queues,
        "Queues with offset, lag and the members that hold them",
        answer=list[GroupQueue],
    ),
    Operation(
        "GET",
        "/api/explain",
        cluster.explain,
        "Where a group starts each queue of a topic, and why",
        ("group", "topic"),
        list[FirstPosition],
    ),
    Operation(
        "GET", "/api/words", stand_in.words, "The names that this server knows, for a form", answer=Words
    ),
    Operation("GET", "/api/faults", stand_in.faults, "Rules with their newest hits", _PAGES, list[Fault]),
    Operation("POST", "/api/faults", stand_in.add_fault, "Add a rule", (), Fault, NewFault, 201),
    Operation("DELETE", "/api/faults", stand_in.remove_faults, "Remove every rule", answer=list[Fault]),
    Operation("DELETE", "/api/faults/{rule}", stand_in.remove_fault, "Remove a rule", answer=list[Fault]),
    Operation(
        "GET",
        "/api/requests",
        stand_in.requests,
        "Requests with their replies",
        (*stand_in.SEARCH_WORDS, *_PAGES, "last"),
        list[LoggedRequest],
    ),
    Operation(
        "GET",
        "/api/requests/stream",
        stand_in.request_stream,
        "The same as they arrive: one in the data of each event",
        stand_in.SEARCH_WORDS,
        content="text/event-stream",
    ),
    Operation("GET", "/api/clock", stand_in.clock, "The server's time", answer=Clock),
    Operation("POST", "/api/clock/advance", stand_in.advance, "Let virtual time pass", (), Clock, Step),
    Operation(
        "GET",
        "/api/ledger",
        stand_in.ledger,
        "What became of the messages of a topic for a group; of all; or of one message",
        ("topic", "group", "message", *_PAGES),
        (LedgerVerdict, LedgerMessage, list[LedgerVerdict]),
    ),
    Operation("POST", "/api/reset", stand_in.reset, "Forget everything since the start"),
    Operation("GET", "/api/snapshot", stand_in.snapshot, "The state, as a file", content=BINARY),
    Operation("PUT", "/api/snapshot", stand_in.restore, "Bring a state back", body=bytes, accepts=BINARY),
)


@cache
def openapi() -> dict[str, Any]:
    """The description, as OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    kinds = [Error]
    for one in OPERATIONS:
        kinds += [kind for kind in (*_each(one.answer), *_each(one.body)) if kind is not bytes]
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


def _each(kind: Any) -> tuple[Any, ...]:
    return () if kind is None else kind if isinstance(kind, tuple) else (kind,)


def _described(operation: Operation) -> dict[str, Any]:
    in_path = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    described: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}{operation.path.translate(_ID)}",
        "summary": operation.summary,
        "responses": {
            str(operation.code): {
                "description": operation.summary,
                "content": {operation.content: {"schema": _answered(operation)}},
            },
            "4XX": {"description": "An error", "content": {JSON: {"schema": _schema(Error)}}},
        },
    }
    parameters = [
        {"name": name, "in": place, "required": place == "path", "schema": _parameter(name)}
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
    schemas, _ = msgspec.json.schema_components(_each(kind), ref_template=_REFS)
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}


def _parameter(name: str) -> dict[str, Any]:
    return {"type": "integer" if name in _NUMBERS else "string"}
