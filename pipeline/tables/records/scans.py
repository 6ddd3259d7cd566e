"""Records and the pairs of property texts as tables of numbers: what `core/scan.c` does in C, in arrays.

    record 0 | start | storeSize | queueId | ... | topic |      `COLUMNS`, a row for each record
    record 1 | ...
    pair 0   | row | name | valueBegin | valueEnd |             `PAIR_COLUMNS`, a row for each pair

Both forms fill a room of 64-bit integers that the caller gives. Places are bytes from the start of the buffer. The
record is drawn in `pocketmq.protocol.message.record`.
"""

import struct
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.core.choice import choose
from pocketmq.protocol.message.flags import BORN_HOST_IPV6, STORE_HOST_IPV6
from pocketmq.protocol.message.record import (
    IPV4_HOST_BYTES,
    IPV6_HOST_BYTES,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_BYTES,
)

from .slices import Ints, slices

Flags = npt.NDArray[np.bool_]

COLUMNS: Final = (
    *("start", "storeSize", "queueId", "queueOffset", "physicalOffset", "sysFlag", "storeTimestamp"),
    *("bodyBegin", "bodyEnd", "topicBegin", "topicEnd", "topic"),
)
"""Numbers of a record's head, places in the buffer, and the number of its topic in the list of topics."""
PAIR_COLUMNS: Final = ("row", "name", "valueBegin", "valueEnd")
"""The text that a pair is in, the number of its name in the list of names, and where its value is."""
ANYWHERE: Final = -1
"""Instead of the log position of byte 0: the records need not lie where they say."""
CRC_MASK: Final = 0x7FFFFFFF
"""The stored CRC has no sign bit: `pocketmq.protocol.message.record.body_crc`."""
HEAD: Final = np.dtype(
    [
        *(("storeSize", ">i4"), ("magic", ">i4"), ("bodyCRC", ">i4"), ("queueId", ">i4"), ("flag", ">i4")),
        *(("queueOffset", ">i8"), ("physicalOffset", ">i8"), ("sysFlag", ">i4"), ("bornTimestamp", ">i8")),
        *(("bornHost", ">u8"), ("storeTimestamp", ">i8"), ("storeHost", ">u8"), ("reconsumeTimes", ">i4")),
        *(("preparedTransactionOffset", ">i8"), ("bodyLength", ">i4")),
    ]
)
"""The head of a record with IPv4 hosts. With an IPv6 host, the fields after that host begin 12 bytes later.

numpy needs the layout as a dtype; a test compares it with `pocketmq.protocol.message.record`.
"""
AT: Final = {name: int(field[1]) for name, field in (HEAD.fields or {}).items()}
assert HEAD.itemsize < MIN_RECORD_BYTES
_SIZE_MAGIC: Final = struct.Struct(">ii")


def scan_records(
    data: Any, at: int, end: int, base: int, check_crc: bool, room: Ints
) -> tuple[int, list[bytes]]:
    """(count, topics) of the records that lie back to back from byte `at` on and begin before `end`; as many as the
    room has rows.

    Ends before the first bytes that are no whole record whose lengths agree, that lies where it says, and whose body
    has its CRC if that is asked. `base` is the log position of byte 0, or `ANYWHERE`.
    """
    if at < 0:
        raise ValueError("the position is below 0, or the room for numbers is not aligned")
    raw = np.frombuffer(data, dtype=np.uint8)
    starts = _walk(memoryview(data).cast("B"), at, end, len(room))
    numbers = room[: len(starts)]
    good = _read_numbers(raw, starts, numbers)
    if base != ANYWHERE:
        good &= numbers[:, COLUMNS.index("physicalOffset")] == starts + base
    if check_crc:
        good[good] &= ~bad_crcs(raw, numbers[good])
    count = len(good) if good.all() else int(good.argmin())
    return count, _number_topics(raw, numbers[:count])


def read_records_at(data: Any, starts: Ints, sizes: Ints, room: Ints) -> tuple[int, list[bytes]]:
    """(count, topics) of the records at these places, each with its numbers in a row of the room.

    Where no whole record lies whose lengths agree, all numbers but the place are 0. `sizes` are what is expected: they
    only help to read ahead.
    """
    if not len(starts) == len(sizes) == len(room):
        raise ValueError("starts, sizes and room must be as many, and aligned")
    raw = np.frombuffer(data, dtype=np.uint8)
    good = _read_numbers(raw, starts, room)
    found = room[good]
    topics = _number_topics(raw, found)
    room[good] = found
    room[~good, 1:] = 0
    return len(room), topics


def list_pairs(data: Any, begins: Ints, ends: Ints, room: Ints) -> tuple[int, list[bytes]]:
    """(count, names) of the pairs of the property texts between `begins` and `ends`, which must rise.

    A pair without a name or a value is none, and of pairs with equal names in a text only the last counts. The count is
    -1 if the room is too small.
    """
    raw = np.frombuffer(data, dtype=np.uint8)
    if not ((begins >= 0) & (begins <= ends) & (ends <= len(raw))).all():
        raise ValueError("texts must lie in the buffer, and all numbers be aligned")
    lists = pc.split_pattern(slices(raw, begins, ends, pa.binary()), b"\x02")
    pairs, rows = lists.flatten(), np.asarray(pc.list_parent_indices(lists)).astype(np.int64)
    sizes = np.asarray(pc.binary_length(pairs)).astype(np.int64)
    name_sizes = np.asarray(pc.find_substring(pairs, b"\x01")).astype(np.int64)
    # A text has one byte between two pairs, so each text counts one byte more than it has.
    lengths = np.append(0, np.cumsum(ends - begins + 1))
    pair_begins = begins[rows] - lengths[rows] + np.cumsum(sizes + 1) - sizes - 1
    good = (name_sizes > 0) & (name_sizes + 1 < sizes)
    rows, sizes, name_sizes, pair_begins = (each[good] for each in (rows, sizes, name_sizes, pair_begins))
    encoded = slices(raw, pair_begins, pair_begins + name_sizes, pa.binary()).dictionary_encode()
    names = np.asarray(encoded.indices).astype(np.int64)
    numbers = np.column_stack((rows, names, pair_begins + name_sizes + 1, pair_begins + sizes))
    _, last = np.unique((rows * (len(encoded.dictionary) + 1) + names)[::-1], return_index=True)
    if len(last) < len(rows):
        numbers = numbers[np.sort(len(rows) - 1 - last)]
    if len(numbers) > len(room):
        return -1, []
    room[: len(numbers)] = numbers
    return len(numbers), encoded.dictionary.to_pylist()


