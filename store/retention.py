"""Deletes old log files: whole files, oldest first, never the newest.

A file is expired when it was last written more than `fileReservedTime` hours ago. Rounds are due during the hours of
`deleteWhen` (local time), when an administrator asks (329), and by how full the disk of the log, or else that of the
queues, is:

    above                          by default   effect
    diskMaxUsedSpaceRatio          75 %         expired files are deleted at any hour
    diskSpaceCleanForciblyRatio    85 %         files are deleted before they expire (if cleanFileForciblyEnable)
    diskSpaceWarningLevelRatio     90 %         the same, and the store refuses messages

The store accepts messages again at or below 90 % on the 4.9 line, where the two upper levels are fixed, and at or below
85 % on 5.x. One round deletes at most `deleteFileBatchMax` files and stops at the first that is not expired. Deleting
moves the min offsets of queues, after which CONSUME_FROM_LAST_OFFSET starts at the end. Mirrors
`CleanCommitLogService`.
"""

import logging
import math
import shutil
from datetime import datetime
from pathlib import Path
from typing import Final

from pocketmq.protocol.message.record import MIN_RECORD_BYTES

from . import layout
from .clock import Clock
from .config import StoreConfig
from .message_store import MessageStore

_log = logging.getLogger("pocketmq.retention")

MANUAL_ROUNDS: Final = 20
"""Rounds that one request of an administrator causes."""
HOUR_MS: Final = 3_600_000
QUARTER_HOUR_MS: Final = HOUR_MS // 4


