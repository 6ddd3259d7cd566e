"""Load: topics, groups and messages that a server begins with, from a YAML or JSON file or from Python.

    topics:
      orders: 4                                  queues
      returns: {queues: 1, order: true, attributes: {message.type: FIFO}}
    groups: [billing]
    messages:
      - {topic: orders, body: order 17, tags: created, keys: [17, express], queue_id: 0}
      - {topic: orders, body: later, delay_level: 1, properties: {source: test}}

Names are those on the wire. Everything is read and checked before anything is made; every error is one line that names
the file and the place. `apply_load` then makes topics and groups, known to the name server, and sends the messages
over TCP, in order.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from pocketmq.broker.errors import PeerError, Refusal
from pocketmq.broker.network.connection import Connection
from pocketmq.broker.node import Node
from pocketmq.client import SubscriptionGroupConfig, TopicConfig
from pocketmq.client.clock import wall_ms
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC, group_refusal, retry_topic, topic_refusal
from pocketmq.protocol.requests.send import SendMessageV2

from ..errors import LoadError

_MAX_FILE_BYTES: Final = 64 << 20
_SENDS_AT_ONCE: Final = 200
_TIMEOUT_SECONDS: Final = 10.0
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
        return tuple(topic_of(name, content, _in(where, "topics")) for name, content in topics.items())
    names = names_of(topics, _in(where, "topics"))
    return tuple(topic_of(name, DEFAULT_QUEUES, _in(where, "topics")) for name in names)


def topic_of(name: object, content: object, where: str, *, emulate: Literal[4, 5] = 5) -> TopicConfig:
    """One topic; its content is a number of queues, or a map."""
    if not isinstance(name, str):
        raise LoadError(f"{where}: a name must be a text, got {name!r}")
    fields: Mapping[Any, Any] = content if isinstance(content, Mapping) else {"queues": content}
    where = f"{where}: {name}"
    _refuse_others(fields, _TOPIC_FIELDS, where)
    if (refusal := topic_refusal(name, emulate=emulate)) is not None:
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


# -- bringing it to a server


async def apply_load(node: Node, load: Load) -> None:
    """Make what the load names. Raises `LoadError` if the broker refuses something. On the node's loop."""
    broker = node.broker
    for config in load.topics:
        try:
            broker.topics.update(config)
        except Refusal as refusal:
            raise LoadError(f"load: topic {config.name}: {refusal}") from refusal
    for group in load.groups:
        broker.groups.update(SubscriptionGroupConfig(group_name=group))
        broker.topics.create_if_absent(retry_topic_config(group))
    await broker.cluster.registration.wait_until_sent()
    if not load.messages:
        return
    try:
        connection = await node.server.connect(node.bound_address)
    except PeerError as error:
        raise LoadError(f"load: {error}") from error
    try:
        await _send_all(node, connection, load.messages)
    finally:
        connection.close()


def retry_topic_config(group: str) -> TopicConfig:
    """The retry topic of a new group: a Java client would learn of one that is made later after up to 30 s."""
    return TopicConfig(topic_name=retry_topic(group), read_queue_nums=1, write_queue_nums=1)


async def _send_all(node: Node, connection: Connection, messages: tuple[LoadedMessage, ...]) -> None:
    """Requests of one connection are handled in their order, so many may be under way."""
    turn = itertools.count()
    for begin in range(0, len(messages), _SENDS_AT_ONCE):
        chunk = messages[begin : begin + _SENDS_AT_ONCE]
        answers = await asyncio.gather(
            *(
                connection.call(
                    _request(node, message, next(turn)), message.body, timeout_seconds=_TIMEOUT_SECONDS
                )
                for message in chunk
            ),
            return_exceptions=True,
        )
        for number, (message, answer) in enumerate(zip(chunk, answers, strict=True), begin + 1):
            if isinstance(answer, Refusal | PeerError):
                raise LoadError(
                    f"load: message {number} for {message.topic} was refused: {answer}"
                ) from answer
            if isinstance(answer, BaseException):
                raise answer


def _request(node: Node, message: LoadedMessage, turn: int) -> SendMessageV2:
    config = node.broker.topics.find(message.topic)
    queues = max(DEFAULT_QUEUES if config is None else config.write_queue_nums, 1)
    return send_request(message, "load", turn % queues, node.broker.state.unique_ids.next())


def send_request(message: LoadedMessage, group: str, queue_id: int, unique_id: str) -> SendMessageV2:
    """The request of a producer with this group. The message goes to `queue_id` unless it names a queue itself."""
    delay = str(message.delay_level) if message.delay_level else ""
    given = {names.TAGS: message.tags, names.KEYS: message.keys, names.DELAY: delay}
    properties = {
        **message.properties,
        **{name: value for name, value in given.items() if value},
        names.UNIQ_KEY: unique_id,
        names.WAIT: "true",
    }
    return SendMessageV2(
        producer_group=group,
        topic=message.topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=DEFAULT_QUEUES,
        queue_id=queue_id if message.queue_id is None else message.queue_id,
        sys_flag=0,
        born_timestamp=wall_ms(),
        flag=0,
        properties=encode_properties_text(properties),
        reconsume_times=0,
    )


# -- a YAML file that a person wrote


def read_yaml(path: Path, words: Sequence[str]) -> Mapping[Any, Any]:
    """The map of a YAML or JSON file, which may have these words. `LoadError`, in one line, for a file that cannot be
    read, is no map, or names a word of a map twice."""
    import yaml

    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise LoadError(f"{path} must have at most {_MAX_FILE_BYTES >> 20} MiB")
        content = yaml.load(path.read_bytes(), Loader=_loader())
    except OSError as error:
        raise LoadError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise LoadError(f"{path} is no text: {error}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f", line {mark.line + 1}"
        raise LoadError(f"{path}{line}: {getattr(error, 'problem', None) or 'no YAML'}") from error
    except RecursionError as error:
        raise LoadError(f"{path} is nested too deeply") from error
    except (ValueError, OverflowError) as error:  # a number of 5,000 digits, a date with a month 13
        raise LoadError(
            f"{path} has a value that cannot be read: {str(error).partition(chr(10))[0]}"
        ) from error
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise LoadError(f"{path} must be a map with {', '.join(words)}")
    return content


def _loader() -> Any:
    """A loader that refuses a key that a map names twice; plain YAML takes the last one."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen = set()
            for key_node, _ in node.value:
                if isinstance(key_node, yaml.ScalarNode):
                    if key_node.value in seen:
                        problem = f"{key_node.value} is named twice"
                        raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
                    seen.add(key_node.value)
            return super().construct_mapping(node, deep=deep)

    return Loader
