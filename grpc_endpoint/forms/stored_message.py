"""The message that a client receives, made of a record.

The body is as stored: a compressed one is labelled GZIP, whatever its compression. Mirrors
`GrpcConverter.buildMessage`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import COMPRESSED
from pocketmq.protocol.message.offset_id import encode_message_id, unpack_host
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.message.topics import is_dlq_topic, is_retry_topic

from ..messages import (
    DeadLetterQueue,
    Digest,
    DigestType,
    Encoding,
    Message,
    Resource,
    SystemProperties,
    Timestamp,
)
from .message_types import SYSTEM_PROPERTIES, type_of

_LONGEST_NUMBER: Final = 19


def resource_of(topic: str) -> Resource:
    """A stored topic name: `ns%topic` has the namespace ns."""
    namespace, separator, name = topic.partition("%")
    if not separator or not namespace or is_retry_topic(topic) or is_dlq_topic(topic):
        return Resource(name=topic)
    return Resource(resource_namespace=namespace, name=name)


def stored_message(
    record: Record,
    topic: str,
    now_ms: int,
    *,
    properties: Mapping[str, str] | None = None,
    receipt_handle: str | None = None,
    reconsume_times: int | None = None,
) -> Message:
    """`topic` is the one that the client asked for, also if the record is in a retry topic. `properties` are those of
    the record, if the caller has decoded them already."""
    if properties is None:
        properties = decode_properties(record.properties)
    body = bytes(record.body)
    times = record.reconsume_times if reconsume_times is None else reconsume_times
    return Message(
        topic=resource_of(topic),
        user_properties={name: value for name, value in properties.items() if name not in SYSTEM_PROPERTIES},
        system_properties=SystemProperties(
            tag=properties.get(names.TAGS),
            keys=_keys(properties),
            message_id=properties.get(names.UNIQ_KEY)
            or encode_message_id(record.store_host, record.position),
            body_digest=Digest(
                type=DigestType.MD5, checksum=hashlib.md5(body, usedforsecurity=False).hexdigest().upper()
            ),
            body_encoding=Encoding.GZIP if record.sys_flag & COMPRESSED else Encoding.IDENTITY,
            message_type=type_of(properties),
            born_timestamp=Timestamp.of_ms(record.born_timestamp),
            born_host=properties.get(names.BORN_HOST) or _ip(record.born_host),
            store_timestamp=Timestamp.of_ms(record.store_timestamp),
            store_host=_address(record.store_host),
            delivery_timestamp=_delivery(properties, now_ms),
            receipt_handle=receipt_handle,
            queue_id=record.queue_id,
            queue_offset=record.queue_offset,
            delivery_attempt=times + 1,
            message_group=properties.get(names.SHARDING_KEY),
            trace_context=properties.get(names.TRACE_CONTEXT),
            dead_letter_queue=_dead_letter_queue(properties),
            lite_topic=properties.get(names.LITE_TOPIC),
            priority=_number(properties.get(names.PRIORITY)),
        ),
        body=body,
    )


def _keys(properties: Mapping[str, str]) -> Sequence[str]:
    keys = properties.get(names.KEYS)
    return () if keys is None else keys.split(" ")


@lru_cache(maxsize=1024)
def _address(host: bytes) -> str:
    ip, port = unpack_host(host)
    return f"{ip}:{port}"


@lru_cache(maxsize=1024)
def _ip(host: bytes) -> str:
    return unpack_host(host)[0]


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
