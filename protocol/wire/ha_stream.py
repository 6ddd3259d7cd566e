"""The HA port's own protocol: the bytes of the log, copied from master to slave. No remoting frames.

    slave -> master    | int64 P |                              the slave's log ends at P
    master -> slave    | int64 P | int32 n | n bytes of log |   the log from P on; n = 0: a keep-alive

There is no greeting. The slave's first number is where it continues; an empty slave sends 0 and gets the master's
newest file from its start. Parts are cut by size, not at records, and never reach beyond a log file. Official classes:
DefaultHAConnection, DefaultHAClient. When each side sends: `broker/cluster/replication_master.py` and
`broker/cluster/replication_slave.py`.
"""

import struct
from collections.abc import Iterator
from typing import Final

from ..errors import FrameError

PART_HEAD: Final = struct.Struct(">qi")
"""Of a part: the position at which it begins, and how many bytes of log follow."""
REPORT: Final = struct.Struct(">q")
"""Of a slave: where its log ends."""
MAX_PART_BYTES: Final = 4 << 20
"""The receive buffer of an official slave; masters send 32 KiB at a time unless configured otherwise."""


class PartReader:
    """Cuts what a master sends into parts, however the bytes are split."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, memoryview]]:
        """(position, bytes of log) of each part that is complete; a view is good until the next call.

        Raises FrameError for a size that no master sends: the stream cannot be read any further.
        """
        view = memoryview(self._rest + data if self._rest else data)
        at = 0
        while at + PART_HEAD.size <= len(view):
            position, size = PART_HEAD.unpack_from(view, at)
            if not 0 <= size <= MAX_PART_BYTES or position < 0:
                raise FrameError(f"part of {size} bytes at position {position}")
            end = at + PART_HEAD.size + size
            if end > len(view):
                break
            yield position, view[at + PART_HEAD.size : end]
            at = end
        self._rest = bytes(view[at:])


class ReportReader:
    """Reads a slave's numbers."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> int | None:
        """The newest complete number, or None. It supersedes older ones."""
        data = self._rest + data
        whole = len(data) - len(data) % REPORT.size
        self._rest = data[whole:]
        if not whole:
            return None
        (position,) = REPORT.unpack_from(data, whole - REPORT.size)
        return int(position)
