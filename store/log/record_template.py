"""Records that share all but queue, body, unique id and times: the shared fields are bytes, ready to be packed.

    size | magic | crc | queue | flag | offset | position | sysFlag | born | born host | stored | store host, retries |
    prepared | body length | body | topic and properties before the id | id | properties behind it
                                    or topic | length of the properties and all of them

One call packs a whole record into the map. The drawing with widths is in `protocol/message/record.py`. Ordinary
messages are packed in `record_packing.py`, to the same bytes. Owner: the event-loop thread.
"""

import struct
from collections.abc import Callable
from zlib import crc32

from pocketmq.protocol.message.properties import UNIQ_KEY
from pocketmq.protocol.message.record import FILLER, HEADS, MAX_PROPERTIES_BYTES

from ..accelerated.batch_records import MIDDLE, pack_batch
from ..files.mapped_file import MappedFile
from ..put_values import AlikeBatch, AlikeMessage

LEAST_ID_BYTES = 16
"""Producers make ids of 32 characters, those of gRPC 34, and the broker longer ones for acks of pops."""
TEXT_LENGTH_BYTES = 2
_NAME = f"{UNIQ_KEY}\x01".encode()
_INT = struct.Struct(">i")
_PACK_INT = _INT.pack_into
_HEAD = ">i4sii4sqq4sq8sq12sqi"
_HEAD_BYTES = struct.calcsize(_HEAD)
assert HEADS[0].size == _HEAD_BYTES
_FILLER_BYTES = FILLER.size
_MAX_SHAPES = 2048

Shape = tuple[Callable[..., None], int]
"""(the function that packs a record with a body of one length, bytes of the record)"""