def bad_crcs(raw: npt.NDArray[np.uint8], numbers: Ints) -> Flags:
    """Which bodies have not the CRC that their record names. An empty one has none."""
    starts, begins, ends = (numbers[:, COLUMNS.index(name)] for name in ("start", "bodyBegin", "bodyEnd"))
    bodies = map(memoryview(raw.data).__getitem__, map(slice, begins.tolist(), ends.tolist()))
    computed = np.fromiter(map(crc32, bodies), dtype=np.int64, count=len(numbers))
    bad: Flags = (computed & CRC_MASK) != numbers_at(raw, starts + AT["bodyCRC"], ">i4")
    return bad & (ends > begins)


def numbers_at(raw: npt.NDArray[np.uint8], at: Ints, kind: str) -> Any:
    """Big-endian numbers (`>i4`, `>i8`, ...) at byte positions, in the machine's order."""
    item = np.dtype(kind)
    every = np.ndarray(shape=(max(len(raw) - item.itemsize + 1, 0),), dtype=item, buffer=raw, strides=(1,))
    return every[at].astype(item.newbyteorder("="))


def _walk(data: memoryview, position: int, end: int, most: int) -> Ints:
    """Where records begin, as far as their sizes and magic numbers lead."""
    starts: list[int] = []
    append, unpack = starts.append, _SIZE_MAGIC.unpack_from
    last = min(end, len(data) - MIN_RECORD_BYTES + 1)
    for _ in range(most):
        if position >= last:
            break
        size, magic = unpack(data, position)
        if (magic != MAGIC_V1 and magic != MAGIC_V2) or size < MIN_RECORD_BYTES:
            break
        append(position)
        position += size
    return np.array(starts, dtype=np.int64)


def _read_numbers(raw: npt.NDArray[np.uint8], starts: Ints, room: Ints) -> Flags:
    """Which places have a whole record whose lengths agree; all numbers but those of topics go into the room.

    A length is only used as far as it is known to lead to bytes; otherwise byte 88 is read in its place.
    """
    room[:, 0] = starts
    good: Flags = (starts >= 0) & (starts <= len(raw) - MIN_RECORD_BYTES)
    if not good.any():
        return good
    at = np.where(good, starts, 0)
    heads = np.ndarray(
        shape=(len(raw) - HEAD.itemsize + 1,), dtype=f"V{HEAD.itemsize}", buffer=raw, strides=(1,)
    )[at].view(HEAD)
    flags, ends = heads["sysFlag"].astype(np.int64), at + heads["storeSize"]
    is_v2 = heads["magic"] == MAGIC_V2
    good &= ((heads["magic"] == MAGIC_V1) | is_v2) & (ends <= len(raw))
    born = np.where(flags & BORN_HOST_IPV6, IPV6_HOST_BYTES - IPV4_HOST_BYTES, 0)
    body_at = at + HEAD.itemsize + born
    body_at += np.where(flags & STORE_HOST_IPV6, IPV6_HOST_BYTES - IPV4_HOST_BYTES, 0)
    good &= body_at + 3 <= ends
    body_at[~good] = HEAD.itemsize
    body_bytes = numbers_at(raw, body_at - 4, ">i4").astype(np.int64)
    body_end, width = body_at + body_bytes, np.where(is_v2, 2, 1)
    good &= (body_bytes >= 0) & (body_end + width + 2 <= ends)
    body_end[~good] = HEAD.itemsize
    topic_bytes = raw[body_end].astype(np.int8).astype(np.int64)
    topic_bytes[is_v2] = numbers_at(raw, body_end[is_v2], ">i2")
    topic_end = body_end + width + topic_bytes
    good &= (topic_bytes >= 0) & (topic_end + 2 <= ends)
    topic_end[~good] = HEAD.itemsize
    good &= topic_end + 2 + numbers_at(raw, topic_end, ">i2") == ends
    of_head = (heads[name] for name in COLUMNS[1:6])
    stored_at = numbers_at(raw, at + AT["storeTimestamp"] + born, ">i8")
    places = (body_at, body_end, body_end + width, topic_end)
    for column, values in enumerate((*of_head, stored_at, *places), 1):
        room[:, column] = values
    return good


def _number_topics(raw: npt.NDArray[np.uint8], numbers: Ints) -> list[bytes]:
    """Write the numbers of the topics; returns the topics."""
    begins, ends = (numbers[:, COLUMNS.index(name)] for name in ("topicBegin", "topicEnd"))
    order = np.argsort(begins, kind="stable")  # slices must rise
    encoded = slices(raw, begins[order], ends[order], pa.binary()).dictionary_encode()
    numbers[order, COLUMNS.index("topic")] = encoded.indices
    topics: list[bytes] = encoded.dictionary.to_pylist()
    return topics


scan_records = choose(scan_records)
read_records_at = choose(read_records_at)
list_pairs = choose(list_pairs)
