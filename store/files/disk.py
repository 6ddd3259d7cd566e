"""The system calls of the store beyond read and write: force to disk, reserve room, give advice.

*Force* means that a power loss cannot take it back: fsync, or fdatasync where the system has it. All forcing in this
package runs through `force_file` and `force_directory`, so a test replaces the disk in this module alone.
"""

import errno
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ..errors import DiskFailedError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
"""macOS: there fsync ends when the drive's cache has the bytes, which a power loss empties."""
FLUSHES_MAPS: Final = _FULL_SYNC is not None
"""Whether what was changed through a map must be flushed from it before the file is forced. Not on Linux."""


def full_sync(descriptor: int) -> None:
    """fsync down to the medium (macOS); where the file system cannot, as far as fsync goes."""
    assert _FULL_SYNC is not None
    try:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
        os.fsync(descriptor)


sync_descriptor = full_sync if FLUSHES_MAPS else getattr(os, "fdatasync", os.fsync)
"""fdatasync where the system has it; on Linux it also writes what was changed through a map."""

reserve_blocks = getattr(os, "posix_fallocate", None)
"""Reserves blocks (descriptor, start, length). Takes some microseconds for any length: blocks are not written."""
CANNOT_RESERVE: Final = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, errno.ENODEV)
"""The file system knows no reservation. Not an error: a full disk then shows at the write."""
_CANNOT_FORCE_DIRECTORIES: Final = (errno.EINVAL, errno.ENOTSUP)


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """A descriptor of a file, closed at the end of the block. Raises OSError."""
    descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0), 0o644)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def force_file(descriptor: int, path: Path) -> None:
    """Force the bytes of an open file to disk.

    Raises DiskFailedError. Do not try again: it would succeed without writing, as the pages are marked as written.
    """
    try:
        sync_descriptor(descriptor)
    except OSError as error:
        raise DiskFailedError.of("force", path, error) from error


def force_directory(path: Path) -> None:
    """Force the entries of a directory to disk: files made, renamed and removed.

    Raises DiskFailedError as `force_file` does, and OSError if the directory cannot be opened. Does nothing where the
    system cannot force directories (Windows, some network file systems) and for a directory that no longer exists.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except (PermissionError, FileNotFoundError):
        return
    try:
        (full_sync if FLUSHES_MAPS else os.fsync)(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_FORCE_DIRECTORIES:
            raise DiskFailedError.of("force", path, error) from error
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes, position: int) -> None:
    """Write all bytes at a position of an open file: the system may write a part and say nothing. Raises OSError."""
    while data:
        written = os.pwrite(descriptor, data, position)
        position += written
        data = data[written:]


def new_directories(path: Path) -> list[Path]:
    """Make a folder and those above it; returns the folders that hold a new one. Raises OSError.

    A new folder is on disk once the one above it is forced, too; the caller does that.
    """
    try:
        path.mkdir()
    except FileNotFoundError:
        if path.parent.is_dir():  # a file system that makes no folders: /proc
            raise
        return [*new_directories(path.parent), *new_directories(path)]
    except FileExistsError:
        if not path.is_dir():
            raise
        return []
    return [path.parent]


def make_directory(path: Path) -> None:
    """Make a folder and those above it, and force them to disk. Raises OSError, DiskFailedError."""
    for folder in new_directories(path):
        force_directory(folder)


def advise(memory: mmap.mmap, advice: str, start: int = 0, length: int | None = None) -> None:
    """Call madvise if the system has it.

    A map that is read at random must not fetch megabytes at each access: that costs the reader milliseconds, even
    if the bytes are only reserved room.
    """
    option = getattr(mmap, advice, None)
    if option is None:
        return
    try:
        memory.madvise(option, start, len(memory) - start if length is None else length)
    except OSError:
        pass  # advice may be ignored


def written_ranges(descriptor: int, start: int, end: int) -> list[tuple[int, int]]:
    """The parts between `start` and `end` that hold data, as far as the file system knows; all of it otherwise."""
    if start >= end:
        return []
    if not hasattr(os, "SEEK_DATA"):
        return [(start, end)]
    ranges = []
    try:
        while start < end:
            start = os.lseek(descriptor, start, os.SEEK_DATA)
            hole = os.lseek(descriptor, start, os.SEEK_HOLE)
            ranges.append((start, hole))
            start = hole
    except OSError:
        pass  # ENXIO: no data behind this point. Any other error would repeat at the first write.
    return ranges
