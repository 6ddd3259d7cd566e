"""config/timercheck: how far the timer has come.

     0  lastReadTimeMs          8   every moment before this one has been delivered
     8  lastTimerLogFlushPos    8   the timer log is on disk up to here, and the wheel knows all of it
    16  lastTimerQueueOffset    8   messages of the timer topic before this one are in the timer log, or were delivered
    24  masterTimerQueueOffset  8   the same of the master
    32  stateVersion            8   DataVersion of this file
    40  timestamp               8
    48  counter                 8
    56  zeros up to 4096

Official class: TimerCheckpoint.
"""

import struct
from pathlib import Path
from typing import Final

import msgspec

from ..files import disk
from ..files.fields_file import decode_fields, read_fields, write_fields

_FIELDS: Final = struct.Struct(">qqqqqqq")
assert _FIELDS.size == 56


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
    """The fields of the file; None without a file. Raises StoreError."""
    fields = read_fields(path, _FIELDS)
    return None if fields is None else TimerCheckpoint(*fields)


def write_timer_checkpoint(path: Path, checkpoint: TimerCheckpoint) -> None:
    """Write the file and force it to disk; any thread, one call at a time. Raises OSError, DiskFailedError."""
    disk.make_directory(path.parent)
    write_fields(path, checkpoint.encode())
