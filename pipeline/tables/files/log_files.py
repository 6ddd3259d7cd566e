"""The files of a commit log: which exist, how they are split into tasks, where the log ends, and their bytes. No Spark.

    <path>/commitlog/00000000000000000000 ...    named by the log position of their first byte

Files are only read. Another process may write the store at the same time: what it appends after planning is not read.
The format is drawn in `store/FORMAT.md`. A file of a folder is mapped as a whole; of one behind a URL a window is read:

    file    |--------------[ begin ........ end )......|--------------|       a window: the bytes that are asked for,
                           ^ base of the window        ^ the next record      after a split until a record begins
"""

import errno
import itertools
import mmap
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ...errors import PATH, PathError
from ..records.boundaries import find_record
from .locations import is_url
from .remote_files import location_of

if TYPE_CHECKING:
    from ..records.slices import Ints

FILE_NAME: Final = re.compile(r"\d{20}")
"""Files of a log or a queue are named by the position of their first byte."""
MAX_SPLITS: Final = 10_000
"""Tasks of one scan: Spark keeps each of them in the driver, and starts some twenty in a second."""
SMALL_TAIL: Final = 1 << 20
"""Bytes after the last known record that are too few for a task of their own."""
FIRST_READ_BYTES: Final = 1 << 20
"""Bytes of the first read behind a split, or behind the last known record; each read is twice the one before."""


class LogFile(msgspec.Struct, frozen=True):
    """One file of the commit log; `base` is the log position of its first byte. With `url` it is in the folder
    commitlog of that store, and `path` is only shown."""

    path: str
    base: int
    size: int
    is_last: bool
    url: str | None = None


class LogSplit(msgspec.Struct, frozen=True):
    """Records that begin in bytes [begin, end) of a file. From log position `known_end` on, bytes that are not a record
    are the end of the log, not damage."""

    file: LogFile
    begin: int
    end: int
    known_end: int


class LogWindow(msgspec.Struct, frozen=True):
    """Bytes of a log file; `base` is the log position of the first of them."""

    file: LogFile
    data: memoryview
    base: int


def map_file(path: str) -> memoryview:
    """The bytes of a file, read-only. Pages are read from the disk when they are touched."""
    with open(path, "rb") as file:
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except ValueError:  # an empty file cannot be mapped
            return memoryview(b"")


def data_end(path: str, begin: int = 0) -> int:
    """Where the last byte ends that the file system stores, at or after `begin`: after it are only zeros.

    The file's size if the file system does not report holes.
    """
    with open(path, "rb") as file:
        end = begin
        try:
            while True:
                end = os.lseek(file.fileno(), os.lseek(file.fileno(), end, os.SEEK_DATA), os.SEEK_HOLE)
        except OSError as error:
            return end if error.errno == errno.ENXIO else os.fstat(file.fileno()).st_size


def log_files(folder: str | Path) -> list[LogFile]:
    """The files of a commit log, oldest first: of its folder, or of the store behind a URL.

    `PathError` if there is none.
    """
    if is_url(str(folder)):
        return _remote_files(str(folder))
    if not Path(folder).is_dir():
        raise PathError(PATH, f"{folder} is not a folder; a store has commitlog and consumequeue in it")
    paths = sorted(
        path for path in Path(folder).iterdir() if FILE_NAME.fullmatch(path.name) and path.is_file()
    )
    return [LogFile(str(path), int(path.name), path.stat().st_size, path is paths[-1]) for path in paths]


def _remote_files(url: str) -> list[LogFile]:
    location = location_of(url)
    sizes = location.sizes("commitlog")
    if not sizes:
        raise PathError(PATH, f"{location.url} has no folder commitlog, and so is no store")
    names = sorted(name for name in sizes if FILE_NAME.fullmatch(name.removeprefix("commitlog/")))
    return [
        LogFile(f"{location.url}/{name}", int(name[-20:]), sizes[name], name == names[-1], url)
        for name in names
    ]


def read_bytes(file: LogFile, begin: int, end: int) -> bytes:
    """Bytes [begin, end) of a file behind a URL."""
    assert file.url is not None
    return location_of(file.url).read(f"commitlog/{file.base:020}", begin, min(end, file.size))


