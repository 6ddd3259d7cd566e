"""Errors of the store: the class says what to do about it.

Every message is one line that names the path, because it is shown to the user unchanged.
"""

import errno
from pathlib import Path
from typing import Final

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)


class StoreError(Exception):
    """Root of the errors that this package raises about a store directory."""


class StoreLockedError(StoreError):
    """Another process (or another store in this one) has the directory open: stop it, or use another directory."""


class StoreDamagedError(StoreError):
    """A file of the store cannot be what the format says: restore it, or move it away."""


class FileSizeError(StoreDamagedError):
    """A log or queue file does not have the configured length: set the size it was made with."""


class DiskFullError(StoreError):
    """The disk, or the user's share of it, has no room: free some, and the store continues by itself."""


class DiskFailedError(StoreError):
    """The disk refused to keep what was written, and what it holds is unknown: check the disk, then start again."""

    @classmethod
    def of(cls, what: str, path: Path, error: OSError) -> "DiskFailedError":
        return cls(f"cannot {what} {path}: {error.strerror or error}")


class StoreClosedError(StoreError):
    """The store was used before `open()` or after `close()`: a bug of the caller."""


def system_error(what: str, path: Path, error: OSError) -> StoreError:
    """The StoreError for a refused system call, as in "cannot open PATH: Permission denied"."""
    kind = DiskFullError if error.errno in NO_ROOM else StoreError
    return kind(f"cannot {what} {path}: {error.strerror or error}")
