"""A stored record less its topic, for steps that make a new record of it without decoding its properties.

`Templates` keeps what the new records share beside their texts: the addresses, mostly. The bytes of a record are drawn
in `protocol/message/record.py`. No official class.
"""

import struct
from typing import Final

import msgspec
from pocketmq.protocol.message.flags import HOSTS_IPV6
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import HEADS, MAGIC_V1
from pocketmq.store import MessageStore, NewMessage
from pocketmq.store.lookup.message_template import MessageTemplate

_HEAD: Final = HEADS[0]
_HEAD_BYTES: Final = HEADS[0].size
_SHORT: Final = struct.Struct(">h")
_MOST_TEMPLATES: Final = 64


class RecordParts(msgspec.Struct, gc=False):
    """Fields as in `Record`; body and property text are copies."""

    queue_id: int
    queue_offset: int
    position: int
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_host: bytes
    reconsume_times: int
    body: bytes
    text: bytes


def topic_bytes(topic: str) -> bytes:
    """A topic as it lies in a record, with its length before it."""
    name = topic.encode()
    return bytes((len(name),)) + name


def parts_of(record: memoryview, topic: bytes) -> RecordParts | None:
    """The parts of a record of this topic, given as `topic_bytes`; `None` for another topic, version or IPv6 hosts, and
    for bytes that are no whole record."""
    data = bytes(record)
    if len(data) < _HEAD_BYTES:
        return None
    (
        _,
        magic,
        _,
        queue_id,
        flag,
        queue_offset,
        position,
        sys_flag,
        born_timestamp,
        born_host,
        _,
        store_host,
        reconsume_times,
        _,
        body_bytes,
    ) = _HEAD.unpack_from(data)
    topic_at = _HEAD_BYTES + body_bytes
    text_at = topic_at + len(topic) + 2
    if magic != MAGIC_V1 or sys_flag & HOSTS_IPV6 or body_bytes < 0 or not data.startswith(topic, topic_at):
        return None
    if text_at > len(data) or _SHORT.unpack_from(data, text_at - 2)[0] != len(data) - text_at:
        return None
    return RecordParts(
        queue_id,
        queue_offset,
        position,
        flag,
        sys_flag,
        born_timestamp,
        born_host,
        store_host,
        reconsume_times,
        data[_HEAD_BYTES:topic_at],
        data[text_at:],
    )


class Templates:
    """The store's templates for records made of others, with texts of one form. At most `_MOST_TEMPLATES`."""

    def __init__(self) -> None:
        self._by_fields: dict[tuple[object, ...], MessageTemplate | None] = {}

    def __eq__(self, other: object) -> bool:
        """Plans are compared before they are used: all of this is a memory."""
        return isinstance(other, Templates)

    __hash__ = None  # type: ignore[assignment]

    def find(
        self, store: MessageStore, parts: RecordParts, topic: str, sys_flag: int, text: bytes
    ) -> MessageTemplate | None:
        """The template for a record with these parts, but another topic, sysFlag and text; `None` if it has none."""
        fields = (parts.flag, sys_flag, parts.born_host, parts.store_host, parts.reconsume_times)
        template = self._by_fields.get(fields)
        if template is None and fields not in self._by_fields:
            if len(self._by_fields) >= _MOST_TEMPLATES:
                self._by_fields.clear()
            example = NewMessage(topic, 0, b"", text, decode_properties(text), parts.flag, sys_flag)
            example.born_host, example.store_host = parts.born_host, parts.store_host
            example.reconsume_times = parts.reconsume_times
            template = self._by_fields[fields] = store.template(example, shares_text=False)
        return template
