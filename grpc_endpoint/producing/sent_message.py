"""A sent message becomes the properties of its record, unless it is refused: one refusal is one of the whole request.
One message group always gets the same queue, anything else a random one.

Checks and texts are those of the official proxy, in its order. The order of the properties counts where two names share
a bucket of Java's map, see `core/properties.py`: here is the order in which the official proxy adds
them. Mirrors `SendMessageActivity` and `GrpcValidator`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from random import Random
from typing import Final

from pocketmq.broker.config.broker_config import EndpointConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.java_strings import java_hash

from ..calls.handler import PROXY, RpcRefused
from ..conversion.message_types import MIXED, SYSTEM_PROPERTIES
from ..conversion.names import check_lite_topic
from ..messages import Code, Encoding, Message, MessageType, SystemProperties, Timestamp, ms_of

_FIRST_SECOND: Final = -62_135_596_800
_LAST_SECOND: Final = 253_402_300_799
"""What the official protobuf library takes for a timestamp: the years 1 to 9999."""
_TRANSACTION, _GZIP = int(MessageType.TRANSACTION), int(Encoding.GZIP)
"""Plain numbers: a member of an enumeration takes longer to find and to compare."""
_MULTIPLIER: Final = 2_862_933_555_777_941_757
_MASK_64: Final = (1 << 64) - 1
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]").search


def delay_level(wait_ms: int, levels: Mapping[int, int]) -> int:
    """The first level (level -> its delay in ms) that is longer than the wait; the longest if none is."""
    by_delay = sorted(levels, key=lambda level: levels[level])
    return next((level for level in by_delay if levels[level] > wait_ms), by_delay[-1])


def own_properties(message: Message) -> dict[str, str]:
    """What the client added, in its order; of two with one name the last one counts."""
    return {entry.key: entry.value for entry in message.user_properties[:]}


def checked_properties(
    message: Message,
    topic: str,
    peer: str,
    config: EndpointConfig,
    max_message_size: int,
    wall_ms: int,
    levels: Mapping[int, int],
) -> dict[str, str]:
    """The properties of the record, before the broker adds its own. Raises `RpcRefused` for the first check that fails.

    `peer` is the client's `host:port`; `levels` are the broker's delay levels, as for `delay_level`.
    """
    _check_body(message, config, max_message_size)
    system = message.system_properties
    properties = own_properties(message)
    if properties:
        _check_user_properties(properties, config)
    tag, keys, message_id = system.tag, system.keys[:], system.message_id
    if "|" in tag:
        raise RpcRefused(Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'")
    _check_text(tag, Code.ILLEGAL_MESSAGE_TAG, "tag")
    for key in keys:
        _check_text(key, Code.ILLEGAL_MESSAGE_KEY, "key")
    _check_total_size([*properties, *properties.values(), *keys, tag], config)
    if not message_id or message_id.isspace():
        raise RpcRefused(Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty")
    born = system.born_timestamp
    _check_timestamp(born)
    is_timed = system.HasField("delivery_timestamp")
    if is_timed:
        _check_timestamp(system.delivery_timestamp)
    is_half = system.message_type == _TRANSACTION
    if is_half:
        _check_recovery(system, config)
    if is_timed:
        due_ms = ms_of(system.delivery_timestamp)
        _check_delay(due_ms - wall_ms, config)
    group, lite_topic = system.message_group, system.lite_topic
    if group:
        _check_group(group, config)
    if lite_topic:
        check_lite_topic(lite_topic, config.max_lite_topic_size)
    properties[names.TAGS] = tag
    if keys:
        properties[names.KEYS] = " ".join(keys)
    properties[names.UNIQ_KEY] = message_id
    if is_half:
        _add_transaction(properties, system)
    if is_timed:
        if config.use_delay_level:
            properties[names.DELAY] = str(delay_level(due_ms - wall_ms, levels))
        properties[names.TIMER_DELIVER_MS] = str(due_ms)
    if system.HasField("priority"):
        properties[names.PRIORITY] = str(system.priority)
    properties[names.RECONSUME_TIME] = str(system.delivery_attempt)
    properties[names.PGROUP] = topic
    if group:
        properties[names.SHARDING_KEY] = group
    if lite_topic:
        properties[names.LITE_TOPIC] = lite_topic
    if trace_context := system.trace_context:
        properties[names.TRACE_CONTEXT] = trace_context
    properties[names.BORN_HOST] = system.born_host or peer
    properties[names.BORN_TIMESTAMP] = str(ms_of(born))
    return properties


def stored_flag(message: Message, properties: Mapping[str, str]) -> int:
    """The sysFlag of the record of a message with these properties."""
    flag = flags.COMPRESSED if message.system_properties.body_encoding == _GZIP else 0
    return flag | flags.TRANSACTION_PREPARED if names.TRAN_MSG in properties else flag


def _check_body(message: Message, config: EndpointConfig, max_message_size: int) -> None:
    body_bytes = len(message.body)  # each look at the body copies it
    if not body_bytes and config.enable_message_body_empty_check:
        raise RpcRefused(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if body_bytes > max_message_size > 0:
        text = f"message body cannot exceed the max {max_message_size}"
        raise RpcRefused(Code.MESSAGE_BODY_TOO_LARGE, text)


def _check_user_properties(properties: Mapping[str, str], config: EndpointConfig) -> None:
    if len(properties) > config.user_property_max_num:
        text = f"too many user properties, max is {config.user_property_max_num}"
        raise RpcRefused(Code.MESSAGE_PROPERTIES_TOO_LARGE, text)
    for key, value in properties.items():
        if key in SYSTEM_PROPERTIES:
            raise RpcRefused(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, f"property is used by system: {key}")
        if _CONTROL(key) or _CONTROL(value):
            text = f"the {'key' if _CONTROL(key) else 'value'} of property cannot contain control character"
            raise RpcRefused(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, text)


def _check_text(text: str, code: Code, name: str) -> None:
    if text.isspace():
        raise RpcRefused(code, f"{name} cannot be the char sequence of whitespace")
    if _CONTROL(text):
        raise RpcRefused(code, f"{name} cannot contain control character")


def _check_total_size(texts: Iterable[str], config: EndpointConfig) -> None:
    if len("".join(texts).encode("utf-8", "replace")) > config.max_user_property_size:
        text = f"the total size of user property is too large, max is {config.max_user_property_size}"
        raise RpcRefused(Code.MESSAGE_PROPERTIES_TOO_LARGE, text)


def _check_recovery(system: SystemProperties, config: EndpointConfig) -> None:
    longest = config.max_transaction_recovery_second
    if system.orphaned_transaction_recovery_duration.seconds > longest > 0:
        text = f"the max transaction recovery time of message is too large, max is {longest}"
        raise RpcRefused(Code.BAD_REQUEST, text)


def _add_transaction(properties: dict[str, str], system: SystemProperties) -> None:
    properties[names.TRAN_MSG] = "true"
    if system.HasField("orphaned_transaction_recovery_duration"):
        recovery = system.orphaned_transaction_recovery_duration
        properties[names.CHECK_IMMUNITY_TIME_IN_SECONDS] = str(recovery.seconds)


def _check_delay(wait_ms: int, config: EndpointConfig) -> None:
    furthest = config.max_delay_time_mills
    if 0 < furthest < wait_ms:
        text = f"the max delay time of message is too large, max is {furthest}"
        raise RpcRefused(Code.ILLEGAL_DELIVERY_TIME, text)


def _check_timestamp(timestamp: Timestamp) -> None:
    if not _FIRST_SECOND <= timestamp.seconds <= _LAST_SECOND:
        text = f"a timestamp of {timestamp.seconds} seconds is not valid, allowed are the years 1 to 9999"
        raise RpcRefused(Code.INTERNAL_SERVER_ERROR, text)


def _check_group(group: str, config: EndpointConfig) -> None:
    if not group.isspace() and len(group.encode("utf-8", "replace")) >= config.max_message_group_size > 0:
        text = f"message group exceed the max size {config.max_message_group_size}"
        raise RpcRefused(Code.ILLEGAL_MESSAGE_GROUP, text)
    _check_text(group, Code.ILLEGAL_MESSAGE_GROUP, "message group")


def check_type(topic_type: str | None, kind: str, config: EndpointConfig) -> None:
    """Whether a topic of this type takes such a message; `None` is a topic that the broker does not have."""
    expected = topic_type or "UNSPECIFIED"
    if config.enable_topic_message_type_check and expected != kind and expected != MIXED:
        text = f"TopicMessageType validate failed, the expected type is {expected}, but actual type is {kind}"
        raise RpcRefused(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, PROXY + text)


# -- the queue


def queue_of_group(group: str, queues: int) -> int:
    """The queue of a message group among so many, numbered from 0: Guava's consistent hash (jump hash) of Java's string
    hash, as in the official proxy (`SendMessageActivity.SendMessageQueueSelector`)."""
    state = java_hash(group) & _MASK_64
    candidate = 0
    while True:
        state = (state * _MULTIPLIER + 1) & _MASK_64
        draw = ((state >> 33) + 1) / (1 << 31)
        following = int((candidate + 1) / draw)
        if not 0 <= following < queues:
            return candidate
        candidate = following


_of_short_group: Final = lru_cache(maxsize=4096)(queue_of_group)
_LONGEST_CACHED: Final = 256


def chosen_queue(properties: Mapping[str, str], queues: int, random: Random) -> int:
    """The queue among the writable ones of the topic. The queue that the client names does not count."""
    group = properties.get(names.SHARDING_KEY) or properties.get(names.LITE_TOPIC)
    if not group:
        return int(random.random() * queues)
    return (_of_short_group if len(group) <= _LONGEST_CACHED else queue_of_group)(group, queues)
