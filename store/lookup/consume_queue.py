"""A consume queue: for each message of one topic and queue, where its record lies; 20 bytes each (`queue_unit.py`).

Files are created when the first unit is dispatched, so an empty queue has none. Not here: finding the end of a queue
after a stop (`durability/queue_repair.py`). Official class: ConsumeQueue. Owner: the event-loop thread.
"""

import logging

from ..config import QUEUE_UNIT_BYTES
from ..files.mapped_file import MappedFile
from ..files.mapped_files import MappedFiles
from .queue_unit import PRE_BLANK, UNIT, first_unit_at_or_after, position_at

logger = logging.getLogger(__name__)

_PACK_UNIT = UNIT.pack_into


class ConsumeQueue:
    """The units of one queue, and the two counters that clients know as min and max offset."""

    __slots__ = (
        "_file",
        "files",
        "log_start",
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
        self.log_start = 0
        """Where the log began at recovery."""

    # Writing

    def append(self, position: int, size: int, tags_code: int, queue_offset: int) -> bool:
        """Add the unit of a record; False if the queue already had it, so dispatching twice is harmless.

        `position` and `size` are bytes of the log. Raises StoreError if there is no room, and then nothing has changed.
        """
        end = position + size
        if end <= self.records_end:
            return False
        file = self._file
        if file is None or file.written >= file.reserved or queue_offset != self.max_offset:
            file = self._file_for(queue_offset)
            if file is None:
                return False
        at = file.written
        _PACK_UNIT(file.memory, at, position, size, tags_code)
        file.written = at + 20
        self.max_offset += 1
        self.records_end = end
        return True

    def extend(self, entries: bytes, queue_offset: int, position: int, records_end: int) -> None:
        """Add the packed entries of records that lie between two log positions, in order; as `append` of each.

        `queue_offset` is the number of the first. Raises StoreError if there is no room; some may have been added then.
        """
        file, size = self._file, len(entries)
        is_next = queue_offset == self.max_offset and position >= self.records_end
        if not is_next or file is None or file.written + size > file.size:
            for number, (at, record_bytes, tags_code) in enumerate(UNIT.iter_unpack(entries), queue_offset):
                self.append(at, record_bytes, tags_code, number)
            return
        at = file.written
        file.reserve(at + size)
        file.memory[at : at + size] = entries
        file.written = at + size
        self.max_offset += size // QUEUE_UNIT_BYTES
        self.records_end = records_end

    def _file_for(self, queue_offset: int) -> MappedFile | None:
        """The file to write to if it is not just the current one; None for a unit that the queue already has."""
        if self._file is None:
            return self._first_file(queue_offset)
        if queue_offset < self.max_offset:
            if queue_offset:
                return None
            # Offset 0 after others: the topic was deleted and created again, and the crash that we recover from
            # brought the old units back. The new queue replaces them.
            self.destroy()
            return self._first_file(0)
        if queue_offset > self.max_offset and self.records_end <= self.log_start:
            # A power loss took the units in between, and their records have left the log.
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
        if self._file.written == self._file.size:
            self._file = self.files.add_file(self._file.base + self._file.size, QUEUE_UNIT_BYTES)
        self._file.reserve(self._file.written + QUEUE_UNIT_BYTES)
        return self._file

    def _first_file(self, queue_offset: int) -> MappedFile:
        """Create the file that holds `queue_offset` and blank out the units before it."""
        position = queue_offset * QUEUE_UNIT_BYTES
        size = self.files.file_bytes
        skipped = position % size
        file = self.files.add_file(position - skipped, skipped + QUEUE_UNIT_BYTES)
        if skipped:
            file.map[0:skipped] = PRE_BLANK * (skipped // QUEUE_UNIT_BYTES)
            file.written = skipped
        self.files.flushed = position
        self.min_offset = self.max_offset = queue_offset
        self._file = file
        return file

    # Reading

    def units_from(self, offset: int) -> memoryview | None:
        """Units from number `offset` to the end of the file that holds it; None if that file is missing."""
        position = offset * QUEUE_UNIT_BYTES
        file = self.files.file_at(position)
        return file.view[position - file.base : file.written] if file is not None else None

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
        if last is None or not last.written or position_at(last, 0) >= position:
            return -1
        at = first_unit_at_or_after(last, 0, position)
        return position_at(last, at) if at < last.written else -1

    def next_file_offset(self, offset: int) -> int:
        """Number of the first unit of the following file (rollNextFile)."""
        units = self.files.file_bytes // QUEUE_UNIT_BYTES
        return offset + units - offset % units

    # Ends and deletion

    def truncate(self, position: int) -> None:
        """Drop the units of records at or behind a log position."""
        if self.records_end <= position:
            return
        for number in range(len(self.files) - 1, -1, -1):
            file = self.files[number]
            keep = file.written
            while keep and position_at(file, keep - QUEUE_UNIT_BYTES) >= position:
                keep -= QUEUE_UNIT_BYTES
            if keep or not number:
                self.files.delete(number + 1, len(self.files))
                self.end_at(file.base + keep)
                return

    def end_at(self, byte: int) -> None:
        """End the queue at a byte of its files: a whole number of units."""
        self.files.truncate(byte)
        last = self.files[-1]
        newest = last if last.written or len(self.files) == 1 else self.files[-2]
        self.end_with(newest.read(max(newest.written - QUEUE_UNIT_BYTES, 0), newest.written))

    def end_with(self, newest_unit: bytes) -> None:
        """Set the counters to the end of the files; `newest_unit` is empty if they hold none."""
        self.max_offset = self.next_offset = self.files.end // QUEUE_UNIT_BYTES
        self._file = self.files[-1]
        self.records_end = -1
        if newest_unit:
            position, size, _ = UNIT.unpack(newest_unit)
            self.records_end = position + size

    def delete_files_before(self, log_start: int) -> None:
        """Delete files, never the last, whose newest unit lies before the log's start."""
        while len(self.files) > 1:
            first = self.files[0]
            if position_at(first, first.size - QUEUE_UNIT_BYTES) >= log_start:
                return
            self.files.delete_first()

    def correct_min_offset(self, log_start: int, emulate: int) -> None:
        """Move min_offset past units whose records have left the log (correctMinOffset of the line that `emulate`
        names).

        4.x changes nothing if all records of a queue have left the log; 5.x makes min and max equal.
        """
        if not self.files:
            return
        first, last = self.files[0], self.files[-1]
        if not first.written:
            # Recovery has cut the only units this queue had left; its numbers go on.
            self.min_offset = self.max_offset
            return
        start = first.base
        if emulate == 5:
            minimum = self.min_offset * QUEUE_UNIT_BYTES
            if minimum >= self.files.end:
                return
            if (
                last.written
                and log_start > 0
                and position_at(last, last.written - QUEUE_UNIT_BYTES) < log_start
            ):
                self.min_offset = self.max_offset
                return
            start = max(minimum, first.base)
            if minimum >= first.end or (
                minimum >= first.base
                and (log_start <= 0 or position_at(first, start - first.base) >= log_start)
            ):
                return
        at = first_unit_at_or_after(first, start - first.base, log_start)
        if at < first.written:
            self.min_offset = (first.base + at) // QUEUE_UNIT_BYTES

    def unmap(self) -> None:
        """Drop the maps of all files, of a queue that is used no more."""
        for file in self.files:
            file.unmap()

    def destroy(self) -> None:
        """Delete all files; the counters start again at 0."""
        self.files.delete_all()
        self._file = None
        self.min_offset = self.max_offset = self.next_offset = 0
        self.records_end = -1
