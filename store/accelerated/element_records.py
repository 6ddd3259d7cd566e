"""The records of a batch whose messages differ in anything, with what the queue and the index need of each.

The body of the batch is drawn in `protocol/message/batch.py`.
"""

import mmap
import struct
from zlib import crc32

from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.batch import decode_batch
from pocketmq.protocol.message.java_strings import extend_hash, java_hash
from pocketmq.protocol.message.properties import KEYS, TAGS, UNIQ_KEY, decode_properties

from .batch_records import MIDDLE
from .choice import chosen

_HEAD = struct.Struct(f">4si4siqq{MIDDLE.size}si")
"""The head of a record behind its length."""
_INT = struct.Struct(">i")
_UNIT = struct.Struct(">qiq")
"""A unit of a queue; it is drawn in `lookup/queue_unit.py`."""

Packed = tuple[list[int], list[int], bytes, list[int], list[int]]
"""(position of each record, size of each, their units of the queue, hashes of all keys, for each hash the position of
its record)"""


def pack_elements(
    memory: mmap.mmap | bytearray,
    at: int,
    end: int,
    position: int,
    queue_offset: int,
    magic: bytes,
    queue_id: bytes,
    middle: bytes,
    topic: bytes,
    elements: bytes | memoryview,
    most_body_bytes: int,
    keys_start: int,
    tags_start: int,
) -> Packed | None:
    """Write the records of all elements back to back from byte `at` of a log file on, which has room up to `end`.

    `position` is that of the first record in the log, `queue_offset` that of the first in its queue; `middle` is packed
    by `batch_records.MIDDLE`, and `topic` has its length before it. `keys_start` is Java's hash of the text before a
    key in the index, `tags_start` of that before tags; below 0 nothing, or no tag, is indexed. The first length is
    written last: where the process dies half-way, the log ends before the batch.

    None, and nothing was written: there is no element, one cannot be read or has too long a body, the records need more
    room, or a key or tag is not UTF-8. Raises ValueError, struct.error or IndexError for a head that does not fit.
    """
    if (len(magic), len(queue_id), len(middle)) != (4, 4, MIDDLE.size) or not 0 <= at <= end <= len(memory):
        raise ValueError("a piece of the record's head has another length, or the file has no such bytes")
    positions: list[int] = []
    sizes: list[int] = []
    hashes: list[int] = []
    places: list[int] = []
    units: list[bytes] = []
    records: list[bytes] = []
    try:
        for number, element in enumerate(decode_batch(elements)):
            body, text = element.body, bytes(element.properties)
            head = _HEAD.pack(
                magic,
                crc32(body) & 0x7FFFFFFF,
                queue_id,
                element.flag,
                queue_offset + number,
                position,
                middle,
                len(body),
            )
            record = b"".join((head, body, topic, len(text).to_bytes(2, "big"), text))
            size = 4 + len(record)
            code, keys = _code_and_hashes(text, keys_start, tags_start)
            if len(body) > most_body_bytes:
                return None
            records += (_INT.pack(size), record)
            positions.append(position)
            sizes.append(size)
            units.append(_UNIT.pack(position, size, code))
            hashes += keys
            places += [position] * len(keys)
            position += size
    except (BodyError, UnicodeError):
        return None
    if not sizes or sum(sizes) > end - at:
        return None
    first_length, records[0] = records[0], bytes(4)
    memory[at : at + sum(sizes)] = b"".join(records)
    memory[at : at + 4] = first_length
    return positions, sizes, b"".join(units), hashes, places


def _code_and_hashes(text: bytes, keys_start: int, tags_start: int) -> tuple[int, list[int]]:
    """The tags code of a message with this property text, and the hashes of its keys. Raises UnicodeError for a value
    that is not UTF-8."""
    properties = decode_properties(text.decode("utf-8", "surrogateescape"))
    unique_key, keys, tags = (properties.get(name, "") for name in (UNIQ_KEY, KEYS, TAGS))
    code = java_hash(tags.encode().decode())
    if keys_start < 0:
        return code, []
    texts = [(keys_start, key) for key in (unique_key, *keys.split(" ")) if key]
    if tags and tags_start >= 0:
        texts.append((tags_start, tags))
    values = [extend_hash(start, key.encode().decode()) for start, key in texts]
    return code, [value if value < 0x80000000 else (0x1_0000_0000 - value) & 0x7FFFFFFF for value in values]


pack_elements = chosen(pack_elements)
