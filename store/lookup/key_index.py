"""The key index: from a key to the log positions of the messages that carry it.

    header      0  beginTimestamp 8 | endTimestamp 8 | beginPhyOffset 8 | endPhyOffset 8
               32  hashSlotCount 4 | indexCount 4, the number of the next free unit
    slots      40  int32 for each of S slots: number of the newest unit of the chain, 0 = empty
    units  40+4*S  20 bytes for each of N units, unit 0 unused:
                   key hash 4 | physicalOffset 8 | seconds since beginTimestamp 4 | previous unit of the slot 4

A key is `topic#key`; 5.x also indexes the tags, as `topic#T#tags`. The hash is the absolute value of Java's string
hash, the slot its remainder by S. Hashes may collide: whoever queries compares the keys of what it gets. Files are
named after the time they were made (17 digits, local time) and filled one after the other. Official classes:
IndexService, IndexFile, IndexHeader. Owner: the event-loop thread, except `flush`.
"""

import logging
import struct
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from pocketmq.protocol.message.flags import TRANSACTION_MASK, TRANSACTION_ROLLBACK
from pocketmq.protocol.message.properties import KEYS, TAGS, UNIQ_KEY

from ..clock import Clock
from ..config import StoreConfig
from ..errors import StoreError
from ..files.mapped_file import MappedFile
from .key_hash import KeyHash

logger = logging.getLogger(__name__)

HEADER = struct.Struct(">qqqqii")
_INT = struct.Struct(">i")
INDEX_UNIT = struct.Struct(">iqii")
_PACK_HEADER, _PACK_UNIT, _PACK_INT = HEADER.pack_into, INDEX_UNIT.pack_into, _INT.pack_into
_READ_INT = _INT.unpack_from
_MAX_INT = 0x7FFFFFFF
_STEP_BYTES = 1 << 20
assert (HEADER.size, INDEX_UNIT.size) == (40, 20)

IndexEntry = tuple[list[int], int, int]
"""What one message brings: (key hashes, position, store timestamp ms)."""


