"""Messages become records in a log file; what queues and index need of them is listed on the way.

message   head (what it shares with others), queue id, body, property text, born timestamp, prepared offset
record    drawn in `protocol/message/record.py`; a batch (`protocol/message/batch.py`) becomes one for each element
entry     20 bytes for the queue: position, size, tags code
key       12 bytes for the index: hash, position
"""

import mmap
import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple, Protocol
from zlib import crc32

from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.batch import BatchElement, decode_batch
from pocketmq.protocol.message.properties import (
    DELAY,
    KEYS,
    TAGS,
    UNIQ_KEY,
    decode_properties,
    tags_code,
)
from pocketmq.protocol.message.record import MAX_PROPERTIES_BYTES

from . import choice
from .key_hash import key_hash


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
    is_queued: bool
    """Prepared and rollback records are in no queue and take no number."""
    delays_ms: tuple[int, ...] = ()
    """Of the levels from 1 on, for messages of the schedule topic: their tags code is the time when they are due."""


Message = tuple[Head, int, bytes | memoryview, bytes | None, int, int, int | None]
"""(head, queue id, body, property text, born timestamp ms, preparedTransactionOffset, tags code unless it is the hash
of the tags); a plain tuple, because every send makes one. The property text is None for a batch: its elements are the
body, and their flags replace the head's."""


class Queue(Protocol):
    """A queue that counts what is added to it."""

    next_offset: int
    """The number of the next message."""


Run = tuple[Any, int, int]
"""(queue of a message or of the messages of a batch, number of the first in it, how many); no queue for half messages
and rollbacks, which take no number."""

Added = tuple[Any, int, bytes, int, int]
"""(queue, number of the first message, queue entries, log positions of the first record and behind the last one)"""

Packed = tuple[int, list[Run], list[int], list[int], bytes, bytes, list[bytes | None], list[Added]]
"""(a `Stop`, a run for each message that was packed, positions and sizes of their records, all queue entries, all index
keys, property text of each message, what is added to each queue)"""

ENTRY_BYTES: Final = 20
KEY_BYTES: Final = 12
KEY: Final = struct.Struct(">Iq")
_ENTRY: Final = struct.Struct(">qiq")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_MAX_POSITION: Final = (1 << 63) - 1
_MAX_LEVEL_DIGITS: Final = 10
_FIXED_BYTES: Final = 68
"""Of a record up to its body, without hosts and reconsumeTimes."""
_FRONT: Final = struct.Struct(">4sii4sqq4sq")
MOST_ODD: Final = 1000
"""A batch with more messages has properties in UTF-8: any other is packed in Python, which takes longer."""
assert _ENTRY.size == ENTRY_BYTES
assert KEY.size == KEY_BYTES


class Stop(IntEnum):
    """Why the next message was not packed."""

    NO_MORE = 0
    NO_ROOM = 1
    BODY_TOO_LONG = 2
    TEXT_TOO_LONG = 3
    UNREADABLE = 4
    """A batch without elements, one that leads beyond its end, or one of the schedule topic."""
    NOT_UTF8 = 5
    """Keys or tags have bytes that become U+FFFD before they are hashed, or a level has some; in Python, which hashes
    them, only those of a batch of more than `MOST_ODD` messages."""
    NO_QUEUE = 6


def pack_records(
    memory: mmap.mmap | bytearray | memoryview,
    at: int,
    end: int,
    base: int,
    store_timestamp: int,
    max_body_bytes: int,
    messages: list[Message],
    topics: Mapping[str, Mapping[int, Queue]],
) -> Packed:
    """Write the records of messages back to back from byte `at` of a log file on, not beyond byte `end`, and give them
    their numbers in the queues of `topics`, by topic and queue id.

    `base` is the log position of the file's first byte. Stops before the first message that cannot be packed; of a
    batch all are or none. Of each message the first length is written last: where the process dies half-way, the log
    ends before it. Raises ValueError, TypeError or struct.error for arguments of another form.
    """
    if not 0 <= at <= end <= len(memory) or not 0 <= base <= _MAX_POSITION - len(memory):
        raise ValueError("the file has no such bytes")
    runs: list[Run] = []
    records: list[_Record] = []
    texts: list[bytes | None] = []
    stop = Stop.NO_MORE
    for message in messages:
        head, queue_id, body, text, *_ = message
        try:
            elements = [_element_of(message)] if text is not None else decode_batch(body)
        except BodyError:
            elements = []
        if text is None and head.delays_ms:
            elements = []  # each of its messages would need a delivery time of its own
        stop = _judge(elements, head, end - at, max_body_bytes)
        queue = topics.get(head.topic, {}).get(queue_id)
        if stop is Stop.NO_MORE and queue is None:
            stop = Stop.NO_QUEUE
        if stop is not Stop.NO_MORE or queue is None:
            break
        first = queue.next_offset if head.is_queued else 0
        own = _records_of(message, elements, first, base + at, store_timestamp)
        packed = b"".join([record.data for record in own])
        memory[at : at + 4] = bytes(4)
        memory[at + 4 : at + len(packed)] = packed[4:]
        memory[at : at + 4] = packed[:4]
        at += len(packed)
        records += own
        runs.append((queue if head.is_queued else None, first, len(elements)))
        texts.append(text)
        if head.is_queued:
            queue.next_offset = first + len(elements)
    entries = b"".join([record.entry for record in records])
    keys = b"".join([record.keys for record in records])
    positions, sizes = [record.position for record in records], [len(record.data) for record in records]
    return stop, runs, positions, sizes, entries, keys, texts, _list_added(runs, positions, sizes, entries)


