"""The folder `lost` beside the log: bytes that a start took out of the log, for a person to look at.

    lost/00000000000000001234     bytes that were at this position of the log; a second time: ....1234.1

Nothing reads or deletes them. No official class.
"""

import logging
import os
from pathlib import Path

from .. import layout
from . import disk

logger = logging.getLogger(__name__)


class LostFiles:
    """The folder is made with its first file. Owner: the caller of `MessageStore.open()`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, position: int, data: bytes | memoryview) -> None:
        """Write bytes and force them to disk. A disk that refuses them is logged: the bytes are damaged anyway."""
        try:
            path = self._path(position)
            with open(path, "wb", opener=_own) as file:
                file.write(data)
                file.flush()
                disk.force_file(file.fileno(), path)
            disk.force_directory(self.folder)
        except OSError:
            logger.exception("cannot keep the damaged bytes at log position %d", position)

    def move(self, position: int, path: Path) -> None:
        """Move a whole file of the log. Raises OSError."""
        os.replace(path, self._path(position))
        disk.force_directory(self.folder)

    def _path(self, position: int) -> Path:
        disk.make_directory(self.folder)
        path, number = self.folder / layout.file_name(position), 0
        while path.exists():
            number += 1
            path = self.folder / f"{layout.file_name(position)}.{number}"
        return path


def _own(path: str, flags: int) -> int:
    """Nobody else reads what was in a log that may have been closed to others."""
    return os.open(path, flags, 0o600)
