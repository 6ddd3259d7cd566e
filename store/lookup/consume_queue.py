"""A consume queue: for each message of one topic and queue, where its record lies.

    byte  field            bytes      unit number n stands at n * 20 of the queue's space of positions
       0  physicalOffset   8
       8  size             4          of the record
      12  tagsCode         8          hash of the tag, or delivery time in the queues of SCHEDULE_TOPIC_XXXX

A queue whose first unit is not number 0 starts with "pre-blank" units (0, 0x7FFFFFFF, 0) from its first file's start.
Files are created when the first unit comes, so an empty queue has none. Official class: ConsumeQueue.
Owner: the event-loop thread.
"""

import logging
import struct

from pocketmq.protocol.message.record import queue_offset_of

from ..config import QUEUE_UNIT_BYTES
from ..files.mapped_file import MappedFile
from ..files.mapped_files import MappedFiles
from ..log.commit_log import CommitLog

logger = logging.getLogger(__name__)

UNIT = struct.Struct(">qiq")
assert UNIT.size == QUEUE_UNIT_BYTES == 20
_PACK_UNIT = UNIT.pack_into
BLANK_UNIT = (0, 0x7FFFFFFF, 0)
_PRE_BLANK = UNIT.pack(*BLANK_UNIT)
_LIGHT_PREFIX = "%LMQ%"
_RECOVERED_FILES = 3
_FIRST_READ_BYTES = 200 * QUEUE_UNIT_BYTES
_READ_BYTES = 13_000 * QUEUE_UNIT_BYTES


