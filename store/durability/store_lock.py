"""The file `lock`: one store at a time has the directory open.

`lock` carries a POSIX record lock on its first byte, the kind the JDK takes, so an official broker and this program
keep each other out. Record locks belong to a process: a second store in the same process is kept out by a list here.
They are also lost when the process closes any descriptor of the file, so nothing else may open it while it is locked.
"""

import os
import threading
from pathlib import Path

from .. import layout
from ..errors import StoreLockedError, system_error

try:
    import fcntl
except ImportError:  # Windows has no record locks; the list below still works within one process.
    fcntl = None  # type: ignore[assignment]

_locked_here: set[str] = set()
_changing = threading.Lock()
"""Held while the list is read and changed, and while `lock` is opened: two threads may open one directory."""


class StoreLock:
    """Held from `acquire` to `release`; the file stays. Owner: the event-loop thread."""

    def __init__(self, root: Path) -> None:
        self._path = root / layout.LOCK
        self._key = os.path.realpath(self._path)
        self._descriptor = -1

    def acquire(self) -> None:
        """Raises StoreLockedError if another store holds it, StoreError if the file cannot be opened or written."""
        with _changing:
            _refuse_if_locked_here(self._path)
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise system_error("open", self._path, error) from error
            try:
                _lock(descriptor, self._path, exclusive=True)
                os.write(descriptor, b"lock")
            except OSError as error:
                os.close(descriptor)
                raise system_error("write", self._path, error) from error
            except StoreLockedError:
                os.close(descriptor)
                raise
            self._descriptor = descriptor
            _locked_here.add(self._key)

    def release(self) -> None:
        with _changing:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
                _locked_here.discard(self._key)


def refuse_locked(root: Path) -> None:
    """Raises StoreLockedError if a store has the directory open, StoreError if the lock cannot be read."""
    path = root / layout.LOCK
    with _changing:
        _refuse_if_locked_here(path)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return
        except OSError as error:
            raise system_error("read", path, error) from error
        try:
            _lock(descriptor, path, exclusive=False)
        finally:
            os.close(descriptor)


def _refuse_if_locked_here(path: Path) -> None:
    if os.path.realpath(path) in _locked_here:
        raise StoreLockedError(f"store {path.parent} is already open in this process")


def _lock(descriptor: int, path: Path, *, exclusive: bool) -> None:
    if fcntl is None:
        return
    try:
        fcntl.lockf(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB, 1, 0)
    except OSError as error:
        raise StoreLockedError(f"store {path.parent} is in use by another process: stop it first") from error
