"""Bringing log, queues and index to one state after a stop of any kind.

    queues      end at their first impossible unit; the newest record any of them knows ends at M
    start       the newest log file from which reading on finds everything the queues or the index may lack
    scan        record by record with CRC, dispatching; the first position X that holds no record is the end
    cut         log, queues and index lose what lies at or behind X; bytes behind the ends are zeroed
    counters    each queue continues behind its last unit; min offsets move to the log's start

After a clean stop the start is the newest file whose first record lies at or before M; after a crash also at or
before the checkpoint's logicsPhysicalOffset (5.5), or, where an older broker left that 0, not newer than its
timestamps. Where the official broker would leave gaps (a deleted index, a record that begins exactly at M, more than
ten files of lag) this one goes back further. Official methods: recoverNormally, recoverAbnormally. Owner: the caller
of `MessageStore.open()`.
"""

import gc
import logging
import time
from collections.abc import Iterator
from itertools import islice, takewhile

import msgspec
from pocketmq.core.plain_records import LoggedRecord
from pocketmq.protocol.message.flags import is_queued
from pocketmq.protocol.message.record import (
    BLANK,
    INVALID,
    has_valid_crc_property,
    measure_record,
    store_timestamp_of,
)

from .. import layout
from ..config import StoreConfig
from ..files import disk
from ..files.lost_files import LostFiles
from ..files.mapped_file import MappedFile
from ..log.record_scan import scan_records
from ..lookup.consume_queue import ConsumeQueue
from ..lookup.log_dispatch import RECORDS_AT_ONCE, StoreParts
from .checkpoint import Checkpoint
from .damage import LogDamage
from .queue_repair import drop_unforced, restore_ends

logger = logging.getLogger(__name__)

_CLEAN_SCAN_BYTES = 64 << 20
"""How much of the log's end is scanned after a clean stop, when all of it had been forced."""
_SECONDS_BETWEEN_LINES = 1.0


class RecoveryReport(msgspec.Struct, frozen=True):
    """What recovery did, for the log line at start and for tests."""

    clean: bool
    intact: bool
    """Whether every written page was kept: the stop was clean, or only the process died."""
    scanned_from: int
    end: int
    scanned_records: int
    dispatched_records: int
    cut_bytes: int
    """Bytes that looked written behind the last valid record of its file; 0 for an undamaged log."""
    placeholders: int
    """Lost messages in the middle of the log."""


