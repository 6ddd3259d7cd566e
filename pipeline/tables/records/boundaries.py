"""Where the next record begins in a commit log after a split or damage, and what is wrong where none lies.

    split 0              split 1              split 2
    |-------.------.-----|---.-----.----.-----|--.-----...
            ^ records             ^ the first record that begins in a split is the split's first record

A commit log file can be split at any byte. The first record of a split is at the first position that has a record's
magic, a stored physical offset equal to its own position in the log, and lengths that agree. A record belongs to the
split in which it begins, however far it reaches. Positions are bytes from the start of the buffer. The record is drawn
in `pocketmq.protocol.message.record`.
"""

import struct
from typing import Final

from pocketmq.protocol.message.record import (
    BLANK,
    BLANK_MAGIC,
    MAGIC_V1,
    MAGIC_V2,
    PHYSICAL_OFFSET_AT,
    SYS_FLAG_AT,
    measure_record,
)

MAGICS: Final = (MAGIC_V1.to_bytes(4, "big", signed=True), MAGIC_V2.to_bytes(4, "big", signed=True))
_MAGIC_PREFIX: Final = MAGICS[0][:3]
assert MAGICS[1][:3] == _MAGIC_PREFIX
_SIZE_MAGIC: Final = struct.Struct(">ii")
_LONG: Final = struct.Struct(">q")

AT_END: Final = "end"
"""The end of the bytes, of the file (its filler), or of the written bytes (zeros)."""
BAD_MAGIC: Final = "bad magic"
BAD_SIZE: Final = "bad size"
"""Its lengths do not agree, or it reaches beyond the bytes."""


def why_none(data: memoryview, position: int) -> str:
    """Why no whole record lies at a position: `AT_END`, `BAD_MAGIC` or `BAD_SIZE`."""
    if len(data) - position < _SIZE_MAGIC.size:
        return AT_END
    size, magic = _SIZE_MAGIC.unpack_from(data, position)
    if magic in (MAGIC_V1, MAGIC_V2):
        return BAD_SIZE
    return AT_END if magic == BLANK_MAGIC or (size == 0 and magic == 0) else BAD_MAGIC


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
