"""The message that a client receives, made of a record.

The body is as stored: a compressed one is labelled GZIP, whatever its compression.
Mirrors `GrpcConverter.buildMessage`.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import COMPRESSED
from pocketmq.protocol.message.offset_id import encode_message_id, unpack_host
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.message.topics import is_dlq_topic, is_retry_topic

from ..messages import DigestType, Encoding, Message, MessageType, Resource, SystemProperties, Timestamp
from .message_types import SYSTEM_PROPERTIES, type_of

if TYPE_CHECKING:
    import hashlib

Properties = Mapping[str, str]
"""Of a record, in its order."""

_LONGEST_NUMBER: Final = 18
_MD5, _NORMAL = int(DigestType.MD5), int(MessageType.NORMAL)
_GZIP, _IDENTITY = int(Encoding.GZIP), int(Encoding.IDENTITY)
"""Plain numbers: protobuf takes twice as long for a member of an enumeration."""
_MOST_32: Final = (1 << 31) - 1
_SELDOM: Final = frozenset(
    (
        names.TRAN_MSG,
        names.DELAY,
        names.TIMER_DELIVER_MS,
        names.TIMER_DELAY_SEC,
        names.TIMER_DELAY_MS,
        names.SHARDING_KEY,
        names.TRACE_CONTEXT,
        names.DLQ_ORIGIN_TOPIC,
        names.LITE_TOPIC,
        names.PRIORITY,
    )
)
"""Names of which `_set_seldom_fields` makes something."""


@cache
def _no_md5() -> "hashlib._Hash":
    """Copied, which is cheaper than a new one."""
    import hashlib  # OpenSSL, which a server needs only when it delivers something

    return hashlib.md5(usedforsecurity=False)


def message_id_of(record: Record, properties: Properties) -> str:
    """Of the producer, or the place of the record."""
    return properties.get(names.UNIQ_KEY) or encode_message_id(record.store_host, record.position)


def set_message(
    message: Message,
    record: Record,
    topic: str,
    now_ms: int,
    properties: Properties,
    *,
    message_id: str | None = None,
    receipt_handle: str | None = None,
    reconsume_times: int | None = None,
) -> None:
    """Fill an empty message. `topic` is the one that the client asked for, also if the record is in a retry topic.
    `properties` are those of the record; `message_id` is its id, where it is known."""
    times = record.reconsume_times if reconsume_times is None else reconsume_times
    if "%" in topic:
        _set_topic(message.topic, topic)
    else:
        message.topic.name = topic
    for name, value in properties.items():
        if name not in SYSTEM_PROPERTIES:
            message.user_properties.add(key=name, value=value)
    body = message.body = bytes(record.body)
    system = message.system_properties
    tag, keys = properties.get(names.TAGS), properties.get(names.KEYS)
    if tag is not None:
        system.tag = tag
    if keys is not None:
        system.keys.extend(keys.split(" "))
    system.message_id = message_id or message_id_of(record, properties)
    md5 = _no_md5().copy()
    md5.update(body)
    digest = system.body_digest
    digest.type, digest.checksum = _MD5, md5.hexdigest().upper()
    system.body_encoding = _GZIP if record.sys_flag & COMPRESSED else _IDENTITY
    system.message_type = _NORMAL
    time, ms = system.born_timestamp, record.born_timestamp
    time.seconds, time.nanos = ms // 1000, ms % 1000 * 1_000_000
    system.born_host = properties.get(names.BORN_HOST) or unpack_host(record.born_host)[0]
    time, ms = system.store_timestamp, record.store_timestamp
    time.seconds, time.nanos = ms // 1000, ms % 1000 * 1_000_000
    system.store_host = _store_host(record.store_host)
    if receipt_handle is not None:
        system.receipt_handle = receipt_handle
    system.queue_id = record.queue_id
    system.queue_offset = record.queue_offset
    system.delivery_attempt = times + 1 if times < _MOST_32 else times
    if not _SELDOM.isdisjoint(properties):
        _set_seldom_fields(system, properties, now_ms)


def _set_topic(resource: Resource, topic: str) -> None:
    """A stored topic name: `ns%topic` has the namespace ns."""
    namespace, separator, name = topic.partition("%")
    if not separator or not namespace or is_retry_topic(topic) or is_dlq_topic(topic):
        resource.name = topic
    else:
        resource.resource_namespace, resource.name = namespace, name


def _set_time(time: Timestamp, ms: int) -> None:
    time.seconds, time.nanos = ms // 1000, ms % 1000 * 1_000_000


@lru_cache(1024)
def _store_host(host: bytes) -> str:
    ip, port = unpack_host(host)
    return f"{ip}:{port}"


def _set_seldom_fields(system: SystemProperties, properties: Properties, now_ms: int) -> None:
    """The fields that few messages have."""
    system.message_type = MessageType[type_of(properties)]
    due_ms = _number(properties.get(names.TIMER_DELIVER_MS))
    delay_seconds = _number(properties.get(names.TIMER_DELAY_SEC))
    if due_ms is not None:
        _set_time(system.delivery_timestamp, due_ms)
    elif delay_seconds is not None:
        _set_time(system.delivery_timestamp, now_ms + delay_seconds * 1000)
    texts = (names.SHARDING_KEY, names.TRACE_CONTEXT, names.LITE_TOPIC)
    for field, name in zip(("message_group", "trace_context", "lite_topic"), texts, strict=True):
        if name in properties:
            setattr(system, field, properties[name])
    dead_topic, dead_id = (
        properties.get(names.DLQ_ORIGIN_TOPIC),
        properties.get(names.DLQ_ORIGIN_MESSAGE_ID),
    )
    if dead_topic is not None and dead_id is not None:
        system.dead_letter_queue.topic, system.dead_letter_queue.message_id = dead_topic, dead_id
    priority = _number(properties.get(names.PRIORITY))
    if priority is not None and priority <= _MOST_32:
        system.priority = priority


def _number(text: str | None) -> int | None:
    """A number that is not negative; `None` for any other text."""
    if text is None or len(text) > _LONGEST_NUMBER or not (text.isascii() and text.isdecimal()):
        return None
    return int(text)