class IndexFile:
    """One file; its header is kept in fields and written through on every message."""

    __slots__ = (
        "_slots",
        "_units_at",
        "begin_position",
        "begin_timestamp",
        "capacity",
        "count",
        "end_position",
        "end_timestamp",
        "file",
        "room",
        "slots_used",
    )

    begin_timestamp: int
    end_timestamp: int
    begin_position: int
    end_position: int
    slots_used: int
    count: int

    def __init__(self, path: Path, slots: int, units: int) -> None:
        self.file = MappedFile(path.parent, path.name, 0, 40 + 4 * slots + 20 * units, _STEP_BYTES)
        self._slots = slots
        self._units_at = 40 + 4 * slots
        self.capacity = units
        self.room = 0
        """Units, counted from the first, that have their place on disk, with header and slots; 0 is not known."""
        (
            self.begin_timestamp,
            self.end_timestamp,
            self.begin_position,
            self.end_position,
            self.slots_used,
            self.count,
        ) = HEADER.unpack_from(self.file.view, 0)
        if self.count <= 0:
            self.count = 1

    @property
    def full(self) -> bool:
        return self.count >= self.capacity

    def make_room(self, units: int) -> None:
        """Take place on disk for header, slots and so many units, as far as the file goes. Raises StoreError."""
        wanted = min(units, self.capacity)
        if wanted > self.room:
            self.file.reserve(self._units_at + 20 * wanted)
            self.room = (self.file.reserved - self._units_at) // 20

    def continue_after(self, previous: "IndexFile") -> None:
        """A new file starts with the end of the one before it, so its first unit's time is relative to that."""
        self.begin_timestamp = self.end_timestamp = previous.end_timestamp
        self.begin_position = self.end_position = previous.end_position

    def add(self, key_hashes: list[int], position: int, store_timestamp: int) -> int:
        """Add a unit for each hash (none negative) and write the header; returns how many found room.

        The seconds of a unit are reckoned before its file's first unit moves the beginning, as officially. Raises
        StoreError when the disk has no room, and then nothing was added.
        """
        memory, slots, units_at, capacity = self.file.memory, self._slots, self._units_at, self.capacity
        first = count = self.count
        if count + len(key_hashes) > self.room:
            self.make_room(count + len(key_hashes))
        begin_timestamp = self.begin_timestamp
        seconds = (store_timestamp - begin_timestamp) // 1000 if begin_timestamp > 0 else 0
        if not 0 <= seconds <= _MAX_INT:
            seconds = 0 if seconds < 0 else _MAX_INT
        for key_hash in key_hashes:
            if count >= capacity:
                break
            slot_at = 40 + 4 * (key_hash % slots)
            (previous,) = _READ_INT(memory, slot_at)
            if not 0 < previous <= count:
                previous = 0
                self.slots_used += 1
            _PACK_UNIT(memory, units_at + 20 * count, key_hash, position, seconds, previous)
            _PACK_INT(memory, slot_at, count)
            if count == 1:
                self.begin_position = position
                self.begin_timestamp = store_timestamp
                seconds = 0
            count += 1
        if count > first:
            self.count = count
            self.end_position = position
            self.end_timestamp = store_timestamp
            self.write_header()
        return count - first

    def add_all(self, entries: Sequence[IndexEntry]) -> int:
        """Add entries in log order as `add` would one after the other, but write the header once.

        Stops before an entry that does not fit whole; the first of a file, which decides on its beginning, and one
        that is here already are left to `add`, too. Returns how many it took. Raises StoreError as `add` does.
        """
        memory, slots, units_at, capacity = self.file.memory, self._slots, self._units_at, self.capacity
        count, begin_timestamp = self.count, self.begin_timestamp
        if count <= 1 or not entries or entries[0][1] <= self.end_position:
            return 0
        self.make_room(count + sum([len(key_hashes) for key_hashes, _, _ in entries]))
        taken = 0
        for key_hashes, position, store_timestamp in entries:
            if count + len(key_hashes) > capacity:
                break
            taken += 1
            if not key_hashes:
                continue
            seconds = (store_timestamp - begin_timestamp) // 1000 if begin_timestamp > 0 else 0
            if not 0 <= seconds <= _MAX_INT:
                seconds = 0 if seconds < 0 else _MAX_INT
            for key_hash in key_hashes:
                slot_at = 40 + 4 * (key_hash % slots)
                (previous,) = _READ_INT(memory, slot_at)
                if not 0 < previous <= count:
                    previous = 0
                    self.slots_used += 1
                # The unit before the slot, so that `drop_uncounted` can take both back.
                _PACK_UNIT(memory, units_at + 20 * count, key_hash, position, seconds, previous)
                _PACK_INT(memory, slot_at, count)
                count += 1
            self.end_position, self.end_timestamp = position, store_timestamp
        self.count = count
        self.write_header()
        return taken

    def drop_uncounted(self) -> None:
        """Take back the units of a message whose process died before the header was written."""
        number = self.count
        uncounted = []
        while number < self.capacity:
            key_hash, *_, previous = unit = INDEX_UNIT.unpack_from(
                self.file.view, self._units_at + 20 * number
            )
            if not any(unit):
                break
            uncounted.append((number, 40 + 4 * (key_hash % self._slots), previous))
            number += 1
        for number, slot_at, previous in reversed(uncounted):
            if _READ_INT(self.file.view, slot_at) == (number,):
                _PACK_INT(self.file.map, slot_at, previous)
            _PACK_UNIT(self.file.map, self._units_at + 20 * number, 0, 0, 0, 0)

    def write_header(self) -> None:
        _PACK_HEADER(
            self.file.memory,
            0,
            self.begin_timestamp,
            self.end_timestamp,
            self.begin_position,
            self.end_position,
            self.slots_used,
            self.count,
        )

    def overlaps(self, begin_ms: int, end_ms: int) -> bool:
        return begin_ms <= self.end_timestamp and end_ms >= self.begin_timestamp

    def find(self, key_hash: int, begin_ms: int, end_ms: int, limit: int, found: list[int]) -> None:
        """Add to `found` the positions of units with this hash, newest first, until it holds `limit`.

        Walks at most as many units as the file holds; a damaged chain ends at the first impossible link.
        """
        memory = self.file.view
        (number,) = _INT.unpack_from(memory, 40 + 4 * (key_hash % self._slots))
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


