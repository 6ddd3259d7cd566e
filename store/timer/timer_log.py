"""The timer log: one unit for each timed message that is enqueued, in files of mappedFileSizeTimerLog bytes.

    timerlog/00000000000000000000

     0  size          4   52
     4  previous      8   position of the unit enqueued before for the same moment; -1: none
    12  magic         4   1; +2: stored again before its time (roll); +4: deletes another timed message
    16  enqueued at   8   ms, a multiple of the precision
    24  delay         4   ms from there to the moment of delivery; negative if the message was late
    28  position      8   of the message in the commit log
    36  message size  4
    40  topic hash    4   Java hash of the message's real topic
    44  zeros         8

A unit never crosses the end of a file: a file with less than 52 + 16 bytes left ends with int32 bytes left, 8 zeros and
int32 0xCBD43194. The units of one moment form a chain backwards; its end is in the wheel. Official class: TimerLog.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from pocketmq.protocol.message.record import BLANK_MAGIC

from ..files.mapped_file import MappedFile
from ..files.mapped_files import MappedFiles

UNIT: Final = struct.Struct(">iqiqiqiiq")
UNIT_BYTES: Final = 52
assert UNIT.size == UNIT_BYTES
NO_POSITION: Final = -1

MAGIC_DEFAULT: Final = 1
MAGIC_ROLL: Final = 2
MAGIC_DELETE: Final = 4

MAX_PRECISION_MS: Final = 1000
"""The longest timerPrecisionMs."""

_BLANK: Final = struct.Struct(">iqi")
_STEP_BYTES: Final = 1 << 20
_PREVIOUS_AT: Final = 4
_LONG: Final = struct.Struct(">q")
_PACK_UNIT: Final = UNIT.pack

NewUnit = tuple[int, int, int, int]
"""(magic, position in the commit log, size, topic hash)"""


class TimerUnit(msgspec.Struct, frozen=True, gc=False):
    """One unit; times in ms."""

    previous: int
    magic: int
    enqueued_at: int
    delay: int
    position: int
    size: int
    topic_hash: int

    @property
    def due_ms(self) -> int:
        """The moment in the wheel, which for a rolled unit is not yet that of delivery."""
        return self.enqueued_at + self.delay

    def is_for(self, out_ms: int | None) -> bool:
        """Whether a message with this TIMER_OUT_MS can be the one that was enqueued; always, if it is to be rolled.

        Another message may have got the place of one that a power loss took from the log.
        """
        if self.magic & MAGIC_ROLL:
            return True
        return out_ms is not None and 0 <= out_ms - self.due_ms < MAX_PRECISION_MS


class TimerLog:
    """One space of positions over the files of `timerlog/`. Owner: the event-loop thread."""

    def __init__(self, directory: Path, file_bytes: int) -> None:
        self.files = MappedFiles(directory, file_bytes, _STEP_BYTES)

    @property
    def end(self) -> int:
        """Position behind the newest unit."""
        return self.files.end

    def append(
        self, previous: int, enqueued_at: int, delay: int, units: Sequence[NewUnit]
    ) -> tuple[int, int]:
        """Write units of one moment, each behind the one before; returns the positions of the first and the last.

        Raises StoreError if the disk is full: `remove_from` forgets those that were written.
        """
        first, done = NO_POSITION, 0
        while done < len(units):
            file = self._file_with_room()
            at, room = file.written, (file.size - file.written - _BLANK.size) // UNIT_BYTES
            data: list[bytes] = []
            for magic, position, size, topic_hash in units[done : done + room]:
                data.append(
                    _PACK_UNIT(UNIT_BYTES, previous, magic, enqueued_at, delay, position, size, topic_hash, 0)
                )
                previous = file.base + at
                at += UNIT_BYTES
            file.reserve(at)
            file.memory[file.written : at] = b"".join(data)
            first = file.base + file.written if done == 0 else first
            file.written = at
            done += len(data)
        return first, previous

    def _file_with_room(self) -> MappedFile:
        """The last file if it has room for a unit, else the next one."""
        files = self.files
        file = files[-1] if files else files.add_file(0, UNIT_BYTES)
        left = file.size - file.written
        if left >= UNIT_BYTES + _BLANK.size:
            return file
        following = files.add_file(file.base + file.size, UNIT_BYTES)
        if left >= _BLANK.size:
            file.reserve(file.size)
            _BLANK.pack_into(file.map, file.written, left, 0, BLANK_MAGIC)
        file.written = file.size
        return following

    def remove_from(self, end: int) -> None:
        """Forget the units just written from `end` on, which the log's end was before them."""
        file = self.files[-1]
        if end >= file.base:
            file.written = end - file.base
        else:
            self.files.truncate(end)

    def read(self, position: int) -> TimerUnit | None:
        """The unit at a position; None if no unit begins there, because its file was deleted, for example."""
        file = self.files.file_at(position)
        if file is None or position + UNIT_BYTES > file.end:
            return None
        size, *values, _ = UNIT.unpack_from(file.view, position - file.base)
        if size != UNIT_BYTES or not 0 <= values[1] <= 15:
            return None
        return TimerUnit(*values)

    def previous(self, position: int) -> int:
        """Position of the unit enqueued before for the same moment; -1 at the beginning, or if the chain is broken."""
        file = self.files.file_at(position)
        if file is None or position + UNIT_BYTES > file.end:
            return NO_POSITION
        previous: int = _LONG.unpack_from(file.view, position - file.base + _PREVIOUS_AT)[0]
        return previous if previous < position else NO_POSITION

    def recover(self, begin: int) -> Iterator[tuple[int, TimerUnit]]:
        """Walk the units from `begin` on and cut the log behind the last whole one; call it after `load`."""
        files = self.files
        for file in list(files):
            at = max(begin - file.base, 0)
            if at >= file.size:
                continue
            while at + UNIT_BYTES <= file.size:
                unit = self.read(file.base + at)
                if unit is None or unit.previous >= file.base + at:
                    break
                yield file.base + at, unit
                at += UNIT_BYTES
            left, _, magic = _BLANK.unpack_from(file.view, at) if at + _BLANK.size <= file.size else (0, 0, 0)
            if magic != BLANK_MAGIC or left != file.size - at:
                files.truncate(file.base + at)
                return

    def cut_lost_units(self, is_kept: Callable[[TimerUnit], bool]) -> int:
        """Cut the newest units up to one that is kept; returns how many. Call it after `recover`."""
        cut = 0
        for file in reversed(self.files):
            units = min(file.written, file.size - _BLANK.size) // UNIT_BYTES
            for at in range((units - 1) * UNIT_BYTES, -1, -UNIT_BYTES):
                unit = self.read(file.base + at)
                if unit is not None and is_kept(unit):
                    if cut:
                        self.files.truncate(file.base + at + UNIT_BYTES)
                    return cut
                cut += 1
        if cut:
            self.files.truncate(self.files.start)
        return cut

    def last_unit(self) -> TimerUnit | None:
        """The newest unit."""
        if not self.files:
            return None
        file = self.files[-1]
        if not file.written and len(self.files) > 1:
            file = self.files[-2]
        count = min(file.written, file.size - _BLANK.size) // UNIT_BYTES
        return self.read(file.base + (count - 1) * UNIT_BYTES) if count else None

    def delete_before(self, log_start: int) -> None:
        """Delete the files all of whose messages have left the commit log, never the newest."""
        while len(self.files) > 1:
            file = self.files[0]
            count = (file.size - _BLANK.size) // UNIT_BYTES
            last = self.read(file.base + (count - 1) * UNIT_BYTES)
            if last is None or last.position >= log_start:
                return
            self.files.delete_first()