class Recovery:
    """One run over one store, before anything is appended."""

    def __init__(self, config: StoreConfig, parts: StoreParts, checkpoint: Checkpoint) -> None:
        self._config = config
        self._log, self._queues, self._index, self._dispatcher, self._log_dispatch = parts
        self._checkpoint = checkpoint
        self._check_crc = config.check_crc_on_recover
        self._verify_prop_crc = config.check_crc_on_recover and config.force_verify_prop_crc
        self._has_light_queues = config.has_light_queues
        self._indexed_to = -1
        self._lost = LostFiles(config.commit_log_dir.parent / layout.LOST)
        self._damage = LogDamage(
            self._queues, self._lost, self._measure, has_crc=config.enabled_append_prop_crc
        )
        self._known_end = 0
        """Records before this log position were stored: a place without one is damaged, not torn."""
        self._cuts_sound = False
        """Whether sound records are behind the end."""
        self._queues_by_topic: dict[bytes, dict[int, ConsumeQueue]] = {}
        self._scanned = 0
        self._next_line_at = 0.0
        self._dispatched = 0

    def run(self, *, clean: bool, intact: bool, marks_are_ours: bool) -> RecoveryReport:
        """Call it right after the files were loaded. Raises StoreError if a queue file cannot be made.

        `clean` says that the last stop was clean; `intact` that every written page was kept, even if it was not;
        `marks_are_ours` that this program wrote the checkpoint: it moves byte 40 only once log and queues are forced
        up to it.
        """
        rebuild_index_from = self._index.load(
            intact=intact, flushed_timestamp=self._checkpoint.index_msg_timestamp
        )
        if not self._index.enabled:
            self._indexed_to = self._log.files.end
        elif rebuild_index_from is None and self._index.files:
            self._indexed_to = self._index.last_update()[1]
        if not self._log.files:
            # Queues without a log would promise messages that cannot be read.
            self._queues.delete_all()
            self._index.truncate(0)
            self._log.use_last_file()
            self._log.prepare_first()
            return RecoveryReport(clean, intact, 0, 0, 0, 0, 0, 0)
        rebuild_queues_from = restore_ends(self._queues, self._log.start)
        begins = (rebuild_index_from, rebuild_queues_from)
        rebuild_from = min((begin for begin in begins if begin is not None), default=None)
        queues_end = self._queues.records_end()
        marked = self._checkpoint.logics_physical_offset if marks_are_ours else 0
        self._known_end = max(queues_end, marked) if intact else marked
        dispatch_from = queues_end if clean else self._log.start
        if rebuild_from is not None:
            dispatch_from = min(dispatch_from, rebuild_from)
        start = self._start_file(queues_end, rebuild_from, clean=clean)
        self._lower_marks(rebuild_index_from, rebuild_queues_from)
        if not intact:
            forced = max(start.base, self._checkpoint.logics_physical_offset if marks_are_ours else 0)
            for queue in self._queues:
                drop_unforced(queue, forced, self._log)
            dispatch_from = forced if rebuild_from is None else min(forced, rebuild_from)
        begin = start.base
        if clean and rebuild_from is None:
            begin = max(begin, self._queues.record_near(queues_end - _CLEAN_SCAN_BYTES))
        collects = gc.isenabled()
        gc.disable()  # a scan makes millions of objects, none of them in a cycle
        try:
            end, last_valid = self._scan(start, begin, dispatch_from)
        finally:
            if collects:
                gc.enable()
        cut_bytes = self._cut(end)
        if not clean or self._damage.placeholders:
            self._force_log(start)
        self._log.files.flushed = end
        self._checkpoint.confirm_physical_offset = last_valid
        self._queues.settle_counters(self._log.start)
        if not clean:
            # The queues are forced too, but by the flusher, before it moves a mark of the checkpoint.
            for queue in self._queues:
                queue.files.count_as_unforced()
        self._dispatcher.position = end
        return RecoveryReport(
            clean,
            intact,
            begin,
            end,
            self._scanned,
            self._dispatched,
            cut_bytes,
            self._damage.placeholders,
        )

    def _force_log(self, start: MappedFile) -> None:
        """The page cache may hold what the disk does not: a power loss now must not undo this recovery."""
        for file in self._log.files.from_position(start.base):
            file.sync()
        folder = self._log.files.directory
        disk.force_directory(folder)  # files behind the cut must not come back
        disk.force_directory(folder.parent)  # its maker may have died before it did this

    def _start_file(self, queues_end: int, rebuild_from: int | None, *, clean: bool) -> MappedFile:
        """The newest file that is old enough, never further back than commitLogRecoverMaxNum if that is set."""
        files = self._log.files
        tries = self._config.commit_log_recover_max_num or len(files)
        for file in reversed(files[1:]):
            tries -= 1
            if tries <= 0 or self._is_old_enough(file, queues_end, rebuild_from, clean=clean):
                return file
        return files[0]

    def _is_old_enough(
        self, file: MappedFile, queues_end: int, rebuild_from: int | None, *, clean: bool
    ) -> bool:
        if self._measure(file, 0) <= 0:
            return False
        store_timestamp = store_timestamp_of(file.view)
        if store_timestamp == 0 or file.base > queues_end:
            return False
        if rebuild_from is not None and file.base > rebuild_from:
            return False
        checkpoint = self._checkpoint
        if (
            self._config.message_index_enable
            and self._config.message_index_safe
            and store_timestamp > checkpoint.index_msg_timestamp
        ):
            return False
        if clean:
            return True
        if checkpoint.logics_physical_offset > 0:
            return file.base <= checkpoint.logics_physical_offset
        return store_timestamp <= checkpoint.min_timestamp

    def _lower_marks(self, rebuild_index_from: int | None, rebuild_queues_from: int | None) -> None:
        """Files that are filled again are not on disk until the flusher forces them: until then no mark covers them."""
        checkpoint = self._checkpoint
        if rebuild_index_from is not None:
            checkpoint.index_msg_timestamp = min(checkpoint.index_msg_timestamp, self._index.last_update()[0])
        if rebuild_queues_from is not None:
            checkpoint.lower(rebuild_queues_from)
            checkpoint.logics_msg_timestamp = 0
        checkpoint.flush()

    def _measure(self, file: MappedFile, at: int) -> int:
        size = measure_record(file.view, at, file.size, check_crc=self._check_crc)
        if size > 0 and self._verify_prop_crc:
            return size if has_valid_crc_property(file.view[at : at + size]) else INVALID
        return size

    def _scan(self, start: MappedFile, begin: int, dispatch_from: int) -> tuple[int, int]:
        """Walk from a record in a file on; returns (end of valid data, start of the last valid record)."""
        files = self._log.files
        last_valid = begin
        self._queues_by_topic = {topic.encode(): queues for topic, queues in self._queues.topics.items()}
        for file in files.from_position(start.base):
            at = max(begin - file.base, 0)
            file.read_in_order(begins=True)
            replaced = -1
            while True:
                at, last_valid = self._scan_records(file, at, begin, dispatch_from, last_valid)
                damaged_to = self._find_damage_end(file, at) if at > replaced else None
                if damaged_to is None:
                    break
                replaced, before = at, last_valid - file.base
                time_ms = store_timestamp_of(file.view[before:]) if 0 <= before < at else 0
                if not self._damage.replace(file, at, damaged_to, time_ms):
                    break
            file.read_in_order(begins=False)
            self._log_dispatch.flush()
            if self._measure(file, at) != BLANK:
                return file.base + at, last_valid
        # The newest file is closed by its filler: the next record opens a new one.
        return file.base + file.size, last_valid

    def _scan_records(
        self, file: MappedFile, at: int, begin: int, dispatch_from: int, last_valid: int
    ) -> tuple[int, int]:
        """Walk to the first place in a file without a record; (that byte, start of the last valid record)."""
        records: Iterator[LoggedRecord] = scan_records(file.view, at, file.size, check_crc=self._check_crc)
        if self._verify_prop_crc:
            view = file.view
            records = takewhile(lambda one: has_valid_crc_property(view[one[0] : one[0] + one[1]]), records)
        while piece := list(islice(records, RECORDS_AT_ONCE)):
            lacking = self._lacking(piece, file.base, dispatch_from)
            self._log_dispatch.add_all(lacking, file.base)
            self._dispatched += len(lacking)
            self._scanned += len(piece)
            last_valid = file.base + piece[-1][0]
            at = piece[-1][0] + piece[-1][1]
            self._log_progress(begin, last_valid)
        return at, last_valid

    def _find_damage_end(self, file: MappedFile, at: int) -> int | None:
        """Where the damage ends that begins at a byte of a file; None if the filler is there, or the log's end."""
        if self._measure(file, at) == BLANK:
            return None
        end = self._damage.find_sound_record(file, at)
        if end is None:
            later = self._log.files.from_position(file.base + file.size)
            if any(
                self._measure(one, 0) > 0 or self._damage.find_sound_record(one, 0) is not None
                for one in later
            ):
                end = file.size
        if end is not None:
            if file.base + end < self._known_end:
                return end
            self._cuts_sound = True
            return None
        if file.base + at < self._known_end:
            end = self._damage.find_known_end(file, at)
        return end if end is not None and end > at else None

    def _lacking(self, records: list[LoggedRecord], base: int, dispatch_from: int) -> list[LoggedRecord]:
        """Those of consecutive records that queues or index may lack."""
        indexed_to, first = self._indexed_to, base + records[0][0]
        if first >= dispatch_from and first > indexed_to:
            return records
        return [
            record
            for record in records
            if (position := base + record[0]) >= dispatch_from
            and (position > indexed_to or not self._is_dispatched(record, position))
        ]

    def _log_progress(self, start: int, position: int) -> None:
        """At most one line a second: after a crash, reading the log may take minutes."""
        now = time.monotonic()
        if now < self._next_line_at:
            return
        if self._next_line_at:
            logger.info(
                "recovery has read %d of at most %d MiB of the log",
                (position - start) >> 20,
                (self._log.files.end - start) >> 20,
            )
        self._next_line_at = now + _SECONDS_BETWEEN_LINES

    def _is_dispatched(self, record: LoggedRecord, position: int) -> bool:
        """Whether a record is already in its queue; the caller knows that the index has it.

        After a crash most records are; dispatching them all again would take twice as long.
        """
        if self._has_light_queues:
            return False
        _, _, queue_id, queue_offset, sys_flag, _, topic, _ = record
        if not is_queued(sys_flag):
            return True
        queue = self._queues_by_topic.get(topic, {}).get(queue_id)
        unit = queue.unit(queue_offset) if queue is not None else None
        return unit is not None and unit[0] == position

    def _cut(self, end: int) -> int:
        """Take everything at or behind `end` out of log, queues and index; returns the bytes lost, roughly."""
        files = self._log.files
        lost = sum(file.size for file in files if file.base > end and any(file.read(0, 8)))
        file = files.file_at(end)
        if file is not None and any(file.view[end - file.base : end - file.base + 8]):
            lost += file.size - (end - file.base)
        if lost:
            logger.warning("log cut at position %d: no valid record there, up to %d bytes dropped", end, lost)
        if self._cuts_sound:
            self._keep_tail(end)
        self._checkpoint.lower(end)
        self._checkpoint.flush()
        self._queues.truncate(end)
        files.truncate(end)
        self._log.use_last_file()
        rebuild_index_from = self._index.truncate(end)
        if rebuild_index_from is not None and self._index.enabled:
            self._lower_marks(rebuild_index_from, None)
            self._dispatcher.position = max(rebuild_index_from, self._log.start)
            self._log_dispatch.run(end)
        return lost

    def _keep_tail(self, end: int) -> None:
        """Move what is cut off to `lost/`: sound records are in it. Raises OSError."""
        for file in self._log.files:
            if file.base > end and any(file.read(0, 8)):
                self._lost.move(file.base, file.path)
            elif file.base <= end < file.base + file.size:
                for begin, stop in file.written_ranges(end - file.base):
                    self._lost.keep(file.base + begin, file.view[begin:stop])
        logger.warning("what was behind position %d is kept in %s", end, self._lost.folder)