class ConsumeQueue:
    """The units of one queue, and the two counters that clients know as min and max offset."""

    __slots__ = (
        "_file",
        "_log_start",
        "files",
        "max_offset",
        "min_offset",
        "next_offset",
        "queue_id",
        "records_end",
        "topic",
    )

    def __init__(self, topic: str, queue_id: int, files: MappedFiles) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.files = files
        self.min_offset = 0
        self.max_offset = 0
        """Number of the unit that the next one dispatched becomes; consumers see everything below it."""
        self.next_offset = 0
        """queueOffset of the next record appended to the log; ahead of max_offset while dispatch waits for a flush."""
        self.records_end = -1
        """Log position behind the newest record of this queue; -1 for an empty queue."""
        self._file: MappedFile | None = None
        self._log_start = 0
        """Where the log began at recovery."""

    # Writing

    def append(self, position: int, size: int, tags_code: int, queue_offset: int) -> bool:
        """Add the unit of a record; False if the queue had it already, which makes dispatching twice harmless.

        Raises StoreError when there is no room for it, and then nothing has changed.
        """
        end = position + size
        if end <= self.records_end:
            return False
        file = self._file
        if file is None or file.wrote >= file.reserved or queue_offset != self.max_offset:
            file = self._file_for(queue_offset)
            if file is None:
                return False
        at = file.wrote
        _PACK_UNIT(file.memory, at, position, size, tags_code)
        file.wrote = at + 20
        self.max_offset += 1
        self.records_end = end
        return True

    def extend(self, units: bytes) -> None:
        """Add packed units, the first being number `max_offset`, of records behind `records_end`: as `append` of
        each. Raises StoreError when there is no room; what had some is added."""
        done = 0
        while done < len(units):
            file = self._file
            if file is None or file.wrote >= file.reserved:
                file = self._file_for(self.max_offset)
                assert file is not None, "the unit behind the last is not there"
            at = file.wrote
            part = units[done : done + (file.reserved - at) // QUEUE_UNIT_BYTES * QUEUE_UNIT_BYTES]
            file.memory[at : at + len(part)] = part
            file.wrote = at + len(part)
            self.max_offset += len(part) // QUEUE_UNIT_BYTES
            done += len(part)
            position, size, _ = UNIT.unpack(part[-QUEUE_UNIT_BYTES:])
            self.records_end = position + size

    def _file_for(self, queue_offset: int) -> MappedFile | None:
        """The file to write to when it is not simply the current one; None for a unit that is there already."""
        if self._file is None:
            return self._first_file(queue_offset)
        if queue_offset < self.max_offset:
            if queue_offset:
                return None
            # Number 0 behind others: the topic was deleted and made again, and the crash that we recover from
            # brought the old units back. The new queue is the one that counts.
            self.destroy()
            return self._first_file(0)
        if queue_offset > self.max_offset and self.records_end <= self._log_start:
            # A power loss took the units in between, and the log has none of their records any more.
            self.destroy()
            return self._first_file(queue_offset)
        if queue_offset > self.max_offset:
            logger.error(
                "queue %s-%d expects unit %d but the record says %d; it is stored as %d",
                self.topic,
                self.queue_id,
                self.max_offset,
                queue_offset,
                self.max_offset,
            )
        if self._file.wrote == self._file.size:
            self._file = self.files.add_file(self._file.base + self._file.size, QUEUE_UNIT_BYTES)
        self._file.reserve(self._file.wrote + QUEUE_UNIT_BYTES)
        return self._file

    def _first_file(self, queue_offset: int) -> MappedFile:
        """Create the file that holds `queue_offset` and blank out the units before it."""
        position = queue_offset * QUEUE_UNIT_BYTES
        size = self.files.file_bytes
        skipped = position % size
        file = self.files.add_file(position - skipped, skipped + QUEUE_UNIT_BYTES)
        if skipped:
            file.map[0:skipped] = _PRE_BLANK * (skipped // QUEUE_UNIT_BYTES)
            file.wrote = skipped
        self.files.flushed = position
        self.min_offset = self.max_offset = queue_offset
        self._file = file
        return file

    # Reading

    def units_from(self, offset: int) -> memoryview | None:
        """Units from number `offset` to the end of the file that holds it; None if that file is missing."""
        position = offset * QUEUE_UNIT_BYTES
        file = self.files.file_at(position)
        return file.view[position - file.base : file.wrote] if file is not None else None

    def unit(self, offset: int) -> tuple[int, int, int] | None:
        """(position, size, tags code) of unit number `offset`, pre-blank ones included."""
        if not 0 <= offset < self.max_offset:
            return None
        units = self.units_from(offset)
        return UNIT.unpack_from(units) if units else None

    def record_near(self, position: int) -> int:
        """Start of the first record at or behind a log position, among those of the last file; -1 if that is not
        known from the last file alone."""
        last = self._file
        if last is None or not last.wrote or _position_at(last, 0) >= position:
            return -1
        at = _first_unit_at_or_after(last, 0, position)
        return _position_at(last, at) if at < last.wrote else -1

    def next_file_offset(self, offset: int) -> int:
        """Number of the first unit of the following file (rollNextFile)."""
        units = self.files.file_bytes // QUEUE_UNIT_BYTES
        return offset + units - offset % units

    # Recovery and deletion

    def recover(self, log_start: int) -> bool:
        """Find the end of the loaded files: the first unit that is none, looked for in the last three files.

        False if units were lost with it, because a file is missing or bytes stand behind the end: reading the log
        again from the end of the last record puts them back.
        """
        self._log_start = log_start
        files = self.files.files
        if not files:
            return True
        whole = self._close_gap(log_start)
        end_file, end, newest = files[-1], 0, b""
        for file in files[-_RECOVERED_FILES:]:
            end_file = file
            end, unit = _end_of_units(file)
            newest = unit or newest
            if end < file.size:
                whole = whole and file is files[-1] and not _is_written_behind(file, end)
                break
        if whole:
            end_file.wrote = end  # nothing stands behind it
        else:
            self.files.truncate(end_file.base + end)
        self._end_at_files(newest)
        self.files.flushed = self.files.end
        return whole

    def distrust_from(self, position: int, log: CommitLog) -> None:
        """After a power loss: drop every unit that was not forced, whatever stands in its place now.

        All records from a log position on will be dispatched again; units of earlier ones were forced. A page that
        was not may hold anything, also parts of units, so the last unit kept must be the one its record asks for.
        """
        files = self.files.files
        if not files:
            return
        at = next((n for n in range(len(files) - 1, 0, -1) if self._is_forced(files[n], 0, position, log)), 0)
        file, keep, previous_end = files[at], 0, 0
        for unit in UNIT.iter_unpack(file.read(0, file.wrote)):
            if unit[0] >= position or (unit != BLANK_UNIT and not previous_end <= unit[0]):
                break
            keep += QUEUE_UNIT_BYTES
            previous_end = unit[0] + unit[1] if unit != BLANK_UNIT else 0
        while keep and not self._is_forced(file, keep - QUEUE_UNIT_BYTES, position, log):
            keep -= QUEUE_UNIT_BYTES
        self._end_at(file.base + keep)

    def _is_forced(self, file: MappedFile, at: int, position: int, log: CommitLog) -> bool:
        """Whether the unit at a place of a file is the one its record asks for, and the record an early one."""
        unit = UNIT.unpack(file.read(at, at + QUEUE_UNIT_BYTES))
        if not unit[0] < position or unit == BLANK_UNIT:
            return False
        if unit[0] < log.start or self.topic.startswith(_LIGHT_PREFIX):
            return True  # no record to ask, or one that knows its number in another queue
        record = log.read_record(unit[0])
        return (
            record is not None
            and len(record) == unit[1]
            and queue_offset_of(record) == (file.base + at) // QUEUE_UNIT_BYTES
        )

    def _close_gap(self, log_start: int) -> bool:
        """Where a file is missing, keep the side that the log can complete; False if there was a gap."""
        files = self.files.files
        gap = next(
            (at for at in range(1, len(files)) if files[at].base != files[at - 1].base + files[at].size), 0
        )
        if not gap:
            return True
        before = files[gap - 1]
        if _position_at(before, before.size - QUEUE_UNIT_BYTES) < log_start:
            gone, files[:gap] = files[:gap], []
        else:
            gone, files[gap:] = files[gap:], []
        for file in gone:
            file.delete()
        return False

    def truncate(self, position: int) -> None:
        """Drop the units of records at or behind a log position."""
        if self.records_end <= position:
            return
        files = self.files.files
        while files:
            file = files[-1]
            keep = file.wrote
            while keep and _position_at(file, keep - QUEUE_UNIT_BYTES) >= position:
                keep -= QUEUE_UNIT_BYTES
            if keep or len(files) == 1:
                break
            files.pop().delete()
        else:
            return
        self._end_at(file.base + keep)

    def _end_at(self, position: int) -> None:
        self.files.truncate(position)
        last = self.files.files[-1]
        newest = last if last.wrote or len(self.files.files) == 1 else self.files.files[-2]
        self._end_at_files(newest.read(max(newest.wrote - QUEUE_UNIT_BYTES, 0), newest.wrote))

    def _end_at_files(self, newest_unit: bytes) -> None:
        """Go on where the files end; `newest_unit` is empty if they hold none."""
        self.max_offset = self.next_offset = self.files.end // QUEUE_UNIT_BYTES
        self._file = self.files.files[-1]
        self.records_end = -1
        if newest_unit:
            position, size, _ = UNIT.unpack(newest_unit)
            self.records_end = position + size

    def delete_files_before(self, log_start: int) -> int:
        """Delete files, never the last, whose newest unit lies before the log's start; returns how many."""
        deleted = 0
        while len(self.files.files) > 1:
            first = self.files.files[0]
            if _position_at(first, first.size - QUEUE_UNIT_BYTES) >= log_start:
                break
            self.files.delete_first()
            deleted += 1
        return deleted

    def correct_min_offset(self, log_start: int, emulate: int) -> None:
        """Move min_offset past units whose records are gone (correctMinOffset of the line that `emulate` names).

        4.x leaves a queue whose records are all gone as it is; 5.x makes min and max equal.
        """
        if not self.files.files:
            return
        first, last = self.files.files[0], self.files.files[-1]
        if not first.wrote:
            # Recovery has cut the only units this queue had left; its numbers go on.
            self.min_offset = self.max_offset
            return
        start = first.base
        if emulate == 5:
            minimum = self.min_offset * QUEUE_UNIT_BYTES
            if minimum >= self.files.end:
                return
            if last.wrote and log_start > 0 and _position_at(last, last.wrote - QUEUE_UNIT_BYTES) < log_start:
                self.min_offset = self.max_offset
                return
            start = max(minimum, first.base)
            if minimum >= first.end or (
                minimum >= first.base
                and (log_start <= 0 or _position_at(first, start - first.base) >= log_start)
            ):
                return
        at = _first_unit_at_or_after(first, start - first.base, log_start)
        if at < first.wrote:
            self.min_offset = (first.base + at) // QUEUE_UNIT_BYTES

    def destroy(self) -> None:
        """Delete all files; the counters start again at 0."""
        self.files.delete_all()
        self._file = None
        self.min_offset = self.max_offset = self.next_offset = 0
        self.records_end = -1


def _position_at(file: MappedFile, at: int) -> int:
    return int.from_bytes(file.read(at, at + 8), "big", signed=True)


def _end_of_units(file: MappedFile) -> tuple[int, bytes]:
    """Where the first bytes stand that are no unit (position below 0, or size below 1), and the unit before them.

    Looked at in columns: a byte of every twentieth at a time, which is fifty times quicker than unit by unit.
    """
    at, step, newest = 0, _FIRST_READ_BYTES, b""
    while at < file.size:
        block = file.read(at, min(at + step, file.size))
        good = _good_units(block) * QUEUE_UNIT_BYTES
        at += good
        newest = block[good - QUEUE_UNIT_BYTES : good] or newest
        if not good or good < len(block):
            break
        step = _READ_BYTES
    return at, newest


def _good_units(block: bytes) -> int:
    """How many units from the start of a block can be units; a short last one cannot."""
    count = len(block) // QUEUE_UNIT_BYTES
    columns = [block[column : count * QUEUE_UNIT_BYTES : QUEUE_UNIT_BYTES] for column in (0, 8, 9, 10, 11)]
    if columns[0].isascii() and columns[1].isascii():
        sizes = [int.from_bytes(column, "big") for column in columns[1:]]
        nonzero = sizes[0] | sizes[1] | sizes[2] | sizes[3]
        if (first_zero := nonzero.to_bytes(count, "big").find(0)) < 0:
            return count
        return first_zero
    for number, (position, size, _) in enumerate(UNIT.iter_unpack(block[: count * QUEUE_UNIT_BYTES])):
        if position < 0 or size <= 0:
            return number
    return count


def _is_written_behind(file: MappedFile, end: int) -> bool:
    """Whether anything but zeros stands in the data that the file system keeps behind a position."""
    return any(
        (data := file.read(start, stop)).count(0) < len(data) for start, stop in file.written_ranges(end)
    )


def _first_unit_at_or_after(file: MappedFile, at: int, position: int) -> int:
    """Position in `file` of the first unit, from `at` on, with a record at or behind a log position."""
    low, high = at // QUEUE_UNIT_BYTES, file.wrote // QUEUE_UNIT_BYTES
    while low < high:
        middle = (low + high) // 2
        if _position_at(file, middle * QUEUE_UNIT_BYTES) < position:
            low = middle + 1
        else:
            high = middle
    return low * QUEUE_UNIT_BYTES
