"""The message that a client receives, made of a record: the bytes of a `messages.Message`.

    topic | user properties | system properties (id, digest, times, handle, place) | body

No `Message` is built: the fields that most messages share come from caches, as the bytes that the encoder makes of
them; id, digest, times, handle, offset and user properties are put between them. The fields that few messages have are
encoded the ordinary way. The body is as stored: a compressed one is labelled GZIP, whatever its compression. Mirrors
`GrpcConverter.buildMessage`.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import COMPRESSED
from pocketmq.protocol.message.offset_id import encode_message_id, unpack_host
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.message.topics import is_dlq_topic, is_retry_topic

from ..messages import (
    DeadLetterQueue,
    Encoding,
    Message,
    MessageType,
    Resource,
    SystemProperties,
    Timestamp,
)
from ..wire.encoding import encode, sized_field, varint
from .message_types import SYSTEM_PROPERTIES, type_of

if TYPE_CHECKING:
    import hashlib

Properties = Mapping[bytes, bytes]
"""Names and values of a record's text, in its order; all of it is UTF-8."""

_LONGEST_NUMBER: Final = 19
_KEPT: Final = 1024
"""Entries of a cache."""
_KEPT_MOMENTS: Final = 4096
"""A busy broker stores many messages in a millisecond, and a receive takes those of one queue."""

# The tags of the fields that are written here. Of a message:
_USER_PROPERTIES: Final = b"\x12"
_SYSTEM_PROPERTIES: Final = b"\x1a"
_BODY: Final = b"\x22"
# Of its system properties:
_TAG: Final = b"\x0a"
_KEYS: Final = b"\x12"
_MESSAGE_ID: Final = b"\x1a"
_BORN_TIMESTAMP: Final = b"\x3a"
_BORN_HOST: Final = b"\x42"
_STORE_TIMESTAMP: Final = b"\x4a"
_RECEIPT_HANDLE: Final = b"\x62"
_QUEUE_OFFSET: Final = b"\x70"
# Of an entry of a map:
_MAP_KEY: Final = b"\x0a"
_MAP_VALUE: Final = b"\x12"

