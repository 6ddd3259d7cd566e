"""Load: topics, groups and messages that a server begins with, from a YAML or JSON file or from Python.

    topics:
      orders: 4                                  queues
      returns: {queues: 1, order: true, attributes: {message.type: FIFO}}
    groups: [billing]
    messages:
      - {topic: orders, body: order 17, tags: created, keys: [17, express], queue_id: 0}
      - {topic: orders, body: later, delay_level: 1, properties: {source: test}}

Names are those on the wire. This file reads and checks; `loading.py` brings it to a server. Every error is one line
that names the file and the place.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from pocketmq.client import TopicConfig
from pocketmq.protocol.message.topics import group_refusal, topic_refusal

from ..errors import LoadError
from .yaml_file import read_yaml

MAX_QUEUES: Final = 10_000
_MESSAGE_FIELDS: Final = ("topic", "body", "tags", "keys", "queue_id", "properties", "delay_level")
_TOPIC_FIELDS: Final = ("queues", "order", "attributes")
_PARTS: Final = ("topics", "groups", "messages")
DEFAULT_QUEUES: Final = 4


class LoadedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message to send."""

    topic: str
    body: bytes
    tags: str = ""
    keys: str = ""
    queue_id: int | None = None
    properties: dict[str, str] = {}
    delay_level: int = 0


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What to make, in this order."""

    topics: tuple[TopicConfig, ...] = ()
    groups: tuple[str, ...] = ()
    messages: tuple[LoadedMessage, ...] = ()


LoadSource = str | Path | Mapping[str, Any] | Load
"""A file, or its content, or what was read from one."""
LoadFunction = Callable[[Any], object]
"""A function of `rocketmq`."""


def read_loads(sources: Iterable[LoadSource | LoadFunction]) -> list[Load | LoadFunction]:
    """Read and check everything but the functions. Raises `LoadError`: one line."""
    return [source if callable(source) else read_load(source) for source in sources]


def read_load(source: LoadSource) -> Load:
    """Read and check everything. Raises `LoadError`: one line."""
    if isinstance(source, str | Path):
        content = read_yaml(Path(source), _PARTS)
        try:
            return _load_of(content, str(source))
        except LoadError:
            raise
        except (ValueError, RecursionError) as error:  # what a message cannot show: a number of 5,000 digits
            raise LoadError(f"{source} has a value that is too long or nested too deeply") from error
    if isinstance(source, Load):
        return source
    if isinstance(source, Mapping):
        return _load_of(source, "load")
    raise LoadError(f"load: an element must be a path, a dict or a function of rocketmq, got {source!r}")


def topics_of(topics: object, where: str) -> tuple[TopicConfig, ...]:
    """Topics as a list of names, or as a map from a name to a number of queues or to more."""
    if isinstance(topics, Mapping):
        return tuple(_topic_of(name, content, _in(where, "topics")) for name, content in topics.items())
    return tuple(
        _topic_of(name, DEFAULT_QUEUES, _in(where, "topics"))
        for name in names_of(topics, _in(where, "topics"))
    )


def names_of(values: object, where: str) -> list[str]:
    """A list of different texts."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise LoadError(f"{where} must be a list of names, got {values!r}")
    names: list[str] = []
    for value in values:
        if not isinstance(value, str):
            raise LoadError(f"{where} must be a list of names, got {value!r}")
        if value in names:
            raise LoadError(f"{where}: {value} is named twice")
        names.append(value)
    return names


def groups_of(values: object, where: str) -> tuple[str, ...]:
    """Names of groups."""
    names = names_of(values, _in(where, "groups"))
    for name in names:
        if (refusal := group_refusal(name)) is not None:
            raise LoadError(f"{_in(where, 'groups')}: {refusal}")
    return tuple(names)