class RecordTemplate:
    """What the records share, as bytes."""

    __slots__ = (
        "_behind_id",
        "_born_host",
        "_flag",
        "_host_and_retries",
        "_id_bytes",
        "_magic",
        "_shape_key",
        "_shapes",
        "_sys_flag",
        "_up_to_id",
        "properties",
        "record_bytes",
    )

    def __init__(
        self,
        shapes: dict[int, Shape],
        *,
        magic: int,
        flag: int,
        sys_flag: int,
        born_host: bytes,
        store_host: bytes,
        reconsume_times: int,
        topic_head: bytes,
        properties: tuple[bytes, int, bytes] | None,
    ) -> None:
        """`shapes` is a memory that all templates share; `properties`: bytes before the id, bytes of the id (0 if
        there is none), bytes behind it; None if the messages share no text: then each has `whole_text` in the place of
        its id. Hosts are packed IPv4 hosts."""
        self.properties = properties
        before_id, self._id_bytes, self._behind_id = properties or (b"", 0, b"")
        self._magic, self._flag, self._sys_flag = _INT.pack(magic), _INT.pack(flag), _INT.pack(sys_flag)
        self._born_host = born_host
        self._host_and_retries = store_host + _INT.pack(reconsume_times)
        property_bytes = len(before_id) + self._id_bytes + len(self._behind_id)
        self._up_to_id = topic_head
        if properties is not None:
            self._up_to_id += property_bytes.to_bytes(TEXT_LENGTH_BYTES, "big") + before_id
        self.record_bytes = _HEAD_BYTES + len(self._up_to_id) + self._id_bytes + len(self._behind_id)
        """Bytes of a record without a body; without the text if that is not shared."""
        self._shapes = shapes
        self._shape_key = (len(self._up_to_id) << 16 | len(self._behind_id)) << 48

    def append(
        self,
        file: MappedFile,
        message: AlikeMessage,
        queue_offset: int,
        store_timestamp: int,
        most_body_bytes: int,
    ) -> int:
        """Write a record behind what the file holds and move the file's end; returns the size of the record, or 0 if
        the body is too large, a value does not fit its field, or the file has no room reserved for the record and a
        filler.

        The length is written last: where the process dies half-way, the log ends before the record.
        """
        queue_id, body, text, born_timestamp, prepared_offset = message
        body_bytes, text_bytes, at = len(body), len(text), file.written
        shape = self._shapes.get(self._shape_key + (text_bytes << 32) + body_bytes)
        pack_record, size = shape or self._shape(body_bytes, text_bytes)
        if (
            at + size + _FILLER_BYTES > file.reserved
            or body_bytes > most_body_bytes
            or (text_bytes != self._id_bytes and self.properties is not None)
        ):
            return 0
        memory = file.memory
        try:
            pack_record(
                memory,
                at,
                0,
                self._magic,
                crc32(body) & 0x7FFFFFFF,
                queue_id,
                self._flag,
                queue_offset,
                file.base + at,
                self._sys_flag,
                born_timestamp,
                self._born_host,
                store_timestamp,
                self._host_and_retries,
                prepared_offset,
                body_bytes,
                body,
                self._up_to_id,
                text,
                self._behind_id,
            )
        except struct.error:
            # A value that no field can hold. What was written behind the end would look like a record one day.
            memory[at : at + size] = bytes(size)
            return 0
        _PACK_INT(memory, at, size)
        file.written = at + size
        return size

    def append_batch(
        self, file: MappedFile, batch: AlikeBatch, queue_offset: int, store_timestamp: int
    ) -> list[int]:
        """Write the records of a batch back to back behind what the file holds, which has room for them, and move the
        file's end; returns the size of each. Raises struct.error for a value that does not fit its field.
        """
        memory, at = file.memory, file.written
        queue_and_flag = _INT.pack(batch.queue_id) + self._flag
        middle = MIDDLE.pack(
            self._sys_flag, batch.born_timestamp, self._born_host, store_timestamp, self._host_and_retries, 0
        )
        bodies = batch.bodies
        try:
            sizes = pack_batch(
                memory,
                at,
                file.base + at,
                queue_offset,
                self._magic,
                queue_and_flag,
                middle,
                self._up_to_id,
                self._behind_id,
                bodies,
                batch.unique_ids,
            )
        except (struct.error, TypeError, ValueError, OverflowError) as error:
            written = sum(map(len, bodies)) + len(bodies) * self.record_bytes
            memory[at : at + written] = bytes(written)
            raise struct.error(str(error)) from error
        file.written = at + sum(sizes)
        return sizes

    def _shape(self, body_bytes: int, text_bytes: int) -> Shape:
        shapes = self._shapes
        if len(shapes) >= _MAX_SHAPES:
            shapes.clear()
        lengths = (body_bytes, len(self._up_to_id), text_bytes, len(self._behind_id))
        record = struct.Struct(_HEAD + "".join([f"{length}s" for length in lengths]))
        shape = record.pack_into, record.size
        shapes[self._shape_key + (text_bytes << 32) + body_bytes] = shape
        return shape


def whole_text(properties: bytes) -> bytes:
    """A property text with its length before it, for a template whose messages share no text. Raises ValueError if it
    is too long for a record."""
    if len(properties) > MAX_PROPERTIES_BYTES:
        raise ValueError(f"properties of {len(properties)} bytes; the limit is {MAX_PROPERTIES_BYTES}")
    return len(properties).to_bytes(TEXT_LENGTH_BYTES, "big") + properties


def around_unique_id(properties: bytes) -> tuple[bytes, int, bytes] | None:
    """The text before the value of UNIQ_KEY, bytes of the value, the text behind it; (all, 0, nothing) without that
    property; None if its value is not at least 16 ASCII characters or cannot be told from other text."""
    count = properties.count(_NAME)
    if not count:
        return properties, 0, b""
    before, _, rest = properties.partition(_NAME)
    unique_id, _, _ = rest.partition(b"\x02")
    if (
        count > 1
        or (before and not before.endswith(b"\x02"))
        or len(unique_id) < LEAST_ID_BYTES
        or not unique_id.isascii()
    ):
        return None
    return before + _NAME, len(unique_id), rest[len(unique_id) :]
