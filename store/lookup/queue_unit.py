"""The 20 bytes of a queue: one unit for each message, which says where the message's record lies.

    byte  field     bytes   unit number n begins at byte n * 20 of the queue
       0  position  8       of the record in the commit log
       8  size      4       of the record
      12  tagsCode  8       hash of the tag, or the delivery time in the queues of SCHEDULE_TOPIC_XXXX

A queue whose first unit is not number 0 has *pre-blank* units (0, 0x7FFFFFFF, 0) from its first file's start up to it.
`end_of_units` is the rule that decides where a queue ends, for recovery and for the checker. Official class: CqUnit.
"""

import struct
from collections.abc import Callable
from functools import lru_cache

from ..config import QUEUE_UNIT_BYTES
from ..files.mapped_file import MappedFile

UNIT = struct.Struct(">qiq")
assert UNIT.size == QUEUE_UNIT_BYTES == 20
BLANK_UNIT = (0, 0x7FFFFFFF, 0)
PRE_BLANK = UNIT.pack(*BLANK_UNIT)
_FIRST_READ_BYTES = 200 * QUEUE_UNIT_BYTES
_READ_BYTES = 13_000 * QUEUE_UNIT_BYTES


@lru_cache(32)
def sizes_of(count: int) -> struct.Struct:
    """The sizes alone of so many units: those of a pull, which a setting bounds."""
    return struct.Struct(">" + "8xi8x" * count)


def position_at(file: MappedFile, at: int) -> int:
    """Position of the record that the unit at a byte of a queue file names."""
    return int.from_bytes(file.read(at, at + 8), "big", signed=True)


def first_unit_at_or_after(file: MappedFile, at: int, position: int) -> int:
    """Byte in `file` of the first unit, from byte `at` on, whose record lies at or behind a log position."""
    low, high = at // QUEUE_UNIT_BYTES, file.written // QUEUE_UNIT_BYTES
    while low < high:
        middle = (low + high) // 2
        if position_at(file, middle * QUEUE_UNIT_BYTES) < position:
            low = middle + 1
        else:
            high = middle
    return low * QUEUE_UNIT_BYTES


def end_of_units(read: Callable[[int, int], bytes], file_bytes: int) -> tuple[int, bytes]:
    """Where the units of a queue file end: at the first that has a position below 0 or a size below 1.

    `read` gives the bytes of the file between two places. Returns the byte behind the last unit, and that unit (empty
    without one).
    """
    at, step, newest = 0, _FIRST_READ_BYTES, b""
    while at < file_bytes:
        block = read(at, min(at + step, file_bytes))
        good = _good_units(block) * QUEUE_UNIT_BYTES
        at += good
        newest = block[good - QUEUE_UNIT_BYTES : good] or newest
        if not good or good < len(block):
            break
        step = _READ_BYTES
    return at, newest


def _good_units(block: bytes) -> int:
    """How many possible units a block begins with; an incomplete last one does not count.

    Works on columns (every twentieth byte), which is fifty times quicker than unit by unit: `isascii` says that no byte
    of a column has its top bit set, so no position and no size is negative; the four bytes of the sizes, joined by OR
    as one large number each, are zero only where a size is 0.
    """
    count = len(block) // QUEUE_UNIT_BYTES
    columns = [block[column : count * QUEUE_UNIT_BYTES : QUEUE_UNIT_BYTES] for column in (0, 8, 9, 10, 11)]
    if columns[0].isascii() and columns[1].isascii():
        sizes = [int.from_bytes(column, "big") for column in columns[1:]]
        nonzero = sizes[0] | sizes[1] | sizes[2] | sizes[3]
        first_zero = nonzero.to_bytes(count, "big").find(0)
        return count if first_zero < 0 else first_zero
    for number, (position, size, _) in enumerate(UNIT.iter_unpack(block[: count * QUEUE_UNIT_BYTES])):
        if position < 0 or size <= 0:
            return number
    return count