def keys_text(keys: object, where: str) -> str:
    """Keys as they travel, with blanks between them, from such a text or from a list of texts and numbers."""
    if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        return _text(keys, where)
    texts = [_text(key, where) for key in keys]
    for text in texts:
        if text.split() != [text]:
            raise LoadError(f"{where}: a key must have characters and no blanks, got {text!r}")
    return " ".join(texts)


# -- inside


def _in(where: str, part: str) -> str:
    return f"{where}: {part}" if where else part


def _load_of(content: Mapping[Any, Any], where: str) -> Load:
    _refuse_others(content, _PARTS, where)
    messages = content.get("messages") or []
    if not isinstance(messages, list | tuple):
        raise LoadError(f"{where}: messages must be a list, got {messages!r}")
    return Load(
        topics=topics_of(content.get("topics") or {}, where),
        groups=groups_of(content.get("groups") or [], where),
        messages=tuple(_message_of(one, f"{where}: message {n}") for n, one in enumerate(messages, 1)),
    )


def _topic_of(name: object, content: object, where: str) -> TopicConfig:
    if not isinstance(name, str):
        raise LoadError(f"{where}: a name must be a text, got {name!r}")
    fields: Mapping[Any, Any] = content if isinstance(content, Mapping) else {"queues": content}
    where = f"{where}: {name}"
    _refuse_others(fields, _TOPIC_FIELDS, where)
    if (refusal := topic_refusal(name, emulate=5)) is not None:
        raise LoadError(f"{where}: {refusal}")
    queues, order = fields.get("queues", DEFAULT_QUEUES), fields.get("order", False)
    if isinstance(queues, bool) or not isinstance(queues, int) or not 1 <= queues <= MAX_QUEUES:
        raise LoadError(f"{where}: queues must be a whole number from 1 to {MAX_QUEUES}, got {queues!r}")
    if not isinstance(order, bool):
        raise LoadError(f"{where}: order must be true or false, got {order!r}")
    attributes = _texts(fields.get("attributes"), f"{where}: attributes")
    return TopicConfig(
        topic_name=name,
        read_queue_nums=queues,
        write_queue_nums=queues,
        order=order,
        attributes={f"+{key}": value for key, value in attributes.items()},
    )


def _message_of(content: object, where: str) -> LoadedMessage:
    if not isinstance(content, Mapping):
        raise LoadError(f"{where} must be a map with {', '.join(_MESSAGE_FIELDS)}, got {content!r}")
    _refuse_others(content, _MESSAGE_FIELDS, where)
    topic, body = content.get("topic"), content.get("body")
    if not isinstance(topic, str) or not topic:
        raise LoadError(f"{where}: topic must be a text, got {topic!r}")
    if not isinstance(body, str | bytes) or not body:
        raise LoadError(f"{where}: body must be a text or bytes that are not empty, got {body!r}")
    return LoadedMessage(
        topic=topic,
        body=body.encode() if isinstance(body, str) else body,
        tags=_text(content.get("tags", ""), f"{where}: tags"),
        keys=keys_text(content.get("keys", ""), f"{where}: keys"),
        queue_id=_number(content.get("queue_id"), f"{where}: queue_id"),
        properties=_texts(content.get("properties"), f"{where}: properties"),
        delay_level=_number(content.get("delay_level"), f"{where}: delay_level") or 0,
    )


def _refuse_others(content: Mapping[Any, Any], allowed: tuple[str, ...], where: str) -> None:
    for key in content:
        if key not in allowed:
            raise LoadError(f"{where}: unknown word {key}, allowed are {', '.join(allowed)}")


def _text(value: object, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise LoadError(f"{where} must be a text, got {value!r}")
    return str(value)


def _texts(value: object, where: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise LoadError(f"{where} must be a map from text to text, got {value!r}")
    return {_text(key, where): _text(content, f"{where}: {key}") for key, content in value.items()}


def _number(value: object, where: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise LoadError(f"{where} must be a whole number from 0 on, got {value!r}")
    return value
