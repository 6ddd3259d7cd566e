"""Damage in the middle of the log: what is behind it and sound stays, in the official layout.

    | record | damaged bytes         | record |
    | record | placeholder | ...     | record |

A place without a record is damage if the end of the newest record that a queue points to, or the checkpoint's mark,
is behind it; else it is a torn tail. The damaged bytes are copied to `lost/` first. Then each lost record is replaced
by a *placeholder*: a valid record of the same size, with the topic, queue and queue offset of the lost one, zeros as
its body and the tag DAMAGED. So the offsets of later messages stay, and every official broker walks over it. Where
neither the record's head nor a queue says which message was lost, the placeholder is a rolled-back one, which is in
no queue. Owner: the caller of `MessageStore.open()`.
"""

import logging
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from pocketmq.protocol.message.flags import TRANSACTION_MASK, TRANSACTION_ROLLBACK
from pocketmq.protocol.message.properties import TAGS, encode_properties
from pocketmq.protocol.message.record import (
    BLANK,
    BLANK_MAGIC,
    CRC_PROPERTY_BYTES,
    FILLER,
    INVALID,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_BYTES,
    Record,
    crc_property,
    decode_record,
    encode_record,
    measure_record,
    position_of,
)
from pocketmq.protocol.message.topics import is_lmq

from ..config import QUEUE_UNIT_BYTES
from ..files.lost_files import LostFiles
from ..files.mapped_file import MappedFile
from ..lookup.queue_table import QueueTable, is_possible_place
from ..lookup.queue_unit import UNIT, first_unit_at_or_after

logger = logging.getLogger(__name__)

DAMAGED_TAG: Final = "DAMAGED"
_TAG: Final = encode_properties({TAGS: DAMAGED_TAG})
_MAGICS: Final = re.compile(
    b"|".join(re.escape(magic.to_bytes(4, "big", signed=True)) for magic in (MAGIC_V1, MAGIC_V2, BLANK_MAGIC))
)
_MAX_CHECKED: Final = 10_000
"""Places that are looked at: the bytes of one message can look like very many records."""
_CHUNK_BYTES: Final = 1 << 20

Measure = Callable[[MappedFile, int], int]
"""`measure_record` with the checks of the settings."""
_Unit = tuple[int, int, str, int, int]
"""Position, size, topic, queue id and queue offset."""


