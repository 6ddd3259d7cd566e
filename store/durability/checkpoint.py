"""The checkpoint file: up to where the other files are known to be on disk.

     0  physicMsgTimestamp    8   store time of the newest record when the log was last forced whole
     8  logicsMsgTimestamp    8   store time of the newest record in the queues when they were last forced whole
    16  indexMsgTimestamp     8   no index entry up to this time is missing on disk
    24  masterFlushedOffset   8   replication
    32  confirmPhyOffset      8   start of the last valid record that recovery found
    40  logicsPhysicalOffset  8   log position of the newest record in the queues when they were last forced (5.5)
    48  zeros up to 4096

Recovery after an unclean stop starts at these marks, so each is written only after what it vouches for. A field
that this program does not know keeps its bytes. Official class: StoreCheckpoint. Written by the flusher.
"""

import struct
from pathlib import Path
from typing import Self

import msgspec

from ..files.fields_file import make_fields_file, read_fields, write_fields

FIELDS = struct.Struct(">qqqqqq")
assert FIELDS.size == 48


class Checkpoint(msgspec.Struct):
    """The fields in memory; `flush` writes them out if one has changed. Owner: recovery, then the flusher's thread."""

    path: Path
    written: bytes = bytes(FIELDS.size)
    physic_msg_timestamp: int = 0
    logics_msg_timestamp: int = 0
    index_msg_timestamp: int = 0
    master_flushed_offset: int = 0
    confirm_physical_offset: int = 0
    logics_physical_offset: int = 0

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the file, or make it. A short file counts as followed by zeros, as in the official broker."""
        make_fields_file(path)
        fields = read_fields(path, FIELDS) or (0,) * 6
        return cls(path, FIELDS.pack(*fields), *fields)

    @property
    def min_timestamp(self) -> int:
        """The time up to which both log and queues are on disk, with the official margin of 3 s."""
        return max(min(self.physic_msg_timestamp, self.logics_msg_timestamp) - 3000, 0)

    def lower(self, position: int) -> None:
        """Recovery has cut the log: no mark may be behind its end."""
        self.logics_physical_offset = min(self.logics_physical_offset, position)
        self.confirm_physical_offset = min(self.confirm_physical_offset, position)

    def flush(self) -> None:
        """Write and force the fields if one has changed since the last time. Raises OSError, DiskFailedError."""
        fields = FIELDS.pack(*msgspec.structs.astuple(self)[2:])
        if fields != self.written:
            write_fields(self.path, fields)
            self.written = fields