class Retention:
    """Decides and deletes for one store. Owned by the store's thread; `run` is due every `cleanResourceInterval`."""

    def __init__(
        self, config: StoreConfig, store: MessageStore, clock: Clock, disk: "SystemDisk | None" = None
    ) -> None:
        self._config = config
        self._store = store
        self._clock = clock
        self.disk = disk or (None if config.is_temporary else SystemDisk())
        self._manual_rounds = 0
        self._next_key: tuple[int, int, int, str] | None = None
        self._next_ms: int | None = None
        """What `next_due` has found for these settings and this log."""

    def used_ratio(self, path: Path) -> float:
        """As `SystemDisk.used_ratio`. Unknown for a temporary store, which then refuses and deletes nothing."""
        return -1.0 if self.disk is None else self.disk.used_ratio(path)

    def request_manual(self) -> None:
        """Delete expired files now and in the next rounds, at any hour."""
        self._manual_rounds = MANUAL_ROUNDS

    def run(self) -> int:
        """One round, if one is due; returns how many files were deleted."""
        wants_space, at_any_age = self._check_disks()
        if self._manual_rounds > 0:
            self._manual_rounds -= 1
        elif not (wants_space or self._is_the_hour(self._clock.now_ms())):
            return 0
        return self._delete(at_any_age=at_any_age)

    def next_due(self) -> int | None:
        """When the oldest file is expired and it is one of the hours of `deleteWhen`; `None` if only one file is left.

        Full disks and requests of administrators make a round earlier.
        """
        now_ms, config = self._clock.now_ms(), self._config
        if self._manual_rounds > 0:
            return now_ms
        key = (
            self._store.log_start,
            len(self._store.log.files),
            config.file_reserved_time,
            config.delete_when,
        )
        if key != self._next_key or (self._next_ms is not None and self._next_ms < now_ms):
            self._next_key, self._next_ms = key, self._next_round_ms(now_ms)
        return self._next_ms

    def _next_round_ms(self, now_ms: int) -> int | None:
        written_ms = self._oldest_written_ms()
        if written_ms is None:
            return None
        expired_ms = max(written_ms + self._config.file_reserved_time * HOUR_MS, now_ms)
        if self._is_the_hour(expired_ms):
            return expired_ms
        next_hour_ms = (
            expired_ms // QUARTER_HOUR_MS + 1
        ) * QUARTER_HOUR_MS  # time zones differ by quarter hours
        quarters = (next_hour_ms + number * QUARTER_HOUR_MS for number in range(24 * 4 + 4))
        return next((time_ms for time_ms in quarters if self._is_the_hour(time_ms)), None)

    def _check_disks(self) -> tuple[bool, bool]:
        """(delete now, also files that are not expired), by the fuller disk. Lets the store refuse or accept."""
        config = self._config
        warning, forcibly, normal = self._levels()
        is_used_up = self._store.admission.is_disk_used_up
        wants_space = at_any_age = False
        for path in (config.commit_log_dir, config.root / layout.CONSUME_QUEUE):
            ratio = self.used_ratio(path if path.exists() else config.root)
            if ratio > warning:
                is_used_up = at_any_age = True
            elif ratio > forcibly:
                at_any_age = True
                is_used_up = is_used_up and config.emulate >= 5
            else:
                is_used_up = False
            if ratio < 0 or ratio > normal:
                wants_space = True
                break
        if is_used_up != self._store.admission.is_disk_used_up:
            _log.log(
                logging.ERROR if is_used_up else logging.INFO,
                "the disk is %s: the store takes %s messages",
                f"more than {warning:.0%} full" if is_used_up else "less full",
                "no" if is_used_up else "its",
            )
            self._store.admission.refuse_while(disk_is_used_up=is_used_up)
        return wants_space, at_any_age and config.clean_file_forcibly_enable

    def _levels(self) -> tuple[float, float, float]:
        """Warning, forcible and normal level as shares, within their official bounds."""
        config = self._config
        warning, forcibly = config.disk_space_warning_level_ratio, config.disk_space_clean_forcibly_ratio
        if config.emulate < 5:
            warning, forcibly = 90, 85
        normal = config.disk_max_used_space_ratio
        return (
            min(max(warning, 35), 90) / 100,
            min(max(forcibly, 30), 85) / 100,
            min(max(normal, 10), 95) / 100,
        )

    def _is_the_hour(self, time_ms: int) -> bool:
        hour = datetime.fromtimestamp(time_ms / 1000).hour
        return any(
            part.strip().isdigit() and int(part) == hour for part in self._config.delete_when.split(";")
        )

    def _delete(self, *, at_any_age: bool) -> int:
        deleted = 0
        while deleted < self._config.delete_file_batch_max and (at_any_age or self._is_oldest_expired()):
            position = self._store.log_start
            if not self._store.delete_oldest_log_file():
                break
            _log.info("deleted the log file at %d; the log now begins at %d", position, self._store.log_start)
            deleted += 1
        return deleted

    def _is_oldest_expired(self) -> bool:
        written_ms = self._oldest_written_ms()
        if written_ms is None:
            return False
        return written_ms + self._config.file_reserved_time * HOUR_MS <= self._clock.now_ms()

    def _oldest_written_ms(self) -> int | None:
        """When the oldest file was last written, by the store's clock; `None` if only the newest file is left."""
        log = self._store.log
        if len(log.files) <= 1:
            return None
        if self._clock.is_virtual:
            # The file system's times are the wall's. The first message behind the file says when it was full.
            begun_ms = log.store_timestamp(log.files[1].base, MIN_RECORD_BYTES)
            if begun_ms > 0:
                return begun_ms
        return log.files[0].path.stat().st_mtime_ns // 1_000_000


class SystemDisk:
    """How full a disk is: one object, which a test can replace. Space that only root may use does not count, as for the
    JVM. Mirrors `UtilAll.getDiskPartitionSpaceUsedPercent`."""

    def used_ratio(self, path: Path) -> float:
        """Share of the disk below a folder that is used, in whole per cent rounded up (0.13); -1.0 if unknown."""
        try:
            disk = shutil.disk_usage(path)
        except OSError:
            return -1.0
        reachable = disk.used + disk.free
        return math.ceil(disk.used * 100 / reachable) / 100 if reachable else -1.0
