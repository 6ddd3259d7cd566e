"""Messages packed into a log file as records: how many bytes each takes, and the bytes.

One message is a batch of one. The records of a batch lie back to back in one file and are packed from the last to the
first, each with its head last: where the process dies half-way, the place of the first length still holds a zero, so
the log ends before the batch. The layout of a record is drawn in `protocol/message/record.py`. Official class:
MessageExtEncoder.
"""

import struct
import zlib
from collections.abc import Callable, Sequence

from pocketmq.protocol.message.flags import HOSTS_IPV6
from pocketmq.protocol.message.record import (
    CRC_PROPERTY_BYTES,
    HEADS,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES_BYTES,
    MAX_TOPIC_BYTES_V1,
    RecordError,
    crc_property,
    head_for,
    sys_flag_for_hosts,
)
from pocketmq.protocol.message.topics import RETRY_PREFIX

from ..accelerated.batch_records import MIDDLE
from ..accelerated.element_records import Packed, pack_elements
from ..files.mapped_file import MappedFile
from ..put_values import ElementBatch, NewMessage, PutStatus, RefusedError
from .record_template import RecordTemplate, Shape, around_unique_id

_HEAD_V4 = HEADS[0].pack_into
_HEAD_V4_BYTES = HEADS[0].size
_INT = struct.Struct(">i")

_MAX_CACHED_TOPICS = 100_000
_MAX_TOPIC_BYTES = 255

Plan = tuple[list[int], int, int, bytes, int, int, Callable[..., None]]
"""(size of each record, their sum, magic, topic with its length, sysFlag, bytes of a head, the function that packs a
head); a plain tuple, because every message makes one."""


