"""Who may use the directory, and whether the last one left in order: the files `lock` and `abort`.

`lock` carries a POSIX record lock on its first byte, the kind the JDK takes, so an official broker and this program
keep each other out. Record locks belong to a process: a second store in the same process is kept out by a list here.
`abort` exists while a store is open; finding one at the start means the last stop was a crash.
"""

import logging
import os
from pathlib import Path

from ..errors import StoreLockedError, refused_by_system
from ..files import disk

try:
    import fcntl
except ImportError:  # Windows has no record locks; the list below still works within one process.
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

_WORDS = 3
_locked_here: set[str] = set()


class StoreLock:
    """Held from `acquire` to `release`; the file stays."""

    def __init__(self, root: Path) -> None:
        self._path = root / "lock"
        self._key = os.path.realpath(self._path)
        self._descriptor = -1

    def acquire(self) -> None:
        """Raises StoreLockedError when someone else holds it."""
        if self._key in _locked_here:
            raise StoreLockedError(f"store {self._path.parent} is already open in this process")
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise refused_by_system("open", self._path, error) from error
        if fcntl is not None:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
            except OSError as error:
                os.close(descriptor)
                raise StoreLockedError(f"store {self._path.parent} is in use by another process") from error
        try:
            os.write(descriptor, b"lock")
        except OSError as error:
            os.close(descriptor)
            raise refused_by_system("write", self._path, error) from error
        self._descriptor = descriptor
        _locked_here.add(self._key)

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            _locked_here.discard(self._key)


class AbortMarker:
    """The file `abort`: process id (as 5.x writes it), boot id, own inode. Official brokers never read it.

    If boot and inode are still the same, only the process died: the system's page cache survived, and with it all
    that was written through the maps. A copied directory or a machine that went down does not pass.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / "abort"

    def exists(self) -> bool:
        return self._path.exists()

    def is_ours(self) -> bool:
        """Whether this program made it, and no disk failed afterwards."""
        try:
            return len(self._path.read_bytes().split()) == _WORDS
        except OSError:
            return False

    def only_process_died(self) -> bool:
        """True when `abort` was left by this program, in this directory, since the machine came up."""
        try:
            words = self._path.read_text().split()
            inode = str(self._path.stat().st_ino)
        except (OSError, UnicodeDecodeError):
            return False
        return bool(_boot_id()) and words[1:] == [_boot_id(), inode]

    def create(self) -> None:
        """On disk when this returns: after a power loss without it, the next start would trust the queues."""
        with self._path.open("w") as file:
            file.write(f"{os.getpid()} {_boot_id()} {os.fstat(file.fileno()).st_ino}")
            file.flush()
            disk.force_file(file.fileno(), self._path)
        disk.force_directory(self._path.parent)

    def distrust(self) -> None:
        """Keep the marker but not what makes `only_process_died` true: memory and disk differ. Never raises."""
        try:
            with self._path.open("w") as file:
                file.write(str(os.getpid()))
        except OSError:
            logger.exception("cannot write %s", self._path)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)


def _boot_id() -> str:
    """What Linux calls this run of the machine; empty elsewhere."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