class KeyIndex:
    """The index files in order of time; the last one is written to."""

    def __init__(self, config: StoreConfig, clock: Clock) -> None:
        self._directory = config.root / "index"
        self._slots = config.max_hash_slot_num
        self._units = config.max_index_num
        self._index_tags = config.emulate == 5
        self._clock = clock
        self._hashes = KeyHash()
        self.files: list[IndexFile] = []
        self.unflushed: list[IndexFile] = []
        """Full files that the flusher has yet to force to disk."""
        self.enabled = config.message_index_enable

    def load(self, *, intact: bool, flushed_timestamp: int) -> int | None:
        """Open the files. Returns the log position the index must be rebuilt from, or None if it is whole.

        `intact` says that no written page was lost. If one may be, a file with entries newer than the checkpoint's
        indexMsgTimestamp is deleted, as officially; unlike there, its entries are then put back from its first
        position on. A missing directory is rebuilt from the log's start.
        """
        missing = not self._directory.is_dir()
        self._directory.mkdir(parents=True, exist_ok=True)
        rebuild_from = 0 if missing else None
        for path in sorted(path for path in self._directory.iterdir() if path.is_file()):
            if not path.name.isdecimal():
                logger.warning("%s is no index file: left alone", path)
                continue
            file = IndexFile(path, self._slots, self._units)
            torn = not intact and (
                file.end_timestamp > flushed_timestamp
                or file.count <= 1
                # A file begun after the mark starts with the time of its predecessor, which may be the mark.
                or (file.end_timestamp == flushed_timestamp and not file.full)
            )
            if torn or rebuild_from is not None:
                if rebuild_from is None:
                    rebuild_from = max(file.begin_position, self.last_update()[1])
                file.file.delete()
                continue
            file.drop_uncounted()
            self.files.append(file)
        if not intact and rebuild_from is None:
            rebuild_from = self.last_update()[1]  # a newer file may be gone without a trace
        # What the process before us filled may be in the page cache only; the last file is forced anyway.
        self.unflushed = [file for file in self.files[:-1] if file.end_timestamp > flushed_timestamp]
        return rebuild_from if self.enabled else None

    def truncate(self, position: int) -> int | None:
        """Delete files with entries at or behind a log position; returns where rebuilding must begin, or None."""
        rebuild_from = None
        while self.files and self.files[-1].end_position >= position:
            file = self.files.pop()
            rebuild_from = file.begin_position
            file.file.delete()
        return rebuild_from

    def put(
        self,
        topic: str,
        properties: Mapping[str, str],
        position: int,
        store_timestamp: int,
        sys_flag: int,
    ) -> None:
        """Index one message: UNIQ_KEY, each blank-separated word of KEYS, and in 5.x the tags.

        A message the newest file has already is skipped. Raises StoreError when no file can be made.
        """
        wanted = self.hashes_of(topic, properties, sys_flag)
        if wanted is not None:
            self._put(wanted, position, store_timestamp)

    def hashes_of(self, topic: str, properties: Mapping[str, str], sys_flag: int) -> list[int] | None:
        """What a message is indexed by; None if by nothing."""
        unique_key, keys = properties.get(UNIQ_KEY), properties.get(KEYS)
        tags = properties.get(TAGS) if self._index_tags else None
        if not (unique_key or keys or tags) or sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK:
            return None
        hashes = self._hashes
        wanted = [hashes.of_unique(topic, unique_key)] if unique_key else []
        if keys and " " not in keys:
            wanted.append(hashes.of(topic, keys))
        elif keys:
            wanted += [hashes.of(topic, key) for key in keys.split(" ") if key]
        if tags:
            wanted.append(hashes.of_tags(topic, tags))
        return wanted

    def put_all(self, entries: Sequence[IndexEntry]) -> None:
        """Index many messages in log order, to the same bytes as `put` of each. Raises StoreError as that does."""
        done = self.files[-1].add_all(entries) if self.files else 0
        while done < len(entries):
            self._put(*entries[done])
            done += 1
            done += self.files[-1].add_all(entries[done:])

    def _put(self, wanted: list[int], position: int, store_timestamp: int) -> None:
        file = self.files[-1] if self.files else self._add_file()
        end = file.end_position
        if position < end or (position == end and file.count > 1):
            return
        added = file.add(wanted, position, store_timestamp)
        while added < len(wanted):
            wanted = wanted[added:]
            added = self._add_file().add(wanted, position, store_timestamp)

    def _add_file(self) -> IndexFile:
        previous = self.files[-1] if self.files else None
        moment_ms = self._clock.now_ms()
        # Names must differ and rise: two files within one millisecond, or a clock set back, would break that.
        while (path := self._directory / _file_name(moment_ms)).exists() or (
            previous is not None and path.name <= previous.file.path.name
        ):
            moment_ms += 1
        file = IndexFile(path, self._slots, self._units)
        try:
            file.make_room(1)
        except StoreError:
            file.file.delete()
            raise
        if previous is not None:
            file.continue_after(previous)
            self.unflushed.append(previous)
        file.write_header()
        self.files.append(file)
        return file

    def query(self, topic: str, key: str, limit: int, begin_ms: int, end_ms: int, *, tags: bool) -> list[int]:
        """Log positions of messages whose key may be `key`, newest file first (IndexService.queryOffset)."""
        key_hash = self._hashes.of_tags(topic, key) if tags else self._hashes.of(topic, key)
        found: list[int] = []
        for file in reversed(self.files):
            if file.overlaps(begin_ms, end_ms):
                file.find(key_hash, begin_ms, end_ms, limit, found)
            if file.begin_timestamp < begin_ms or len(found) >= limit:
                break
        return found

    def last_update(self) -> tuple[int, int]:
        """(timestamp ms, log position) of the newest entry; zeros without files."""
        if not self.files:
            return 0, 0
        return self.files[-1].end_timestamp, self.files[-1].end_position

    def delete_files_before(self, log_start: int) -> None:
        """Delete files, never the last, whose entries all point before the log's start."""
        while len(self.files) > 1 and self.files[0].end_position < log_start:
            self.files.pop(0).file.delete()

    def flush(self) -> int:
        """Force all entries to disk; returns the newest timestamp that is safe, 0 without any. Raises OSError.

        Called by the flusher while entries are being added: of the unfinished file only entries before its newest
        millisecond count as safe.
        """
        files = tuple(self.files)
        if not files:
            return 0
        safe_timestamp = files[-1].end_timestamp - 1
        while self.unflushed:
            self.unflushed[0].file.sync()
            self.unflushed.pop(0)
        files[-1].file.sync()
        return safe_timestamp


def _file_name(moment_ms: int) -> str:
    moment = datetime.fromtimestamp(moment_ms // 1000)
    return f"{moment:%Y%m%d%H%M%S}{moment_ms % 1000:03d}"