_OF_SYSTEM: Final = frozenset(name.encode() for name in SYSTEM_PROPERTIES)
_BY_UNIQ_KEY, _BY_TAGS, _BY_KEYS, _BY_BORN_HOST = (
    name.encode() for name in (names.UNIQ_KEY, names.TAGS, names.KEYS, names.BORN_HOST)
)
_SELDOM: Final = frozenset(
    name.encode()
    for name in (
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
"""Names of which `_seldom_fields` makes something."""
_DIGEST_HEAD: Final = b"\x22\x24\x08\x02\x12\x20"
"""The field of a digest, all but its text: type MD5, 32 characters."""


@cache
def _no_md5() -> "hashlib._Hash":
    """Copied, which is cheaper than a new one."""
    import hashlib  # OpenSSL, which a server needs only when it delivers something

    return hashlib.md5(usedforsecurity=False)


def stored_properties(record: Record) -> dict[bytes, bytes]:
    """The properties of a record; what `decode_properties` makes of them, as bytes."""
    text = bytes(record.properties)
    if not text.isascii():
        text = text.decode("utf-8", "replace").encode()
    properties = {}
    for pair in text.split(b"\x02"):
        name, _, value = pair.partition(b"\x01")
        if name and value:
            properties[name] = value
    return properties


def message_id_of(record: Record, properties: Properties) -> bytes:
    """Of the producer, or the place of the record."""
    return properties.get(_BY_UNIQ_KEY) or encode_message_id(record.store_host, record.position).encode()


def tag_of(properties: Properties) -> str | None:
    tag = properties.get(_BY_TAGS)
    return None if tag is None else tag.decode()


def stored_message(
    record: Record,
    topic: str,
    now_ms: int,
    properties: Properties,
    *,
    receipt_handle: bytes = b"",
    reconsume_times: int | None = None,
) -> bytes:
    """`topic` is the one that the client asked for, also if the record is in a retry topic. `properties` are those of
    the record."""
    is_compressed = bool(record.sys_flag & COMPRESSED)
    times = record.reconsume_times if reconsume_times is None else reconsume_times
    kind, delivery, further = MessageType.NORMAL, b"", b""
    if not _SELDOM.isdisjoint(properties):
        kind, delivery, further = _seldom_fields(properties, now_ms)
    message_id = message_id_of(record, properties)
    digest = _no_md5().copy()
    digest.update(record.body)
    system = b"".join(
        (
            _tag_and_keys(properties),
            sized_field(_MESSAGE_ID, message_id),
            _DIGEST_HEAD,
            digest.hexdigest().upper().encode(),
            _encoding_and_type(is_compressed, kind),
            _BORN_TIMESTAMP,
            _moment(record.born_timestamp),
            sized_field(_BORN_HOST, properties.get(_BY_BORN_HOST) or _ip(record.born_host)),
            _STORE_TIMESTAMP,
            _moment(record.store_timestamp),
            _store_host(record.store_host),
            delivery,
            sized_field(_RECEIPT_HANDLE, receipt_handle) if receipt_handle else b"",
            _queue_id(record.queue_id),
            _QUEUE_OFFSET,
            varint(record.queue_offset),
            _attempt(times),
            further,
        )
    )
    own = [_user_property(name, value) for name, value in properties.items() if name not in _OF_SYSTEM]
    body = record.body
    return b"".join(
        (
            _topic(topic),
            *own,
            _SYSTEM_PROPERTIES,
            varint(len(system)),
            system,
            *((_BODY, varint(len(body)), body) if body else ()),
        )
    )


def resource_of(topic: str) -> Resource:
    """A stored topic name: `ns%topic` has the namespace ns."""
    namespace, separator, name = topic.partition("%")
    if not separator or not namespace or is_retry_topic(topic) or is_dlq_topic(topic):
        return Resource(name=topic)
    return Resource(resource_namespace=namespace, name=name)


# -- fields of most messages


@lru_cache(_KEPT)
def _topic(topic: str) -> bytes:
    return encode(Message(topic=resource_of(topic)))


def _user_property(name: bytes, value: bytes) -> bytes:
    return sized_field(_USER_PROPERTIES, sized_field(_MAP_KEY, name) + sized_field(_MAP_VALUE, value))


def _tag_and_keys(properties: Properties) -> bytes:
    tag, keys = properties.get(_BY_TAGS), properties.get(_BY_KEYS)
    found = b"" if tag is None else sized_field(_TAG, tag)
    return found if keys is None else found + b"".join([sized_field(_KEYS, key) for key in keys.split(b" ")])


@lru_cache(_KEPT)
def _encoding_and_type(is_compressed: bool, kind: MessageType) -> bytes:
    encoding = Encoding.GZIP if is_compressed else Encoding.IDENTITY
    return encode(SystemProperties(body_encoding=encoding, message_type=kind))


@lru_cache(_KEPT_MOMENTS)
def _moment(ms: int) -> bytes:
    """A `Timestamp` with its length."""
    seconds, rest_ms = divmod(ms, 1000)
    data = _seconds(seconds) + _milliseconds(rest_ms)
    return varint(len(data)) + data


@lru_cache(_KEPT)
def _seconds(seconds: int) -> bytes:
    return encode(Timestamp(seconds=seconds))


@lru_cache(1000)
def _milliseconds(ms: int) -> bytes:
    return encode(Timestamp.of_ms(ms))


@lru_cache(_KEPT)
def _ip(host: bytes) -> bytes:
    return unpack_host(host)[0].encode()


@lru_cache(_KEPT)
def _store_host(host: bytes) -> bytes:
    ip, port = unpack_host(host)
    return encode(SystemProperties(store_host=f"{ip}:{port}"))


@lru_cache(_KEPT)
def _queue_id(queue_id: int) -> bytes:
    return encode(SystemProperties(queue_id=queue_id))


@lru_cache(_KEPT)
def _attempt(reconsume_times: int) -> bytes:
    return encode(SystemProperties(delivery_attempt=reconsume_times + 1))


# -- fields of few messages


def _seldom_fields(properties: Properties, now_ms: int) -> tuple[MessageType, bytes, bytes]:
    """The type, the time of the delivery, and the fields behind the number of the attempt."""
    of = {name.decode(): value.decode() for name, value in properties.items()}
    further = SystemProperties(
        message_group=of.get(names.SHARDING_KEY),
        trace_context=of.get(names.TRACE_CONTEXT),
        dead_letter_queue=_dead_letter_queue(of),
        lite_topic=of.get(names.LITE_TOPIC),
        priority=_number(of.get(names.PRIORITY)),
    )
    return type_of(of), encode(SystemProperties(delivery_timestamp=_delivery(of, now_ms))), encode(further)


def _delivery(properties: Mapping[str, str], now_ms: int) -> Timestamp | None:
    """When a timed message was due."""
    due_ms = _number(properties.get(names.TIMER_DELIVER_MS))
    if due_ms is not None:
        return Timestamp.of_ms(due_ms)
    delay_seconds = _number(properties.get(names.TIMER_DELAY_SEC))
    return None if delay_seconds is None else Timestamp.of_ms(now_ms + delay_seconds * 1000)


def _dead_letter_queue(properties: Mapping[str, str]) -> DeadLetterQueue | None:
    topic, message_id = properties.get(names.DLQ_ORIGIN_TOPIC), properties.get(names.DLQ_ORIGIN_MESSAGE_ID)
    return (
        None if topic is None or message_id is None else DeadLetterQueue(topic=topic, message_id=message_id)
    )


def _number(text: str | None) -> int | None:
    """A number that is not negative; `None` for any other text."""
    if text is None or len(text) > _LONGEST_NUMBER or not (text.isascii() and text.isdecimal()):
        return None
    return int(text)