class LogDamage:
    """Finds what is behind a damaged place of one store's log, and puts placeholders there."""

    def __init__(self, queues: QueueTable, lost: LostFiles, measure: Measure, *, has_crc: bool) -> None:
        """`has_crc` says that each record must end in the property with its CRC."""
        self._queues = queues
        self._lost = lost
        self._measure = measure
        self._crc_bytes = CRC_PROPERTY_BYTES if has_crc else 0
        self.placeholders = 0

    def find_sound_record(self, file: MappedFile, at: int) -> int | None:
        """The byte of a file, behind `at`, where the next sound record or the filler begins; None without one.

        The bytes inside a record that a queue points to are never taken for a record.
        """
        units: list[_Unit] | None = None
        checked = 0
        for place in _places(file, at + 1):
            if units is None:
                units = self._units(file, at)
            number = bisect_left(units, (file.base + place,)) - 1
            if number >= 0 and file.base + place < units[number][0] + units[number][1]:
                continue
            size = self._measure_here(file, place)
            if size != INVALID:
                return place
            checked += 1
            if checked > _MAX_CHECKED:
                return None
        return None

    def _measure_here(self, file: MappedFile, at: int) -> int:
        """As `measure_record`, for a place that may be none: a record names its position, a filler its length."""
        if at + FILLER.size > file.size:
            return INVALID
        size, magic = FILLER.unpack_from(file.view, at)
        if magic == BLANK_MAGIC:
            return BLANK if size == file.size - at else INVALID
        if at + MIN_RECORD_BYTES > file.size or position_of(file.view[at:]) != file.base + at:
            return INVALID
        return self._measure(file, at)

    def find_known_end(self, file: MappedFile, at: int) -> int:
        """Where the last record ends that a queue points to from byte `at` of a file on, or that at `at`, if its head
        is sound; `at` if there is none."""
        ends = [unit[0] + unit[1] - file.base for unit in self._units(file, at)]
        ends = [end for end in ends if end <= file.size - FILLER.size]
        return max([at + max(self._size_by_head(file, at), 0), *ends])

    def replace(self, file: MappedFile, at: int, end: int, store_timestamp: int) -> bool:
        """Put placeholders into the bytes from `at` to `end` of a file, or a filler at the end of the file; False if no
        record fits in there.

        `store_timestamp` is that of the record before, for placeholders without a head. Raises OSError.
        """
        pieces = self._pieces(file, at, end, store_timestamp)
        if not all(pieces):
            pieces = [self._make_rollback(file.base + at, end - at, store_timestamp)]
        data = b"".join(pieces)
        if not data:
            return False
        self._lost.keep(file.base + at, file.view[at:end])
        logger.error(
            "the log is damaged from position %d to %d: the bytes are kept in %s, the messages are lost",
            file.base + at,
            file.base + end,
            self._lost.folder,
        )
        file.overwrite(at, data)
        self.placeholders += len(pieces)
        return True

    def _pieces(self, file: MappedFile, at: int, end: int, store_timestamp: int) -> list[bytes]:
        """What takes the place of the bytes; an empty piece for one that no record fits in."""
        units = {unit[0] - file.base: unit for unit in self._units(file, at)}
        pieces = []
        while at < end:
            size, unit = self._size_by_head(file, at), units.get(at)
            if unit is not None and MIN_RECORD_BYTES < unit[1] <= end - at:
                size, place = unit[1], (unit[2], unit[3], unit[4], unit[0], b"", b"")
                piece = self._placeholder(Record(*place, store_timestamp=store_timestamp), size)
            elif 0 < size <= end - at:
                piece = self._placeholder(decode_record(file.view, at), size)
            elif end == file.size and not any(place > at for place in units):
                pieces.append(FILLER.pack(end - at, BLANK_MAGIC))
                break
            else:
                size = min((place for place in units if at < place < end), default=end) - at
                piece = self._make_rollback(file.base + at, size, store_timestamp)
            pieces.append(piece)
            at += size
        return pieces

    def _size_by_head(self, file: MappedFile, at: int) -> int:
        """The size of a record whose body or properties alone are damaged; INVALID if its head does not fit."""
        size = measure_record(file.view, at, file.size, check_crc=False)
        if size <= 0 or position_of(file.view[at:]) != file.base + at:
            return INVALID
        record = decode_record(file.view, at)
        return size if is_possible_place(record.topic, record.queue_id, record.queue_offset) else INVALID

    def _make_rollback(self, position: int, size: int, store_timestamp: int) -> bytes:
        topic = DAMAGED_TAG[: max(size - MIN_RECORD_BYTES - self._crc_bytes, 0)]
        record = Record(
            topic, 0, 0, position, b"", b"", 0, TRANSACTION_ROLLBACK, store_timestamp=store_timestamp
        )
        return self._placeholder(record, size)

    def _placeholder(self, lost: Record, size: int) -> bytes:
        """A record of so many bytes in the place of a lost one; empty if it does not fit."""
        empty = msgspec.structs.replace(
            lost,
            flag=0,
            sys_flag=lost.sys_flag & TRANSACTION_MASK,
            body=b"",
            properties=bytes(self._crc_bytes),
        )
        room = size - len(encode_record(empty))
        if room < 0:
            return b""
        tag = _TAG if room >= len(_TAG) else b""
        record = encode_record(
            msgspec.structs.replace(
                empty, body=bytes(room - len(tag)), properties=tag + bytes(self._crc_bytes)
            )
        )
        if self._crc_bytes:
            covered = record[: -self._crc_bytes]
            record = covered + crc_property(covered)
        return record

    def _units(self, file: MappedFile, at: int) -> list[_Unit]:
        """What the queues point to from byte `at` of a log file on, in the order of the log."""
        found = []
        begin, end = file.base + at, file.base + file.size
        for queue in self._queues:
            for part in [] if is_lmq(queue.topic) else queue.files:
                first = first_unit_at_or_after(part, 0, begin)
                offset = part.base // QUEUE_UNIT_BYTES + first // QUEUE_UNIT_BYTES
                for number, (position, size, _) in enumerate(
                    UNIT.iter_unpack(part.read(first, part.written)), offset
                ):
                    if position >= end:
                        break
                    found.append((position, size, queue.topic, queue.queue_id, number))
        return sorted(found)


def _places(file: MappedFile, at: int) -> Iterator[int]:
    """Where a record or the filler may begin, from byte `at` on: 4 bytes before each magic."""
    for begin, end in file.written_ranges(at):
        for start in range(begin, end, _CHUNK_BYTES):
            data = bytes(file.view[start : min(start + _CHUNK_BYTES + 3, file.size)])
            for found in _MAGICS.finditer(data):
                if (place := start + found.start() - 4) >= at:
                    yield place
