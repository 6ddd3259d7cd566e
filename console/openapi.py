"""`/openapi.json`: every address with its parameters and answers, so that other languages can generate a client."""

from functools import cache
from typing import Any, Final

from .message_views import LIST_WORDS
from .stand_in_views import LEDGER_WORDS, REQUEST_WORDS, SEARCH_WORDS

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_OBJECT: Final = {"type": "object"}
_NUMBERS: Final = frozenset(("queue", "offset", "limit", "from_ms", "to_ms", "after", "queue_id"))


@cache
def openapi() -> dict[str, Any]:
    """The description, as OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "PocketMQ",
            "version": "1",
            "description": "Look into a stand-in broker, and make it do wrong. Names are in snake_case.",
        },
        "paths": _paths(),
        "components": {"schemas": _schemas()},
    }


def _paths() -> dict[str, Any]:
    return {**_cluster_paths(), **_stand_in_paths()}


def _cluster_paths() -> dict[str, Any]:
    """Health, topics, messages and groups."""
    message_body = _properties(
        text=_TEXT,
        body_base64=_TEXT,
        tags=_TEXT,
        keys={"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]},
        properties={"type": "object", "additionalProperties": _TEXT},
        queue_id=_NUMBER,
        delay_level=_NUMBER,
        delay_ms=_NUMBER,
    )
    topic_changes = _properties(queues=_NUMBER, perm=_NUMBER, order={"type": "boolean"})
    topic_body = _properties(name=_TEXT, **topic_changes["properties"])
    return {
        "/healthz": {"get": _action("200 while the server runs")},
        "/readyz": {"get": _action("200 once clients can connect")},
        "/metrics": {"get": _action("Prometheus text", content="text/plain")},
        "/api/topics": {
            "get": _action("Topics", query=("all", "after", "limit"), answer=_list("Topic")),
            "post": _action("Make a topic", body=topic_body, answer=_ref("Topic"), code="201"),
        },
        "/api/topics/{topic}": {
            "get": _action("One topic", path=("topic",), answer=_ref("Topic")),
            "put": _action(
                "Change what is given of a topic", path=("topic",), body=topic_changes, answer=_ref("Topic")
            ),
        },
        "/api/topics/{topic}/messages": {
            "get": _action(
                "Messages, oldest first; looking moves no offset",
                path=("topic",),
                query=LIST_WORDS,
                answer=_list("Message"),
            ),
            "post": _action(
                "Send a message", path=("topic",), body=message_body, answer=_ref("Sent"), code="201"
            ),
        },
        "/api/groups": {"get": _action("Consumer groups", query=("after", "limit"), answer=_list("Group"))},
        "/api/groups/{group}": {"get": _action("One group", path=("group",), answer=_ref("Group"))},
        "/api/groups/{group}/lag": {
            "get": _action("Messages still to read", path=("group",), answer=_ref("Lag"))
        },
        "/api/groups/{group}/queues": {
            "get": _action(
                "Queues with offset, lag and the members that hold them",
                path=("group",),
                answer=_list("GroupQueue"),
            )
        },
        "/api/explain": {
            "get": _action(
                "Where a group starts each queue of a topic, and why",
                query=("group", "topic"),
                answer=_list("FirstPosition"),
            )
        },
    }


def _stand_in_paths() -> dict[str, Any]:
    """Faults, requests, time and state."""
    advance_body = _properties(by={"oneOf": [_TEXT, {"type": "number"}]}, to_next={"type": "boolean"})
    return {
        "/api/faults": {
            "get": _action("Rules with their newest hits", query=("after", "limit"), answer=_list("Fault")),
            "post": _action("Add a rule", body=_ref("Fault"), answer=_ref("Fault"), code="201"),
            "delete": _action("Remove every rule", answer=_list("Fault")),
        },
        "/api/faults/{rule}": {"delete": _action("Remove a rule", path=("rule",), answer=_list("Fault"))},
        "/api/requests": {
            "get": _action(
                "Requests with their replies",
                query=REQUEST_WORDS,
                answer=_list("Request"),
            )
        },
        "/api/requests/stream": {
            "get": _action("The same as they arrive", query=SEARCH_WORDS, content="text/event-stream")
        },
        "/api/clock": {"get": _action("The server's time", answer=_ref("Clock"))},
        "/api/clock/advance": {
            "post": _action("Let virtual time pass", body=advance_body, answer=_ref("Clock"))
        },
        "/api/ledger": {
            "get": _action(
                "What became of the messages: lost, duplicated, out of order; or of one message",
                query=LEDGER_WORDS,
            )
        },
        "/api/reset": {"post": _action("Forget everything since the start")},
        "/api/snapshot": {
            "get": _action("The state, as a file", content="application/octet-stream"),
            "put": _action("Bring a state back", body={"type": "string", "format": "binary"}),
        },
    }


def _action(
    summary: str,
    *,
    path: tuple[str, ...] = (),
    query: tuple[str, ...] = (),
    body: dict[str, Any] | None = None,
    answer: dict[str, Any] | None = None,
    content: str = "application/json",
    code: str = "200",
) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": place, "required": place == "path", "schema": _schema_of(name)}
        for place, names in (("path", path), ("query", query))
        for name in names
    ]
    action: dict[str, Any] = {
        "summary": summary,
        "responses": {
            code: {"description": summary, "content": {content: {"schema": answer or _OBJECT}}},
            "4XX": {"description": "An error", "content": {"application/json": {"schema": _ref("Error")}}},
        },
    }
    if parameters:
        action["parameters"] = parameters
    if body is not None:
        binary = body.get("format") == "binary"
        kind = "application/octet-stream" if binary else "application/json"
        action["requestBody"] = {"content": {kind: {"schema": body}}}
    return action


def _schema_of(name: str) -> dict[str, Any]:
    return dict(_NUMBER if name in _NUMBERS else _TEXT)


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str) -> dict[str, Any]:
    return {"type": "array", "items": _ref(name)}


def _properties(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _schemas() -> dict[str, Any]:
    numbers_by_topic = {"type": "object", "additionalProperties": _NUMBER}
    texts = {"type": "object", "additionalProperties": _TEXT}
    optional_text = {"type": ["string", "null"]}
    optional_number = {"type": ["integer", "null"]}
    return {
        "Error": _properties(error=_TEXT, allowed={"type": "array"}),
        "Topic": _properties(name=_TEXT, queues=_NUMBER, messages=_NUMBER, queue_list={"type": "array"}),
        "Message": _properties(
            topic=_TEXT,
            queue_id=_NUMBER,
            queue_offset=_NUMBER,
            message_id=optional_text,
            tags=optional_text,
            keys={"type": "array", "items": _TEXT},
            properties=texts,
            text=optional_text,
            body_base64=optional_text,
            error=_TEXT,
        ),
        "Sent": _properties(message_id=_TEXT, queue_id=_NUMBER, queue_offset=_NUMBER),
        "Group": _properties(
            name=_TEXT,
            members={"type": "array", "items": _OBJECT},
            subscriptions=texts,
            offsets=_OBJECT,
            lag=_NUMBER,
        ),
        "Lag": _properties(total=_NUMBER, topics=numbers_by_topic),
        "GroupQueue": _properties(
            topic=_TEXT,
            queue_id=_NUMBER,
            held_by={"type": "array", "items": _TEXT},
            offset=optional_number,
            min_offset=_NUMBER,
            max_offset=_NUMBER,
            lag=_NUMBER,
        ),
        "FirstPosition": _properties(
            queue_id=_NUMBER, offset=optional_number, rule=_TEXT, because=_TEXT, answer=optional_number
        ),
        "Fault": _properties(id=_NUMBER, effect=_TEXT, hits={"type": "array", "items": _OBJECT}),
        "Request": _properties(
            id=_NUMBER,
            code=_TEXT,
            topic=optional_text,
            queue_id=optional_number,
            group=optional_text,
            client_id=optional_text,
            fields=texts,
            response=optional_text,
            remark=optional_text,
            reply_fields=texts,
        ),
        "Clock": _properties(virtual={"type": "boolean"}, now_ms=_NUMBER),
    }
