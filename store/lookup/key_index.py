"""The key index: from a key to the log positions of the messages that carry it.

A key is `topic#key`; from 5.5 on the tags are indexed, too, as `topic#T#tags`. The hash is the absolute value of Java's
string hash. Hashes collide: the caller of `query` compares the keys of what it gets. The files (`index_file.py`) are
named after the time they were made (17 digits, local time) and filled one after the other. Official class:
IndexService. Owner: the event-loop thread, except `flush`.
"""

import logging
import mmap
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from pocketmq.core.key_hash import hash_starts, key_hash
from pocketmq.core.records import KEY, key_hashes
from pocketmq.protocol.message.flags import TRANSACTION_MASK, TRANSACTION_ROLLBACK

from .. import layout
from ..clock import Clock
from ..config import StoreConfig
from ..errors import StoreError
from ..files import disk
from .index_file import EMPTY_HEADER, IndexEntry, IndexFile, IndexHeader, index_file_bytes

logger = logging.getLogger(__name__)


IndexMark = tuple[int, IndexHeader | None]
"""How many files, and the header of the last one."""
_QUICKLY_TAKEN_BACK = 100
"""Up to so many entries are taken back one by one; beyond, their file is deleted."""


class KeyIndex:
    """The index files in order of time; the last one is written to."""

    def __init__(self, config: StoreConfig, clock: Clock) -> None:
        self._directory = config.root / layout.INDEX
        self._slots = config.max_hash_slot_num
        self._units = config.max_index_num
        self._index_tags = config.emulate == 5
        self._clock = clock
        self.files: list[IndexFile] = []
        self.unflushed: list[IndexFile] = []
        """Full files that the flusher has yet to force to disk."""
        self.enabled = config.message_index_enable

    def load(self, *, intact: bool, flushed_timestamp: int) -> int | None:
        """Open the files. Returns the log position the index must be rebuilt from, or None if it is whole.

        `intact` says that no written page was lost. Otherwise a file with entries newer than the checkpoint's
        indexMsgTimestamp is deleted, as in the official broker; unlike there, its entries are put back from its first
        position on. So are those of a file that was cut short, or whose head is damaged. A missing directory is rebuilt
        from the log's start. Raises StoreError for a file that is too long.
        """
        missing = not self._directory.is_dir()
        disk.make_directory(self._directory)
        rebuild_from = 0 if missing else None
        for path in sorted(path for path in self._directory.iterdir() if path.is_file()):
            if not path.name.isdecimal():
                logger.warning("%s is no index file: left alone", path)
                continue
            if 0 < path.stat().st_size < index_file_bytes(self._slots, self._units):
                logger.warning("%s was cut short: its entries are put back from the log", path)
                rebuild_from = rebuild_from if rebuild_from is not None else self.last_update()[1]
                path.unlink()
                continue
            file = IndexFile(path, self._slots, self._units)
            torn = not intact and (
                file.end_timestamp > flushed_timestamp
                or file.count <= 1
                # A file begun after the mark starts with the time of its predecessor, which may be the mark.
                or (file.end_timestamp == flushed_timestamp and not file.full)
            )
            damaged = not file.is_sound or not (torn or rebuild_from is not None or file.drop_uncounted())
            if damaged:
                logger.warning("the head of %s is damaged: its entries are put back from the log", path)
            if torn or damaged or rebuild_from is not None:
                if rebuild_from is None:
                    rebuild_from = max(0 if damaged else file.begin_position, self.last_update()[1])
                file.file.delete()
                continue
            self.files.append(file)
        if not intact and rebuild_from is None:
            rebuild_from = self.last_update()[1]  # a newer file may be lost without a trace
        # Files filled by the process before this one may be in the page cache only; the last file is forced anyway.
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

    def hashes_of(self, topic: str, properties: Mapping[str, str], sys_flag: int) -> list[int]:
        """Hashes of the keys that a message is indexed by."""
        if sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK:
            return []
        return key_hashes(properties, *self.key_starts(topic))

    def key_starts(self, topic: str) -> tuple[int, int]:
        """The hashes of what stands before a key and before tags in a key of the index; -1 for what is not indexed."""
        if not self.enabled:
            return -1, -1
        of_keys, of_tags = hash_starts(topic)
        return of_keys, of_tags if self._index_tags else -1

    def put_keys(self, keys: bytes, store_timestamp: int) -> None:
        """`put` for records of one moment that no file has; `keys` as in `core/records.py`."""
        if not self.files or not self.files[-1].add_keys(keys, store_timestamp):
            of_records = groupby(KEY.iter_unpack(keys), itemgetter(1))
            self.put(
                [
                    ([key_hash for key_hash, _ in of_record], position, store_timestamp)
                    for position, of_record in of_records
                ]
            )

    def put(self, entries: Sequence[IndexEntry]) -> None:
        """Index messages in log order; those that the newest file already has are skipped.

        Raises StoreError if no file can be made; the entries before are then in the index.
        """
        left = self.files[-1].add(entries) if self.files else entries
        while left:
            left = self._add_file().add(left)

    def _add_file(self) -> IndexFile:
        previous = self.files[-1] if self.files else None
        name = _file_name(self._clock.now_ms())
        # Names must differ and rise: two files within one millisecond, a clock set back, or the hour that clocks repeat
        # in autumn would break that. The name need not be a time.
        if previous is not None:
            name = max(name, _following_name(previous.file.path.name))
        while (path := self._directory / name).exists():
            name = _following_name(name)
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

    def mark(self) -> IndexMark:
        """The present state, for `go_back`."""
        return len(self.files), self.files[-1].header if self.files else None

    def go_back(self, mark: IndexMark) -> list[mmap.mmap]:
        """Forget the entries added since `mark`; not if files were deleted meanwhile because the log no longer has
        their messages. Returns the maps of deleted files: dropping them frees their memory, which takes long."""
        deleted: list[mmap.mmap] = []
        number, header = mark
        if len(self.files) < number:
            return deleted
        if header is None and self.files and self.files[0].count <= _QUICKLY_TAKEN_BACK:
            number, header = 1, EMPTY_HEADER
        while len(self.files) > number:
            file = self.files.pop()
            if file in self.unflushed:
                self.unflushed.remove(file)
            memory = file.file.delete_keeping_map()
            if memory is not None:
                deleted.append(memory)
        if header is not None and self.files[-1].count > header[-1]:
            self.files[-1].go_back(header)
        return deleted

    def query(self, topic: str, key: str, limit: int, begin_ms: int, end_ms: int, *, tags: bool) -> list[int]:
        """Log positions of messages whose key may be `key`, newest file first (IndexService.queryOffset)."""
        wanted = key_hash(hash_starts(topic)[tags], key)
        found: list[int] = []
        for file in reversed(self.files):
            if file.overlaps(begin_ms, end_ms):
                file.find(wanted, begin_ms, end_ms, limit, found)
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
        while unflushed := self.unflushed[:1]:
            unflushed[0].file.sync()
            if unflushed[0] in self.unflushed:  # the owner may have deleted the file meanwhile
                self.unflushed.remove(unflushed[0])
        files[-1].file.sync()
        return safe_timestamp


def _file_name(moment_ms: int) -> str:
    moment = datetime.fromtimestamp(moment_ms // 1000)
    return f"{moment:%Y%m%d%H%M%S}{moment_ms % 1000:03d}"


def _following_name(name: str) -> str:
    return f"{int(name) + 1:017d}"
