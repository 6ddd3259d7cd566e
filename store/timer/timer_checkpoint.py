"""How far the timer has come. config/timercheck, whose official class is TimerCheckpoint:

     0  lastReadTimeMs          8   every moment before this one has been delivered
     8  lastTimerLogFlushPos    8   the timer log is on disk up to here, and the wheel knows all of it
    16  lastTimerQueueOffset    8   messages of the timer topic before this one are in the timer log, or were delivered
    24  masterTimerQueueOffset  8   the same of the master
    32  stateVersion            8   DataVersion of this file
    40  timestamp               8
    48  counter                 8
    56  zeros up to 4096

config/timerprogress says what was delivered since then, for a start after a kill. It is written after each step of
delivery and never forced: it is true as long as the system's page cache lives, which also holds the delivered messages.
After a power loss it is not read: it may be newer than the log. No official class.

     0  moment     8   ms; every moment before this one has been delivered
     8  delivered  8   messages of this moment that have been delivered, in the order in which they were enqueued
    16  offset     8   messages of the timer topic before this one are in the timer log, or were delivered
"""

import logging
import os
import struct
from pathlib import Path
from typing import Final

import msgspec

from ..files import disk
from ..files.fields_file import decode_fields, read_fields, write_fields

logger = logging.getLogger(__name__)

_FIELDS: Final = struct.Struct(">qqqqqqq")
assert _FIELDS.size == 56
_PROGRESS: Final = struct.Struct(">qqq")


class TimerCheckpoint(msgspec.Struct, frozen=True):
    """The fields in their order in the file."""

    last_read_time_ms: int = 0
    last_timer_log_flush_position: int = 0
    last_timer_queue_offset: int = 0
    master_timer_queue_offset: int = 0
    state_version: int = 0
    version_timestamp: int = 0
    version_counter: int = 0

    def encode(self) -> bytes:
        """The 56 bytes, which are also the body of the reply to 60."""
        return _FIELDS.pack(*msgspec.structs.astuple(self))

    def next_version(self, now_ms: int) -> "TimerCheckpoint":
        return msgspec.structs.replace(
            self, version_timestamp=now_ms, version_counter=self.version_counter + 1
        )


def decode_timer_checkpoint(data: bytes) -> TimerCheckpoint:
    """The fields from the reply to 60 or the head of the file; missing bytes count as zeros."""
    return TimerCheckpoint(*decode_fields(data, _FIELDS))


def read_timer_checkpoint(path: Path) -> TimerCheckpoint | None:
    """The fields of timercheck; None without it. Raises StoreError."""
    fields = read_fields(path, _FIELDS)
    return None if fields is None else TimerCheckpoint(*fields)


def write_timer_checkpoint(path: Path, checkpoint: TimerCheckpoint) -> None:
    """Write the file and force it to disk; any thread, one call at a time. Raises OSError, DiskFailedError."""
    disk.make_directory(path.parent)
    write_fields(path, checkpoint.encode())


Progress = tuple[int, int, int]
"""The fields of timerprogress in their order."""


class TimerProgress:
    """The open timerprogress. Owner: the event-loop thread."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._path = path
        disk.make_directory(path.parent)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def write(self, moment_ms: int, delivered: int, queue_offset: int) -> None:
        """Never raises: after a kill, messages are then delivered again."""
        try:
            disk.write_all(self._descriptor, _PROGRESS.pack(moment_ms, delivered, queue_offset), 0)
        except OSError:
            logger.exception("cannot write %s", self._path)

    def close(self) -> None:
        os.close(self._descriptor)


def read_timer_progress(path: Path) -> Progress:
    """The fields of timerprogress; zeros without it. Raises StoreError."""
    moment_ms, delivered, queue_offset = read_fields(path, _PROGRESS) or (0, 0, 0)
    return moment_ms, delivered, queue_offset
