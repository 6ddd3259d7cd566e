"""Messages become records in a log file; what queues and index need of them is listed on the way.

message   head (what it shares with others), queue id, body, property text, born timestamp, prepared offset
record    drawn in `protocol/message/record.py`; a batch (`protocol/message/batch.py`) becomes one for each element
entry     20 bytes for the queue: position, size, tags code
key       12 bytes for the index: hash, position
"""

import mmap
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple
from zlib import crc32

from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.batch import BatchElement, decode_batch
from pocketmq.protocol.message.java_strings import extend_hash, java_hash
from pocketmq.protocol.message.properties import KEYS, TAGS, UNIQ_KEY, decode_properties
from pocketmq.protocol.message.record import MAX_PROPERTIES_BYTES

from . import choice


class Head(NamedTuple):
    """What records share. Hosts are packed: IP (4 or 16 bytes), then port (int32)."""

    constants: bytes
    """magic, flag and sysFlag."""
    born_host: bytes
    store_host: bytes
    """With reconsumeTimes behind it."""
    topic_bytes: bytes
    """With their length before them."""
    keys_start: int
    """Java's hash of the text before a key in the index; below 0 nothing is indexed."""
    tags_start: int
    """The same before tags."""
    topic: str
    is_in_queue: bool
    """Prepared and rollback records are in no queue and take no number. (This and the topic are for the store.)"""


Message = tuple[Head, int, bytes | memoryview, bytes | None, int, int, int | None]
"""(head, queue id, body, property text, born timestamp ms, preparedTransactionOffset, tags code unless it is the hash
of the tags); a plain tuple, because every send makes one. The property text is None for a batch: its elements are the
body, and their flags replace the head's."""

Packed = tuple[int, int, list[int], bytes, bytes]
"""(how many messages were packed, a `Stop`, the size of each record, their queue entries, their index keys)"""

ENTRY_BYTES: Final = 20
KEY_BYTES: Final = 12
KEY: Final = struct.Struct(">Iq")
_ENTRY: Final = struct.Struct(">qiq")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_MAX_POSITION: Final = (1 << 63) - 1
_FIXED_BYTES: Final = 68
"""Of a record up to its body, without hosts and reconsumeTimes."""
_FRONT: Final = struct.Struct(">4sii4sqq4sq")
assert _ENTRY.size == ENTRY_BYTES
assert KEY.size == KEY_BYTES


class Stop(IntEnum):
    """Why the next message was not packed."""

    NO_MORE = 0
    NO_ROOM = 1
    BODY_TOO_LONG = 2
    TEXT_TOO_LONG = 3
    UNREADABLE = 4
    """A batch without elements, or one that leads beyond its end."""
    NOT_UTF8 = 5
    """Only in C: keys or tags have bytes that become U+FFFD before they are hashed."""


