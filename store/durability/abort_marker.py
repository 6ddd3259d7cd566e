"""The file `abort`: it exists while a store is open, so one found at the start means that the last stop was a crash.

Its words also say whether the system's page cache survived that crash. Owner: the event-loop thread, except
`mark_unclean`, which the flusher calls.
"""

import logging
import os
from pathlib import Path

from .. import layout
from ..files import disk

logger = logging.getLogger(__name__)

_WORDS = 3


class AbortMarker:
    """The file `abort`: process id (as 5.x writes it), boot id, own inode. Official brokers never read it.

    If boot and inode are still the same, only the process died: the system's page cache survived, and with it all
    that was written through the maps. A copied directory or a machine that went down does not pass.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / layout.ABORT

    def exists(self) -> bool:
        return self._path.exists()

    def is_ours(self) -> bool:
        """Whether this program wrote the marker, and no disk failed afterwards."""
        try:
            return len(self._path.read_bytes().split()) == _WORDS
        except OSError:
            return False

    def has_only_process_died(self) -> bool:
        """True if this program left `abort` in this directory since the machine was started."""
        try:
            words = self._path.read_text().split()
            inode = str(self._path.stat().st_ino)
        except (OSError, UnicodeDecodeError):
            return False
        return bool(_boot_id()) and words[1:] == [_boot_id(), inode]

    def create(self) -> None:
        """Write the marker and force it to disk: without it, a start after a power loss would trust the queues.

        Raises OSError and DiskFailedError.
        """
        with self._path.open("w") as file:
            file.write(f"{os.getpid()} {_boot_id()} {os.fstat(file.fileno()).st_ino}")
            file.flush()
            disk.force_file(file.fileno(), self._path)
        disk.force_directory(self._path.parent)

    def mark_unclean(self) -> None:
        """Memory and disk differ: keep the marker, but make `has_only_process_died` false. Never raises."""
        try:
            with self._path.open("w") as file:
                file.write(str(os.getpid()))
        except OSError:
            logger.exception("cannot write %s", self._path)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def _boot_id() -> str:
    """Linux's id of this run of the machine; empty elsewhere."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
