"""Adds the namespace to names and removes it (`namespace`, deprecated in favour of `namespace_v2`).

    Orders          N%Orders                  a topic or group
    %RETRY%g        %RETRY%N%g                dead letters alike
    RMQ_SYS_...     as it is                  what belongs to the brokers has no namespace

Inside the client, topics and groups carry the namespace; listeners, selectors and results see them without it. Pure.
Mirrors `NamespaceUtil`, and `NameServerAddressUtils` for a namespace in an endpoint.
"""

import re
from typing import Final

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    is_dlq_topic,
    is_retry_topic,
    is_system_group,
    is_system_topic,
)

SEPARATOR: Final = "%"
_INSTANCE_ENDPOINT: Final = re.compile(r"(?:\w+://|)(MQ_INST_\w+_\w+)\..*", re.ASCII)


class Namespace:
    """One namespace, or none: then every name stays as it is."""

    __slots__ = ("name",)

    def __init__(self, name: str | None) -> None:
        self.name = name or ""

    def wrap(self, resource: str) -> str:
        """A topic or group as brokers know it; wrapped names and those of the system stay as they are."""
        if not self.name or not resource or _is_system(resource) or self._is_wrapped(resource):
            return resource
        prefix, plain = _split(resource)
        return f"{prefix}{self.name}{SEPARATOR}{plain}"

    def unwrap(self, resource: str) -> str:
        """A topic or group as its user knows it; names of other namespaces stay as they are."""
        if not self.name or _is_system(resource) or not self._is_wrapped(resource):
            return resource
        prefix, plain = _split(resource)
        return prefix + plain[len(self.name) + 1 :]

    def wrap_queue(self, queue: MessageQueue) -> MessageQueue:
        """As `wrap`, for a queue's topic."""
        if not self.name:
            return queue
        return MessageQueue(self.wrap(queue.topic), queue.broker_name, queue.queue_id)

    def unwrap_queue(self, queue: MessageQueue) -> MessageQueue:
        """As `unwrap`, for a queue's topic."""
        if not self.name:
            return queue
        return MessageQueue(self.unwrap(queue.topic), queue.broker_name, queue.queue_id)

    def _is_wrapped(self, resource: str) -> bool:
        return _split(resource)[1].startswith(self.name + SEPARATOR)


def without_namespace(resource: str) -> str:
    """A name without its namespace, whichever it is, as in traces."""
    if not resource or _is_system(resource):
        return resource
    prefix, plain = _split(resource)
    namespace, found, rest = plain.partition(SEPARATOR)
    return prefix + rest if found and namespace else resource


def namespace_of_endpoint(namesrv_addr: str | None) -> str | None:
    """`MQ_INST_x_y` of `http://MQ_INST_x_y.host:port`; None for every other address."""
    found = _INSTANCE_ENDPOINT.fullmatch(namesrv_addr or "")
    return None if found is None else found[1]


def _split(resource: str) -> tuple[str, str]:
    if is_retry_topic(resource):
        return RETRY_PREFIX, resource[len(RETRY_PREFIX) :]
    if is_dlq_topic(resource):
        return DLQ_PREFIX, resource[len(DLQ_PREFIX) :]
    return "", resource


def _is_system(resource: str) -> bool:
    return is_system_topic(resource) or is_system_group(resource)
