"""Names that a request is refused for, with the codes and texts of the official proxy (`GrpcValidator`).

Each check returns the name, so that a handler checks and reads it in one step. A request names topics and groups by a
`Resource`; its namespace is not looked at.
"""

import re
from functools import lru_cache
from typing import Final

from pocketmq.broker.tables.topic_table import TopicTable
from pocketmq.protocol.message.topics import MAX_GROUP_LENGTH, MAX_TOPIC_LENGTH, is_system_group

from ..calls.handler import RpcRefused
from ..messages import Code, Resource

MAX_LITE_TOPIC_BYTES: Final = 64
_SHOWN: Final = 1024
"""Characters of a group's name in the refusal; the official proxy repeats all."""
_KNOWN: Final = 1024
"""Legal names that are remembered."""
_LEGAL: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
_LEGAL_LITE: Final = re.compile(r"[a-zA-Z0-9_-]+")
_LEGAL_TEXT: Final = "contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"


def checked_topic(resource: Resource, topics: TopicTable) -> str:
    """The name of a topic that clients may use. Raises `RpcRefused` with ILLEGAL_TOPIC.

    A route repeats namespace and name with every queue, so the namespace may be as long as the name.
    """
    name = _legal_topic(resource.name)
    if len(resource.resource_namespace) > MAX_TOPIC_LENGTH:
        text = f"The specified namespace is longer than topic max length {MAX_TOPIC_LENGTH}."
        raise RpcRefused(Code.ILLEGAL_TOPIC, text)
    if topics.is_system_topic(name):
        raise RpcRefused(Code.ILLEGAL_TOPIC, "cannot access system topic")
    return name


def checked_group(resource: Resource) -> str:
    """The name of a consumer group. Raises `RpcRefused` with ILLEGAL_CONSUMER_GROUP."""
    return _legal_group(resource.name)


@lru_cache(maxsize=_KNOWN)
def _legal_topic(name: str) -> str:
    if not name or name.isspace():
        raise RpcRefused(Code.ILLEGAL_TOPIC, "The specified topic is blank")
    if len(name) > MAX_TOPIC_LENGTH:
        text = f"The specified topic is longer than topic max length {MAX_TOPIC_LENGTH}."
        raise RpcRefused(Code.ILLEGAL_TOPIC, text)
    if _LEGAL.fullmatch(name) is None:
        raise RpcRefused(Code.ILLEGAL_TOPIC, f"The specified topic[{name}] {_LEGAL_TEXT}")
    return name


@lru_cache(maxsize=_KNOWN)
def _legal_group(name: str) -> str:
    if not name or name.isspace():
        raise RpcRefused(Code.ILLEGAL_CONSUMER_GROUP, "the specified group is blank")
    if len(name) > MAX_GROUP_LENGTH:
        shown = name[:_SHOWN]
        text = f"the specified group[{shown}] is longer than group max length: {MAX_GROUP_LENGTH}."
        raise RpcRefused(Code.ILLEGAL_CONSUMER_GROUP, text)
    if _LEGAL.fullmatch(name) is None:
        raise RpcRefused(Code.ILLEGAL_CONSUMER_GROUP, f"the specified group[{name}] {_LEGAL_TEXT}")
    if is_system_group(name):
        raise RpcRefused(Code.ILLEGAL_CONSUMER_GROUP, "cannot use system consumer group")
    return name


def check_lite_topic(name: str, max_bytes: int = MAX_LITE_TOPIC_BYTES) -> None:
    """Raises `RpcRefused` with ILLEGAL_LITE_TOPIC."""
    if not name or name.isspace():
        raise RpcRefused(Code.ILLEGAL_LITE_TOPIC, "lite topic cannot be the char sequence of whitespace")
    if len(name.encode("utf-8", "replace")) > max_bytes:
        raise RpcRefused(Code.ILLEGAL_LITE_TOPIC, f"lite topic exceed the max size {max_bytes}")
    if _LEGAL_LITE.fullmatch(name) is None:
        text = "lite topic can only contain alphanumeric characters, hyphens(-), and underscores(_)"
        raise RpcRefused(Code.ILLEGAL_LITE_TOPIC, text)