class _Record(NamedTuple):
    position: int
    data: bytes
    entry: bytes
    keys: bytes


def _element_of(message: Message) -> BatchElement:
    """A message that is no batch, as the only element of one."""
    (constants, *_), _, body, text, *_ = message
    return BatchElement(_INT.unpack_from(constants, 4)[0], body, text or b"")


def _bytes_around(head: Head) -> int:
    """Of a record, without body and property text."""
    return _FIXED_BYTES + len(head.born_host) + len(head.store_host) + len(head.topic_bytes) + 2


def _records_of(
    message: Message, elements: Sequence[BatchElement], first: int, position: int, store_timestamp: int
) -> list[_Record]:
    """The records of a message, of which the first has this number in its queue and this log position."""
    head, queue_id, _, _, born_timestamp, prepared_offset, code = message
    records = []
    for number, element in enumerate(elements, first):
        size = _bytes_around(head) + len(element.body) + len(element.properties)
        front = _FRONT.pack(
            head.constants[:4],
            crc32(element.body) & 0x7FFFFFFF,
            queue_id,
            _INT.pack(element.flag),
            number,
            position,
            head.constants[8:],
            born_timestamp,
        )
        data = b"".join(
            (
                *(_INT.pack(size), front, head.born_host, _LONG.pack(store_timestamp), head.store_host),
                *(_LONG.pack(prepared_offset), _INT.pack(len(element.body)), element.body),
                *(head.topic_bytes, len(element.properties).to_bytes(2, "big"), element.properties),
            )
        )
        properties = decode_properties(bytes(element.properties))
        own_code = delivery_time(properties, head.delays_ms, store_timestamp) if code is None else code
        if own_code is None:
            own_code = tags_code(properties.get(TAGS))
        entry = _ENTRY.pack(position, size, own_code)
        hashes = key_hashes(properties, head.keys_start, head.tags_start)
        keys = b"".join([KEY.pack(value, position) for value in hashes])
        records.append(_Record(position, data, entry, keys))
        position += size
    return records


def _list_added(runs: list[Run], positions: list[int], sizes: list[int], entries: bytes) -> list[Added]:
    """What is added to each queue."""
    found: dict[int, Added] = {}
    number = 0
    for queue, first, count in runs:
        end = number + count
        own = entries[ENTRY_BYTES * number : ENTRY_BYTES * end]
        _, first, before, start, _ = found.get(id(queue), (queue, first, b"", positions[number], 0))
        found[id(queue)] = queue, first, before + own, start, positions[end - 1] + sizes[end - 1]
        number = end
    return [added for added in found.values() if added[0] is not None]


def _judge(elements: Sequence[BatchElement], head: Head, room: int, max_body_bytes: int) -> Stop:
    """Whether the records of a message can be packed."""
    if not elements:
        return Stop.UNREADABLE
    around, is_long = _bytes_around(head), len(elements) > MOST_ODD
    for element in elements:
        if len(element.body) > max_body_bytes:
            return Stop.BODY_TOO_LONG
        if len(element.properties) > MAX_PROPERTIES_BYTES:
            return Stop.TEXT_TOO_LONG
        room -= around + len(element.body) + len(element.properties)
        if room < 0:
            return Stop.NO_ROOM
        if is_long and _is_odd(bytes(element.properties), has_keys=head.keys_start >= 0):
            return Stop.NOT_UTF8
    return Stop.NO_MORE


def _is_odd(text: bytes, *, has_keys: bool) -> bool:
    """Whether tags, or keys that are hashed, are not UTF-8."""
    if _is_utf8(text):
        return False
    of_bytes = decode_properties(text.decode("latin-1").encode())  # each byte a character
    hashed = (TAGS, KEYS, UNIQ_KEY) if has_keys else (TAGS,)
    return not all(_is_utf8(of_bytes.get(name, "").encode("latin-1")) for name in hashed)


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def delivery_time(
    properties: Mapping[str, str], delays_ms: tuple[int, ...], store_timestamp: int
) -> int | None:
    """When a message of the schedule topic is due; None if it names no level (CommitLog.checkMessageAndReturnSize)."""
    text = properties.get(DELAY, "")
    level = min(int(text), len(delays_ms)) if text.isdecimal() and len(text) <= _MAX_LEVEL_DIGITS else 0
    return store_timestamp + delays_ms[level - 1] if level else None


def key_hashes(properties: Mapping[str, str], keys_start: int, tags_start: int) -> list[int]:
    """Under which hashes a message with these properties is in the index; the starts are those of its `Head`."""
    if keys_start < 0:
        return []
    keys, tags = properties.get(KEYS, ""), properties.get(TAGS)
    hashes = [key_hash(keys_start, key) for key in (properties.get(UNIQ_KEY), *keys.split(" ")) if key]
    if tags and tags_start >= 0:
        hashes.append(key_hash(tags_start, tags))
    return hashes


def record_bytes(message: Message) -> int:
    """How many bytes the records of a message take; 0 for a batch that cannot be read."""
    head, _, body, text, *_ = message
    around = _bytes_around(head)
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
pack_records = choice.choose(pack_records)
