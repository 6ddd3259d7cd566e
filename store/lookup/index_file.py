"""One file of the key index: a hash table on disk, with a chain of units for each slot.

    header      0  beginTimestamp 8 | endTimestamp 8 | beginPhyOffset 8 | endPhyOffset 8
               32  hashSlotCount 4 | indexCount 4, the number of the next free unit
    slots      40  int32 for each of S slots: number of the newest unit of the chain, 0 = empty
    units  40+4*S  20 bytes for each of N units, unit 0 unused:
                   key hash 4 | position 8 | seconds since beginTimestamp 4 | previous unit of the slot 4

The slot of a hash is its remainder by S. Official classes: IndexFile, IndexHeader. Owner: the event-loop thread,
except `file.sync`, which the flusher calls.
"""

import struct
from collections.abc import Sequence
from pathlib import Path

from pocketmq.core.index_entries import add_entries
from pocketmq.core.records import KEY, KEY_BYTES

from ..files.mapped_file import MappedFile

HEADER = struct.Struct(">qqqqii")
_INT = struct.Struct(">i")
INDEX_UNIT = struct.Struct(">iqii")
_PACK_HEADER, _PACK_UNIT, _PACK_INT = HEADER.pack_into, INDEX_UNIT.pack_into, _INT.pack_into
_READ_INT = _INT.unpack_from
_MAX_INT = 0x7FFFFFFF
_STEP_BYTES = 1 << 20
_MOST_UNCOUNTED = 200_000
"""Units of one append; a batch with more of them costs only the time to fill the file again."""
SLOTS_AT = HEADER.size
assert (SLOTS_AT, INDEX_UNIT.size) == (40, 20)

IndexEntry = tuple[Sequence[int], int, int]
"""What the index stores of one message: (key hashes, position, store timestamp ms)."""

IndexHeader = tuple[int, int, int, int, int, int]
"""The fields of a header in their order; the last is the number of the next free unit."""
EMPTY_HEADER: IndexHeader = (0, 0, 0, 0, 0, 1)
"""Of the first file before its first unit."""


def index_file_bytes(slots: int, units: int) -> int:
    """The size of a file."""
    return SLOTS_AT + 4 * slots + INDEX_UNIT.size * units


