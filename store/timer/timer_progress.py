"""config/timerprogress: what was delivered since the checkpoint was written, for a start after a kill.

     0  moment     8   ms; every moment before this one has been delivered
     8  delivered  8   messages of this moment that have been delivered, in the order in which they were enqueued
    16  offset     8   messages of the timer topic before this one are in the timer log, or were delivered

Written after each step of delivery and never forced: it is true as long as the system's page cache lives, which also
holds the delivered messages. After a power loss it is not read: it may be newer than the log. No official class.
"""

import logging
import os
import struct
from pathlib import Path
from typing import Final

from ..files import disk
from ..files.fields_file import read_fields

logger = logging.getLogger(__name__)

_FIELDS: Final = struct.Struct(">qqq")

Progress = tuple[int, int, int]
"""The fields in their order in the file."""


class TimerProgress:
    """The open file. Owner: the event-loop thread."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self._path = path
        disk.make_directory(path.parent)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def write(self, moment_ms: int, delivered: int, queue_offset: int) -> None:
        """Never raises: after a kill, messages are then delivered again."""
        try:
            disk.write_all(self._descriptor, _FIELDS.pack(moment_ms, delivered, queue_offset), 0)
        except OSError:
            logger.exception("cannot write %s", self._path)

    def close(self) -> None:
        os.close(self._descriptor)


def read_timer_progress(path: Path) -> Progress:
    """The fields of the file; zeros without one. Raises StoreError."""
    moment_ms, delivered, queue_offset = read_fields(path, _FIELDS) or (0, 0, 0)
    return moment_ms, delivered, queue_offset
