"""What a sent message is refused for, in the order and with the texts of the official proxy.

A refusal is one of the whole request. Mirrors `SendMessageActivity` and `GrpcValidator`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from pocketmq.broker.config.endpoint_config import EndpointConfig

from ..calls.refusals import PROXY, RpcRefused
from ..forms.message_types import MIXED, SYSTEM_PROPERTIES
from ..forms.names import check_lite_topic
from ..forms.sent_message import own_properties
from ..messages import Code, Message, MessageType, Resource, SystemProperties, ms_of

_FIRST_SECOND: Final = -62_135_596_800
_LAST_SECOND: Final = 253_402_300_799
"""What the official protobuf library takes for a timestamp: the years 1 to 9999."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]").search


def check_message(
    message: Message, topic: Resource, config: EndpointConfig, max_message_size: int, wall_ms: int
) -> None:
    """Raises `RpcRefused` for the first check that fails. `topic` is the resource of the request's first message."""
    if message.topic != topic:
        raise RpcRefused(Code.MESSAGE_CORRUPTED, "topic in message is not same")
    body_bytes = len(message.body)  # each look at the body copies it
    if not body_bytes and config.enable_message_body_empty_check:
        raise RpcRefused(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if body_bytes > max_message_size > 0:
        text = f"message body cannot exceed the max {max_message_size}"
        raise RpcRefused(Code.MESSAGE_BODY_TOO_LARGE, text)
    system = message.system_properties
    properties = own_properties(message)
    if properties:
        _check_user_properties(properties, config)
    _check_tag(system.tag)
    _check_keys(system.keys[:])
    _check_total_size(properties, system, config)
    if not system.message_id or system.message_id.isspace():
        raise RpcRefused(Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty")
    _check_times(system, config, wall_ms)
    if system.message_group:
        _check_group(system.message_group, config)
    if system.lite_topic:
        check_lite_topic(system.lite_topic, config.max_lite_topic_size)


def _check_user_properties(properties: Mapping[str, str], config: EndpointConfig) -> None:
    if len(properties) > config.user_property_max_num:
        text = f"too many user properties, max is {config.user_property_max_num}"
        raise RpcRefused(Code.MESSAGE_PROPERTIES_TOO_LARGE, text)
    for key, value in properties.items():
        if key in SYSTEM_PROPERTIES:
            raise RpcRefused(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, f"property is used by system: {key}")
        if _CONTROL(key):
            text = "the key of property cannot contain control character"
            raise RpcRefused(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, text)
        if _CONTROL(value):
            text = "the value of property cannot contain control character"
            raise RpcRefused(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, text)


def _check_tag(tag: str) -> None:
    if not tag:
        return
    if tag.isspace():
        raise RpcRefused(Code.ILLEGAL_MESSAGE_TAG, "tag cannot be the char sequence of whitespace")
    if "|" in tag:
        raise RpcRefused(Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'")
    if _CONTROL(tag):
        raise RpcRefused(Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain control character")


def _check_keys(keys: Iterable[str]) -> None:
    for key in keys:
        if not key:
            continue
        if key.isspace():
            raise RpcRefused(Code.ILLEGAL_MESSAGE_KEY, "key cannot be the char sequence of whitespace")
        if _CONTROL(key):
            raise RpcRefused(Code.ILLEGAL_MESSAGE_KEY, "key cannot contain control character")


def _check_total_size(
    properties: Mapping[str, str], system: SystemProperties, config: EndpointConfig
) -> None:
    texts = [*properties.keys(), *properties.values(), *system.keys[:], system.tag]
    if len("".join(texts).encode("utf-8", "replace")) > config.max_user_property_size:
        text = f"the total size of user property is too large, max is {config.max_user_property_size}"
        raise RpcRefused(Code.MESSAGE_PROPERTIES_TOO_LARGE, text)


def _check_times(system: SystemProperties, config: EndpointConfig, wall_ms: int) -> None:
    for timestamp in (system.born_timestamp, system.delivery_timestamp):
        if not _FIRST_SECOND <= timestamp.seconds <= _LAST_SECOND:
            text = f"a timestamp of {timestamp.seconds} seconds is not valid, allowed are the years 1 to 9999"
            raise RpcRefused(Code.INTERNAL_SERVER_ERROR, text)
    recovery = system.orphaned_transaction_recovery_duration
    longest = config.max_transaction_recovery_second
    if system.message_type == MessageType.TRANSACTION and recovery.seconds > longest > 0:
        text = f"the max transaction recovery time of message is too large, max is {longest}"
        raise RpcRefused(Code.BAD_REQUEST, text)
    furthest = config.max_delay_time_mills
    if 0 < furthest < ms_of(system.delivery_timestamp) - wall_ms:
        text = f"the max delay time of message is too large, max is {furthest}"
        raise RpcRefused(Code.ILLEGAL_DELIVERY_TIME, text)


def _check_group(group: str, config: EndpointConfig) -> None:
    if group.isspace():
        raise RpcRefused(
            Code.ILLEGAL_MESSAGE_GROUP, "message group cannot be the char sequence of whitespace"
        )
    if len(group.encode("utf-8", "replace")) >= config.max_message_group_size > 0:
        text = f"message group exceed the max size {config.max_message_group_size}"
        raise RpcRefused(Code.ILLEGAL_MESSAGE_GROUP, text)
    if _CONTROL(group):
        raise RpcRefused(Code.ILLEGAL_MESSAGE_GROUP, "message group cannot contain control character")


def check_type(topic_type: str | None, kind: MessageType, config: EndpointConfig) -> None:
    """Whether a topic of this type takes such a message; `None` is a topic that the broker does not have."""
    expected = topic_type or "UNSPECIFIED"
    if config.enable_topic_message_type_check and expected not in (MIXED, kind.name):
        text = f"TopicMessageType validate failed, the expected type is {expected}, but actual type is {kind.name}"
        raise RpcRefused(Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE, PROXY + text)
