"""What a view shows: stored messages, locks and held pulls, and lists of values.

A message is decoded from the record in the log: the body is decompressed and copied, properties are a map. Members and
first positions are the HTTP port's.
"""

from typing import Any, TypeVar

import msgspec
from pocketmq.console.values import FirstPosition, Member
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.compression import decompress
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record, decode_record


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message as the broker stores it. Times are in ms since 1970; `queue_offset` counts messages in the queue.

    Official class: MessageExt.
    """

    topic: str
    queue_id: int
    queue_offset: int
    body: bytes
    properties: dict[str, str]
    flag: int
    born_timestamp: int
    store_timestamp: int
    reconsume_times: int
    position: int
    """Position in the commit log. Sorting by it gives the order of arrival across queues."""

    @property
    def text(self) -> str:
        """The body as UTF-8 text."""
        return self.body.decode()

    @property
    def tags(self) -> str | None:
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> list[str]:
        """The keys; on the wire, one text with spaces between them."""
        return self.properties.get(names.KEYS, "").split()

    @property
    def message_id(self) -> str | None:
        """The id that its producer gave it (UNIQ_KEY), `msgId` of the official send result."""
        return self.properties.get(names.UNIQ_KEY)


def stored_message(record: memoryview) -> StoredMessage:
    """Decode one record. RecordError or CompressionError for other bytes."""
    return message_of(decode_record(record))


def message_of(decoded: Record) -> StoredMessage:
    return StoredMessage(
        topic=decoded.topic,
        queue_id=decoded.queue_id,
        queue_offset=decoded.queue_offset,
        body=bytes(decompress(decoded.body, decoded.sys_flag)),
        properties=decode_properties(decoded.properties),
        flag=decoded.flag,
        born_timestamp=decoded.born_timestamp,
        store_timestamp=decoded.store_timestamp,
        reconsume_times=decoded.reconsume_times,
        position=decoded.position,
    )


def under_origin_topic(message: StoredMessage) -> StoredMessage:
    """A message of a retry or dead-letter topic under the topic that it was sent to."""
    origin = message.properties.get(names.RETRY_TOPIC)
    return message if origin is None else msgspec.structs.replace(message, topic=origin)


__all__ = ("FirstPosition", "HeldPull", "Listing", "Lock", "Member")

ItemT = TypeVar("ItemT")
QueueEnds = dict[int, tuple[int, int]]
"""Min and max offset by queue id, of the queues that have ever held a message."""


class Lock(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that a member of a group consumes in order; no other member may."""

    group: str
    topic: str
    queue_id: int
    client_id: str


class HeldPull(msgspec.Struct, frozen=True, kw_only=True):
    """A pull that waits at the broker because the queue has no message at `offset` yet."""

    group: str
    topic: str
    queue_id: int
    offset: int


class Listing(list[ItemT]):
    """A list of values. Called with fields, the part that has them: `rocketmq.locks(group="billing")`."""

    def __call__(self, **fields: Any) -> "Listing[ItemT]":
        return Listing(
            item for item in self if all(getattr(item, name) == value for name, value in fields.items())
        )