class IndexFile:
    """One file; its header is kept in fields and written to the file after every message or batch."""

    begin_timestamp: int
    end_timestamp: int
    begin_position: int
    end_position: int
    slots_used: int
    count: int

    def __init__(self, path: Path, slots: int, units: int) -> None:
        self.file = MappedFile(path.parent, path.name, 0, index_file_bytes(slots, units), _STEP_BYTES)
        self._slots = slots
        self._units_at = SLOTS_AT + 4 * slots
        self.capacity = units
        self.room = 0
        """Units, counted from the first, with room on disk; header and slots have room, too. 0: not known."""
        self._set_header(HEADER.unpack_from(self.file.view, 0))
        self.is_sound = 0 <= self.count <= units and self.begin_position <= self.end_position
        """False for a head that only damage can write."""
        if self.count <= 0:
            self.count = 1

    @property
    def full(self) -> bool:
        return self.count >= self.capacity

    def make_room(self, units: int) -> None:
        """Reserve room on disk for header, slots and the first `units` units. Raises StoreError."""
        wanted = min(units, self.capacity)
        if wanted > self.room:
            self.file.reserve(self._units_at + 20 * wanted)
            self.room = (self.file.reserved - self._units_at) // 20

    def continue_after(self, previous: "IndexFile") -> None:
        """A new file starts with the end of the one before it, so its first unit's time is relative to that."""
        self.begin_timestamp = self.end_timestamp = previous.end_timestamp
        self.begin_position = self.end_position = previous.end_position

    def add(self, entries: Sequence[IndexEntry]) -> Sequence[IndexEntry]:
        """Add a unit for each hash of each entry, in log order; returns the entries without room, for the next file.

        Entries that the file already has are skipped. The header is written once, after all units. The seconds of a
        unit count from the file's beginning, which its first unit moves only after its own seconds are computed
        (official behaviour). Raises StoreError if the disk has no room; the entries before have been added.
        """
        memory, slots, units_at, capacity = self.file.memory, self._slots, self._units_at, self.capacity
        first = count = self.count
        passed = 0
        for key_hashes, position, store_timestamp in entries:
            passed += 1
            if position <= self.end_position and (position < self.end_position or count > 1):
                continue
            wanted = count + len(key_hashes)
            if wanted > self.room:
                if count > first:
                    self._write_count(count)
                self.make_room(wanted)
            begin_timestamp = self.begin_timestamp
            seconds = (store_timestamp - begin_timestamp) // 1000 if begin_timestamp > 0 else 0
            if not 0 <= seconds <= _MAX_INT:
                seconds = 0 if seconds < 0 else _MAX_INT
            is_first, seconds_of_rest = count == 1, 0 if count == 1 else seconds
            left: Sequence[int] | None = None
            if wanted > capacity:
                key_hashes, left = key_hashes[: capacity - count], key_hashes[capacity - count :]
            for key_hash in key_hashes:
                slot_at = 40 + 4 * (key_hash % slots)
                (previous,) = _READ_INT(memory, slot_at)
                if not 0 < previous <= count:
                    previous = 0
                    self.slots_used += 1
                # The unit before the slot, so that `drop_uncounted` can take both back.
                _PACK_UNIT(memory, units_at + 20 * count, key_hash, position, seconds, previous)
                _PACK_INT(memory, slot_at, count)
                seconds = seconds_of_rest
                count += 1
            if key_hashes:
                if is_first:
                    self.begin_position, self.begin_timestamp = position, store_timestamp
                self.end_position, self.end_timestamp = position, store_timestamp
            if left:
                if count > first:
                    self._write_count(count)
                return [(left, position, store_timestamp), *entries[passed:]]
        if count > first:
            self._write_count(count)
        return ()

    def add_keys(self, keys: bytes, store_timestamp: int) -> bool:
        """`add` for records of one moment behind all that the file has; `keys` as in `core/records.py`.

        False, and nothing was added, if the file cannot hold all, or if they are its first. Raises StoreError, and then
        nothing was added, if the disk has no room.
        """
        count, added = self.count, len(keys) // KEY_BYTES
        if count <= 1 or count + added > self.capacity:
            return False
        if count + added > self.room:
            self.make_room(count + added)
        seconds = (store_timestamp - self.begin_timestamp) // 1000 if self.begin_timestamp > 0 else 0
        if not 0 <= seconds <= _MAX_INT:
            seconds = 0 if seconds < 0 else _MAX_INT
        self.slots_used += add_entries(
            self.file.memory, self._slots, self._units_at, count, keys, seconds, store_timestamp
        )
        _, self.end_position = KEY.unpack_from(keys, len(keys) - KEY_BYTES)
        self.end_timestamp = store_timestamp
        self.count = count + added
        return True

    def _write_count(self, count: int) -> None:
        self.count = count
        self.write_header()

    def drop_uncounted(self) -> bool:
        """Take back the units of a message or batch whose process died before the header was written. False, and
        nothing was taken back, if they are so many that the header must be damaged."""
        number = self.count
        uncounted: list[tuple[int, int, int]] = []
        while number < self.capacity:
            key_hash, *_, previous = unit = INDEX_UNIT.unpack_from(
                self.file.view, self._units_at + 20 * number
            )
            if not any(unit):
                break
            if len(uncounted) >= _MOST_UNCOUNTED:
                return False
            uncounted.append((number, SLOTS_AT + 4 * (key_hash % self._slots), previous))
            number += 1
        for number, slot_at, previous in reversed(uncounted):
            if _READ_INT(self.file.view, slot_at) == (number,):
                _PACK_INT(self.file.map, slot_at, previous)
            _PACK_UNIT(self.file.map, self._units_at + 20 * number, 0, 0, 0, 0)
        return True

    @property
    def header(self) -> IndexHeader:
        """The fields of the header, for `go_back`."""
        return (
            self.begin_timestamp,
            self.end_timestamp,
            self.begin_position,
            self.end_position,
            self.slots_used,
            self.count,
        )

    def go_back(self, header: IndexHeader) -> None:
        """Take back the units added since the header was this."""
        memory, slots, units_at = self.file.map, self._slots, self._units_at
        for number in range(self.count - 1, header[-1] - 1, -1):
            at = units_at + 20 * number
            key_hash, *_, previous = INDEX_UNIT.unpack_from(memory, at)
            _PACK_INT(memory, 40 + 4 * (key_hash % slots), previous)
            _PACK_UNIT(memory, at, 0, 0, 0, 0)
        self._set_header(header)
        self.write_header()

    def _set_header(self, header: IndexHeader) -> None:
        self.begin_timestamp, self.end_timestamp, self.begin_position, self.end_position = header[:4]
        self.slots_used, self.count = header[4:]

    def write_header(self) -> None:
        _PACK_HEADER(self.file.memory, 0, *self.header)

    def overlaps(self, begin_ms: int, end_ms: int) -> bool:
        return begin_ms <= self.end_timestamp and end_ms >= self.begin_timestamp

    def find(self, key_hash: int, begin_ms: int, end_ms: int, limit: int, found: list[int]) -> None:
        """Add to `found` the positions of units with this hash, newest first, until it holds `limit`.

        Walks at most as many units as the file holds; a damaged chain ends at the first impossible link.
        """
        memory = self.file.view
        (number,) = _INT.unpack_from(memory, SLOTS_AT + 4 * (key_hash % self._slots))
        while 0 < number < self.count and len(found) < limit:
            unit_hash, position, seconds, previous = INDEX_UNIT.unpack_from(
                memory, self._units_at + 20 * number
            )
            time_ms = self.begin_timestamp + seconds * 1000
            if seconds < 0:
                return
            if unit_hash == key_hash and begin_ms <= time_ms <= end_ms:
                found.append(position)
            if previous >= number or time_ms < begin_ms:
                return
            number = previous