def log_window(file: LogFile, begin: int = 0, end: int = 0, *, before: LogWindow | None = None) -> LogWindow:
    """Bytes [begin, end) of a file, at least. A file of a folder is mapped as a whole; if the window `before` is of it,
    that one is given again, because mapping it costs page faults."""
    if file.url is not None:
        return LogWindow(file, memoryview(read_bytes(file, begin, end)), file.base + begin)
    if before is not None and before.file == file:
        return before
    return LogWindow(file, map_file(file.path), file.base)


def split_window(split: LogSplit) -> LogWindow:
    """The bytes of a split, with the rest of its last record."""
    file, reach = split.file, split.end
    if file.url is None:
        return log_window(file)
    parts, step = [read_bytes(file, split.begin, reach)], FIRST_READ_BYTES
    while reach < file.size:
        parts.append(read_bytes(file, reach, reach + step))
        reach, step = min(reach + step, file.size), 2 * step
        behind = memoryview(b"".join(parts[1:]))
        if find_record(behind, 0, len(behind), file.base + split.end) < len(behind):
            break  # a record begins behind the split, so its last one is complete
    return LogWindow(file, memoryview(b"".join(parts)), file.base + split.begin)


def log_holes(files: list[LogFile]) -> list[tuple[LogFile, int]]:
    """(file, missing bytes) for each file that ends before the next one begins."""
    return [
        (file, after.base - file.base - file.size)
        for file, after in itertools.pairwise(files)
        if file.base + file.size < after.base
    ]


def files_at(files: Sequence[LogFile], positions: "Ints") -> list[LogFile]:
    """The files in which one of these log positions lies; those of a hole are given the file before it."""
    ordered = positions.copy()
    ordered.sort()
    edges = [*ordered.searchsorted([file.base for file in files]).tolist(), len(ordered)]
    return [file for file, (start, end) in zip(files, itertools.pairwise(edges), strict=True) if start < end]


def log_splits(files: list[LogFile], split_bytes: int, least: int, known_end: int) -> list[LogSplit]:
    """The files split into tasks of about `split_bytes`: at least `least`, and about `MAX_SPLITS` at most.

    A split may begin at any byte.
    """
    written = {file: _written_bytes(file, known_end) for file in files}
    total = sum(known for known, _ in written.values())
    if not files:
        return []
    count = max(least, -(-total // split_bytes))
    count = min(-(-count // least) * least, MAX_SPLITS)  # each core gets as many tasks as the others
    step = max(1, -(-total // count))
    splits = []
    for file in files:
        known, end = written[file]
        bounds = itertools.pairwise([*range(0, known, step), known, end])
        splits += [LogSplit(file, begin, end, known_end) for begin, end in bounds if end > begin]
    return splits


def splits_after(splits: list[LogSplit], position: int) -> list[LogSplit]:
    """The splits from a position of the log on: with the end of the last record that a queue knows, what is not
    dispatched yet."""
    return [
        msgspec.structs.replace(split, begin=max(split.begin, position - split.file.base))
        for split in splits
        if max(split.begin, position - split.file.base) < split.end
    ]


def _written_bytes(file: LogFile, known_end: int) -> tuple[int, int]:
    """(bytes to split evenly, end of the bytes to read).

    The last file has its full size from the start and is empty from some position on. Whatever follows the last
    record that a queue knows becomes one split, or part of one.
    """
    if not file.is_last:
        return file.size, file.size
    known = min(file.size, max(known_end - file.base, 0))
    end = max(known, _data_end(file, known))
    return (end, end) if end - known <= SMALL_TAIL else (known, end)


def _data_end(file: LogFile, begin: int) -> int:
    """Where the written bytes of a file end, at or after `begin`; after it are only zeros."""
    if file.url is None:
        return data_end(file.path, begin)
    step = FIRST_READ_BYTES
    while begin < file.size:
        data = read_bytes(file, begin, begin + step)
        if data.count(0) == len(data):
            return begin
        begin, step = min(begin + step, file.size), 2 * step
    return begin