class RecordPacking:
    """Plans and packs records. Caches the bytes of topics. Owner: the event-loop thread."""

    __slots__ = ("_may_write_v2", "_shapes", "_topic_heads", "has_crc")

    def __init__(self, *, may_write_v2: bool, has_crc: bool) -> None:
        """`may_write_v2`: autoMessageVersionOnTopicLen; `has_crc`: enabledAppendPropCRC."""
        self._may_write_v2 = may_write_v2
        self.has_crc = has_crc
        self._topic_heads: dict[str, tuple[int, bytes]] = {}
        self._shapes: dict[int, Shape] = {}

    def template(self, message: NewMessage, *, shares_text: bool) -> RecordTemplate | None:
        """What the record of this message shares with others; None for a record that needs more than filling in.
        Without `shares_text` the others have other property texts."""
        if (
            self.has_crc
            or len(message.born_host) != 8
            or len(message.store_host) != 8
            or message.sys_flag & HOSTS_IPV6
            or len(message.properties) > MAX_PROPERTIES_BYTES
        ):
            return None
        properties = around_unique_id(message.properties)
        try:
            magic, topic_head = self._topic_heads.get(message.topic) or self._topic_head(message.topic)
        except RefusedError:
            return None
        if properties is None:
            return None
        return RecordTemplate(
            self._shapes,
            magic=magic,
            flag=message.flag,
            sys_flag=message.sys_flag,
            born_host=message.born_host,
            store_host=message.store_host,
            reconsume_times=message.reconsume_times,
            topic_head=topic_head,
            properties=properties if shares_text else None,
        )

    def plan(self, messages: Sequence[NewMessage], most_body_bytes: int) -> Plan:
        """How the records of a batch will be packed. Raises RefusedError for a message that no record can hold.

        All messages are for one topic; they may differ in body, properties and flag only.
        """
        first = messages[0]
        topic, sys_flag = first.topic, first.sys_flag
        magic, topic_head = self._topic_heads.get(topic) or self._topic_head(topic)
        head_bytes, pack_head = _HEAD_V4_BYTES, _HEAD_V4
        if len(first.born_host) != 8 or len(first.store_host) != 8 or sys_flag & HOSTS_IPV6:
            try:
                sys_flag = sys_flag_for_hosts(sys_flag, first.born_host, first.store_host)
            except RecordError as error:
                raise RefusedError(PutStatus.MESSAGE_ILLEGAL, str(error)) from error
            head = head_for(sys_flag)
            head_bytes, pack_head = head.size, head.pack_into
        around = head_bytes + len(topic_head) + 2
        sizes, total, has_crc = [], 0, self.has_crc
        for message in messages:
            body_bytes, properties_bytes = len(message.body), len(message.properties)
            if has_crc:
                properties_bytes = len(_with_room_for_crc(message.properties))
            if (
                body_bytes > most_body_bytes
                or properties_bytes > MAX_PROPERTIES_BYTES
                or message.topic != topic
            ):
                raise self._refusal(message, topic, body_bytes, most_body_bytes, properties_bytes)
            size = around + body_bytes + properties_bytes
            sizes.append(size)
            total += size
        return sizes, total, magic, topic_head, sys_flag, head_bytes, pack_head

    @staticmethod
    def _refusal(
        message: NewMessage, topic: str, body_bytes: int, most_body_bytes: int, properties_bytes: int
    ) -> RefusedError:
        if message.topic != topic:
            return RefusedError(PutStatus.MESSAGE_ILLEGAL, f"a batch for {topic} and {message.topic[:99]!r}")
        if properties_bytes > MAX_PROPERTIES_BYTES:
            return RefusedError(
                PutStatus.PROPERTIES_SIZE_EXCEEDED,
                f"properties of {properties_bytes} bytes; the limit is {MAX_PROPERTIES_BYTES}",
            )
        return RefusedError(
            PutStatus.MESSAGE_ILLEGAL, f"body of {body_bytes} bytes; the limit is {most_body_bytes}"
        )

    def pack(
        self,
        file: MappedFile,
        messages: Sequence[NewMessage],
        plan: Plan,
        queue_offset: int,
        store_timestamp: int,
    ) -> None:
        """Write the records behind what the file holds, which has room for them; moves the file's end.

        `queue_offset` is the number of the first.
        """
        sizes, total, magic, topic_head, sys_flag, head_bytes, pack_head = plan
        first = messages[0]
        memory, base, has_crc = file.memory, file.base, self.has_crc
        end = at = file.written + total
        number = len(sizes)
        while number:
            number -= 1
            message, size = messages[number], sizes[number]
            record_end, at = at, at - size
            body, properties = message.body, message.properties
            if has_crc:
                properties = _with_room_for_crc(properties)
            memory[at + head_bytes : record_end] = b"".join(
                (body, topic_head, len(properties).to_bytes(2, "big"), properties)
            )
            pack_head(
                memory,
                at,
                size,
                magic,
                zlib.crc32(body) & 0x7FFFFFFF,
                first.queue_id,
                message.flag,
                queue_offset + number,
                base + at,
                sys_flag,
                first.born_timestamp,
                first.born_host,
                store_timestamp,
                first.store_host,
                first.reconsume_times,
                first.prepared_transaction_offset,
                len(body),
            )
            if has_crc:
                covered = record_end - CRC_PROPERTY_BYTES
                memory[covered:record_end] = crc_property(file.view[at:covered])
        file.written = end

    def pack_elements(
        self,
        file: MappedFile,
        end: int,
        batch: ElementBatch,
        queue_offset: int,
        store_timestamp: int,
        most_body_bytes: int,
        key_starts: tuple[int, int],
    ) -> Packed | None:
        """Write the records of a batch behind what the file holds, not beyond its byte `end`, and move its end.

        `queue_offset` is the number of the first; `key_starts` is for `element_records.py`. None, and nothing
        was written, if `plan` and `pack` must judge the messages.
        """
        if (
            self.has_crc
            or len(batch.born_host) != 8
            or len(batch.store_host) != 8
            or batch.sys_flag & HOSTS_IPV6
            or end < file.written
        ):
            return None
        try:
            magic, topic_head = self._topic_heads.get(batch.topic) or self._topic_head(batch.topic)
            middle = MIDDLE.pack(
                _INT.pack(batch.sys_flag),
                batch.born_timestamp,
                batch.born_host,
                store_timestamp,
                batch.store_host + _INT.pack(batch.reconsume_times),
                0,
            )
            packed = pack_elements(
                file.memory,
                file.written,
                end,
                file.base + file.written,
                queue_offset,
                _INT.pack(magic),
                _INT.pack(batch.queue_id),
                middle,
                topic_head,
                batch.elements,
                most_body_bytes,
                *key_starts,
            )
        except (RefusedError, struct.error):
            return None
        if packed is not None:
            file.written = packed[0][-1] + packed[1][-1] - file.base
        return packed

    def _topic_head(self, topic: str) -> tuple[int, bytes]:
        """Magic, and length plus bytes of a topic; cached, because every message needs them."""
        data = topic.encode()
        if not data or len(data) > (
            _MAX_TOPIC_BYTES if topic.startswith(RETRY_PREFIX) else MAX_TOPIC_BYTES_V1
        ):
            raise RefusedError(PutStatus.MESSAGE_ILLEGAL, f"topic of {len(data)} bytes: {topic!r}")
        if len(topic) > MAX_TOPIC_BYTES_V1 and self._may_write_v2:
            head = MAGIC_V2, len(data).to_bytes(2, "big") + data
        elif len(data) > MAX_TOPIC_BYTES_V1:
            # Few characters, many bytes: V1 by the official rule, whose signed length byte no reader gets right.
            raise RefusedError(PutStatus.MESSAGE_ILLEGAL, f"topic of {len(data)} bytes: {topic!r}")
        else:
            head = MAGIC_V1, len(data).to_bytes(1, "big") + data
        if len(self._topic_heads) >= _MAX_CACHED_TOPICS:
            self._topic_heads.clear()
        self._topic_heads[topic] = head
        return head


def _with_room_for_crc(properties: bytes) -> bytes:
    """Properties closed with a separator, and the bytes that the CRC property will take."""
    if properties and properties[-1] != 2:
        properties += b"\x02"
    return properties + bytes(CRC_PROPERTY_BYTES)
