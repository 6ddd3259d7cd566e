"""The files of a commit log: which exist, how they are split into tasks, and where the log ends. No Spark.

    <path>/commitlog/00000000000000000000 ...    named by the log position of their first byte

Files are only read. Another process may write the store at the same time: what it appends after planning is not read.
The format is drawn in `store/FORMAT.md`.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ..errors import PathError
from .mapped_file import FILE_NAME, data_end, map_file

if TYPE_CHECKING:
    from ..records.slices import Ints

MAX_SPLITS: Final = 10_000
"""Tasks of one scan: Spark keeps each of them in the driver, and starts some twenty in a second."""
SMALL_TAIL: Final = 1 << 20
"""Bytes after the last known record that are too few for a task of their own."""


class LogFile(msgspec.Struct, frozen=True):
    """One file of the commit log; `base` is the log position of its first byte."""

    path: str
    base: int
    size: int
    is_last: bool


class LogSplit(msgspec.Struct, frozen=True):
    """Records that begin in bytes [begin, end) of a file. From log position `known_end` on, bytes that are not a record
    are the end of the log, not damage."""

    file: LogFile
    begin: int
    end: int
    known_end: int


def log_files(folder: Path) -> list[LogFile]:
    """The files of a commit log, oldest first. `PathError` if the folder does not exist."""
    if not folder.is_dir():
        raise PathError(f"{folder} is not a folder; a store has commitlog and consumequeue in it")
    paths = sorted(path for path in folder.iterdir() if FILE_NAME.fullmatch(path.name) and path.is_file())
    return [LogFile(str(path), int(path.name), path.stat().st_size, path is paths[-1]) for path in paths]


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


def mapped(file: LogFile, maps: dict[str, memoryview]) -> memoryview:
    """The bytes of a file. `maps` keeps those of the last one, because mapping it again costs page faults."""
    if file.path not in maps:
        maps.clear()
        maps[file.path] = map_file(file.path)
    return maps[file.path]


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
    begins = [max(split.begin, position - split.file.base) for split in splits]
    return [
        LogSplit(split.file, begin, split.end, split.known_end)
        for split, begin in zip(splits, begins, strict=True)
        if begin < split.end
    ]


def _written_bytes(file: LogFile, known_end: int) -> tuple[int, int]:
    """(bytes to split evenly, end of the bytes to read).

    The last file has its full size from the start and is empty from some position on. Whatever follows the last
    record that a queue knows becomes one split, or part of one.
    """
    if not file.is_last:
        return file.size, file.size
    known = min(file.size, max(known_end - file.base, 0))
    end = max(known, data_end(file.path, known))
    return (end, end) if end - known <= SMALL_TAIL else (known, end)