def pack_records(
    memory: mmap.mmap | bytearray | memoryview,
    at: int,
    end: int,
    base: int,
    store_timestamp: int,
    most_body_bytes: int,
    messages: list[Message],
    queue_offsets: list[int],
) -> Packed:
    """Write the records of messages back to back from byte `at` of a log file on, not beyond byte `end`.

    `base` is the log position of the file's first byte, `queue_offsets` has the number that each message, or the
    first one of each batch, gets in its queue. Stops before the first message that cannot be packed; of a batch all are
    or none. Of each message the first length is written last: where the process dies half-way, the log ends before it.
    Raises ValueError, TypeError or struct.error for arguments of another form.
    """
    if (
        not 0 <= at <= end <= len(memory)
        or not 0 <= base <= _MAX_POSITION - len(memory)
        or len(messages) != len(queue_offsets)
    ):
        raise ValueError("the file has no such bytes, or there are not as many offsets as messages")
    sizes: list[int] = []
    entries, keys = bytearray(), bytearray()
    for done, (message, queue_offset) in enumerate(zip(messages, queue_offsets, strict=True)):
        head, queue_id, body, text, born_timestamp, prepared_offset, code = message
        constants, born_host, store_host, topic, keys_start, tags_start, *_ = head
        try:
            elements = (
                decode_batch(body)
                if text is None
                else [BatchElement(_INT.unpack_from(constants, 4)[0], body, text)]
            )
        except BodyError:
            elements = []
        around = _FIXED_BYTES + len(born_host) + len(store_host) + len(topic) + 2
        stop = _judge(elements, around, end - at, most_body_bytes)
        if stop is not Stop.NO_MORE:
            return done, stop, sizes, bytes(entries), bytes(keys)
        records = bytearray()
        for number, element in enumerate(elements):
            size = around + len(element.body) + len(element.properties)
            position = base + at + len(records)
            records += _INT.pack(size) + _FRONT.pack(
                constants[:4],
                crc32(element.body) & 0x7FFFFFFF,
                queue_id,
                _INT.pack(element.flag),
                queue_offset + number,
                position,
                constants[8:],
                born_timestamp,
            )
            records += born_host + _LONG.pack(store_timestamp) + store_host
            records += struct.pack(">qi", prepared_offset, len(element.body))
            records += element.body
            records += topic + len(element.properties).to_bytes(2, "big") + element.properties
            tags_code, hashes = _code_and_hashes(bytes(element.properties), keys_start, tags_start)
            entries += _ENTRY.pack(position, size, tags_code if code is None else code)
            for key_hash in hashes:
                keys += KEY.pack(key_hash, position)
            sizes.append(size)
        memory[at : at + 4] = bytes(4)
        memory[at + 4 : at + len(records)] = records[4:]
        memory[at : at + 4] = records[:4]
        at += len(records)
    return len(messages), Stop.NO_MORE, sizes, bytes(entries), bytes(keys)


def _judge(elements: Sequence[BatchElement], around: int, room: int, most_body_bytes: int) -> Stop:
    """Whether the records of a message can be packed."""
    if not elements:
        return Stop.UNREADABLE
    for element in elements:
        if len(element.body) > most_body_bytes:
            return Stop.BODY_TOO_LONG
        if len(element.properties) > MAX_PROPERTIES_BYTES:
            return Stop.TEXT_TOO_LONG
        room -= around + len(element.body) + len(element.properties)
        if room < 0:
            return Stop.NO_ROOM
    return Stop.NO_MORE


def _code_and_hashes(text: bytes, keys_start: int, tags_start: int) -> tuple[int, list[int]]:
    """The tags code of a message with this property text, and the hashes of its keys."""
    properties = decode_properties(text)
    unique_key, keys, tags = (properties.get(name, "") for name in (UNIQ_KEY, KEYS, TAGS))
    code = java_hash(tags)
    if keys_start < 0:
        return code, []
    texts = [(keys_start, key) for key in (unique_key, *keys.split(" ")) if key]
    if tags and tags_start >= 0:
        texts.append((tags_start, tags))
    values = [extend_hash(start, key) for start, key in texts]
    return code, [value if value < 0x80000000 else (0x1_0000_0000 - value) & 0x7FFFFFFF for value in values]


def record_bytes(message: Message) -> int:
    """How many bytes the records of a message take; 0 for a batch that cannot be read."""
    (_, born_host, store_host, topic, *_), _, body, text, *_ = message
    around = _FIXED_BYTES + len(born_host) + len(store_host) + len(topic) + 2
    if text is not None:
        return around + len(body) + len(text)
    try:
        return sum(around + len(element.body) + len(element.properties) for element in decode_batch(body))
    except BodyError:
        return 0


def record_count(message: Message) -> int:
    """How many records a message becomes; 0 for a batch that cannot be read."""
    try:
        return 1 if message[3] is not None else len(decode_batch(message[2]))
    except BodyError:
        return 0


pack_in_python = pack_records
pack_records = choice.chosen(pack_records)
