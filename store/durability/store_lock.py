"""The file `lock`: one store at a time has the directory open.

`lock` carries a POSIX record lock on its first byte, the kind the JDK takes, so an official broker and this program
keep each other out. Record locks belong to a process: a second store in the same process is kept out by a list here.
"""

import os
from pathlib import Path

from .. import layout
from ..errors import StoreLockedError, refused_by_system

try:
    import fcntl
except ImportError:  # Windows has no record locks; the list below still works within one process.
    fcntl = None  # type: ignore[assignment]

_locked_here: set[str] = set()


class StoreLock:
    """Held from `acquire` to `release`; the file stays. Owner: the event-loop thread."""

    def __init__(self, root: Path) -> None:
        self._path = root / layout.LOCK
        self._key = os.path.realpath(self._path)
        self._descriptor = -1

    def acquire(self) -> None:
        """Raises StoreLockedError if another store holds it, StoreError if the file cannot be opened or written."""
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
