"""Where records begin in the bytes of a commit log or of pull replies, and how a log file is split at any byte.

    split 0              split 1              split 2
    |-------.------.-----|---.-----.----.-----|--.-----...
            ^ records             ^ the first record that begins in a split is the split's first record

A commit log file can be split at any byte. The first record of a split is at the first position that has a record's
magic, a stored physical offset equal to its own position in the log, and lengths that agree. A record belongs to the
split in which it begins, however far it reaches. Positions are bytes from the start of the buffer. The record is drawn
in `pocketmq.protocol.message.record`.
"""

import struct
import sys
from typing import Final

import numpy as np
import numpy.typing as npt
from pocketmq.protocol.message.record import (
    BLANK,
    BLANK_MAGIC,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_BYTES,
    PHYSICAL_OFFSET_AT,
    SYS_FLAG_AT,
    measure_record,
)

Positions = npt.NDArray[np.int64]

MAGICS: Final = (MAGIC_V1.to_bytes(4, "big", signed=True), MAGIC_V2.to_bytes(4, "big", signed=True))
_MAGIC_PREFIX: Final = MAGICS[0][:3]
assert MAGICS[1][:3] == _MAGIC_PREFIX
_SIZE_MAGIC: Final = struct.Struct(">ii")
_LONG: Final = struct.Struct(">q")

AT_END: Final = "end"
"""The end of the bytes, of the file (its filler), or of the written bytes (zeros)."""
CUT_OFF: Final = "cut off"
"""A record begins here and reaches beyond the bytes."""
BAD_MAGIC: Final = "bad magic"
BAD_SIZE: Final = "bad size"


class RecordWalk:
    """The positions of consecutive records, where the walk stopped, and why."""

    __slots__ = ("reason", "starts", "stop")

    def __init__(self, starts: Positions | list[int], stop: int, reason: str) -> None:
        self.starts: Positions = np.asarray(starts, dtype=np.int64)
        self.stop = stop
        self.reason = reason


def walk_records(data: memoryview, position: int, end: int, *, limit: int = sys.maxsize) -> RecordWalk:
    """Records that begin in [position, end), at most `limit`; they may reach beyond `end`.

    Checks size and magic only; `Records.lengths_agree` checks the lengths inside. Never raises.
    """
    starts: list[int] = []
    append, unpack = starts.append, _SIZE_MAGIC.unpack_from
    last = min(end, len(data) - 7)
    for _ in range(limit):
        if position >= last:
            break
        size, magic = unpack(data, position)
        if (magic != MAGIC_V1 and magic != MAGIC_V2) or size < MIN_RECORD_BYTES:
            return RecordWalk(starts, position, _stop_reason(size, magic))
        append(position)
        position += size
    if starts and position > len(data):  # the bytes after it were not checked
        stop = starts.pop()
        return RecordWalk(starts, stop, CUT_OFF)
    return RecordWalk(starts, position, AT_END)


def _stop_reason(size: int, magic: int) -> str:
    if magic in (MAGIC_V1, MAGIC_V2):
        return BAD_SIZE
    if magic == BLANK_MAGIC or (size == 0 and magic == 0):
        return AT_END
    return BAD_MAGIC


def find_record(data: memoryview, position: int, end: int, base: int) -> int:
    """The position of the first whole record that begins in [position, end), or `end`.

    `base` is the log position of byte 0.
    """
    while position < end:
        magic_at = _find(data, position + 4, min(end + 7, len(data)))
        if magic_at < 0 or magic_at - 4 >= end:
            return end
        start = magic_at - 4
        if bytes(data[magic_at : magic_at + 4]) in MAGICS and _is_record(data, start, base):
            return start
        position = start + 1
    return end


def _is_record(data: memoryview, start: int, base: int) -> bool:
    if start + SYS_FLAG_AT > len(data):
        return False
    if _LONG.unpack_from(data, start + PHYSICAL_OFFSET_AT)[0] != base + start:
        return False
    return measure_record(data, start, len(data), check_crc=False) > BLANK


def _find(data: memoryview, start: int, end: int) -> int:
    """The magic's first three bytes in [start, end), or -1. Searches copies: small ones first, a record is near."""
    step = 1 << 10
    while start < end:
        found = bytes(data[start : min(start + step + 2, end)]).find(_MAGIC_PREFIX)
        if found >= 0:
            return start + found
        start += step
        step = min(4 * step, 1 << 20)
    return -1
