"""What a group, a topic and a message must be; everything else is refused in the official words, before it is sent.

The broker checks names again, in words of its own (`pocketmq.protocol.message.topics`). 4.9 clients accept groups of up
to 255 characters and any INNER_MULTI_DISPATCH. Official class: Validators.
"""

import functools
import re
from collections.abc import Mapping
from typing import Final

from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.recall_handle import decode_recall_handle
from pocketmq.protocol.message.topics import MAX_GROUP_LENGTH, MAX_TOPIC_LENGTH, is_unsendable_topic
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..errors import InvalidArgument, ValidationFailed

DEFAULT_PRODUCER: Final = "DEFAULT_PRODUCER"
DEFAULT_CONSUMER: Final = "DEFAULT_CONSUMER"
"""Group names that mean "none given"."""

KNOWN_TOPICS: Final = 1024
_LEGAL: Final = re.compile(r"[%|a-zA-Z0-9_-]*")
_LEGAL_TEXT: Final = "contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
_NOT_JAVA_SPACE: Final = frozenset("\x85\xa0\u2007\u202f")
"""White space to Python, but not to Java's Character.isWhitespace."""


def check_group(group: str) -> None:
    """Raises ValidationFailed unless `group` is a legal producer or consumer group."""
    if not isinstance(group, str):
        raise ValidationFailed(f"a group must be text, not {type(group).__name__}")
    if _is_blank(group):
        raise ValidationFailed("the specified group is blank")
    if _java_length(group) > MAX_GROUP_LENGTH:
        raise ValidationFailed(
            f"the specified group[{group}] is longer than group max length: {MAX_GROUP_LENGTH}."
        )
    if _LEGAL.fullmatch(group) is None:
        raise ValidationFailed(f"the specified group[{group}] {_LEGAL_TEXT}")


def check_producer_group(group: str) -> None:
    """As `check_group`, and not the placeholder DEFAULT_PRODUCER."""
    check_group(group)
    if group == DEFAULT_PRODUCER:
        raise ValidationFailed("producerGroup can not equal DEFAULT_PRODUCER, please specify another one.")


def check_consumer_group(group: str) -> None:
    """As `check_group`, and not the placeholder DEFAULT_CONSUMER."""
    check_group(group)
    if group == DEFAULT_CONSUMER:
        raise ValidationFailed("consumerGroup can not equal DEFAULT_CONSUMER, please specify another one.")


def check_topic(topic: str) -> None:
    """Raises ValidationFailed unless `topic` is a legal name."""
    if not isinstance(topic, str):
        raise ValidationFailed(f"a topic must be text, not {type(topic).__name__}")
    if _is_blank(topic):
        raise ValidationFailed("The specified topic is blank")
    if _java_length(topic) > MAX_TOPIC_LENGTH:
        raise ValidationFailed(f"The specified topic is longer than topic max length {MAX_TOPIC_LENGTH}.")
    if _LEGAL.fullmatch(topic) is None:
        raise ValidationFailed(f"The specified topic[{topic}] {_LEGAL_TEXT}")


def check_send_topic(topic: str) -> None:
    """Raises ValidationFailed for topics that clients may not send to (official isNotAllowedSendTopic)."""
    if is_unsendable_topic(topic):
        raise ValidationFailed(f"Sending message to topic[{topic}] is forbidden.")


def check_message(
    topic: str,
    body: bytes | bytearray | memoryview | None,
    *,
    max_message_size: int,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Raises ValidationFailed for a message that cannot be sent; `max_message_size` in bytes of body."""
    if not isinstance(topic, str):
        check_topic(topic)  # not in the table of known topics, which wants a hash
    _check_destination(topic)
    if body is None:
        raise ValidationFailed("the message body is null", ResponseCode.MESSAGE_ILLEGAL)
    if not isinstance(body, bytes | bytearray | memoryview):
        raise ValidationFailed(
            f"the message body must be bytes, not {type(body).__name__}", ResponseCode.MESSAGE_ILLEGAL
        )
    size = body.nbytes if isinstance(body, memoryview) else len(body)
    if size == 0:
        raise ValidationFailed("the message body length is zero", ResponseCode.MESSAGE_ILLEGAL)
    if size > max_message_size:
        raise ValidationFailed(
            f"the message body size over max value, MAX: {max_message_size}", ResponseCode.MESSAGE_ILLEGAL
        )
    queues = properties.get(names.INNER_MULTI_DISPATCH, "") if properties else ""
    if "/" in queues:
        raise ValidationFailed(
            f"{names.INNER_MULTI_DISPATCH} {queues} can not contains / character",
            ResponseCode.MESSAGE_ILLEGAL,
        )


@functools.lru_cache(maxsize=KNOWN_TOPICS)
def _check_destination(topic: str) -> None:
    """Both checks of a topic. Topics that passed are remembered, because a producer sends to the same few."""
    check_topic(topic)
    check_send_topic(topic)


def _is_blank(text: str) -> bool:
    """Java's StringUtils.isBlank."""
    return all(letter.isspace() and letter not in _NOT_JAVA_SPACE for letter in text)


def _java_length(text: str) -> int:
    """Java counts UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def broker_of_recall_handle(handle: str) -> str:
    """The name of the broker that holds the message of a recall handle. Raises InvalidArgument."""
    try:
        return decode_recall_handle(handle).broker_name
    except BodyError as error:
        raise InvalidArgument(str(error)) from None
