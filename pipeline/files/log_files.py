"""The files of a store as a scan needs them: which there are, where they are cut, where the log ends. No Spark.

    <path>/commitlog/00000000000000000000 ...                   named by the position of their first byte
    <path>/consumequeue/<topic>/<queue>/00000000000000000000    entries of 20 bytes: position 8, size 4, tag code 8
    <path>/config/consumerOffset.json

Files are only read. A store may be in use meanwhile: what is appended after planning is not looked for. The formats are
drawn in `store/FORMAT.md`.
"""

import itertools
from pathlib import Path
from typing import Final

import msgspec

from ..errors import OptionError
from .mapped_file import FILE_NAME, data_end

MOST_SPLITS: Final = 10_000
"""Tasks of one scan: the engine keeps each of them in the driver, and starts some twenty in a second."""
SMALL_TAIL: Final = 1 << 20
"""Bytes behind the last known record that are not worth a task of their own."""


class LogFile(msgspec.Struct, frozen=True):
    """One file of the commit log; `base` is the log position of its first byte."""

    path: str
    base: int
    size: int
    is_last: bool


class LogSplit(msgspec.Struct, frozen=True):
    """Records that begin in bytes [begin, end) of a file. From `known_end` on, bytes that are no record are the end."""

    file: LogFile
    begin: int
    end: int
    known_end: int


def log_files(folder: Path) -> list[LogFile]:
    """The files of a commit log, oldest first. `OptionError` where there is none."""
    if not folder.is_dir():
        raise OptionError(f"option path: {folder} is no folder; a store has commitlog and consumequeue in it")
    paths = sorted(path for path in folder.iterdir() if FILE_NAME.fullmatch(path.name) and path.is_file())
    return [LogFile(str(path), int(path.name), path.stat().st_size, path is paths[-1]) for path in paths]


def log_holes(files: list[LogFile]) -> list[tuple[LogFile, int]]:
    """(file, bytes) for each file that ends before the next one begins: those bytes of the log are gone."""
    return [
        (file, after.base - file.base - file.size)
        for file, after in itertools.pairwise(files)
        if file.base + file.size < after.base
    ]


def log_splits(files: list[LogFile], split_bytes: int, least: int, known_end: int) -> list[LogSplit]:
    """The files cut into tasks of about `split_bytes`, at least `least` of them, and about `MOST_SPLITS` at most.
    Cuts fall anywhere."""
    written = {file: _written_bytes(file, known_end) for file in files}
    total = sum(known for known, _ in written.values())
    if not files:
        return []
    step = max(1, min(split_bytes, -(-total // least)), -(-total // MOST_SPLITS))
    splits = []
    for file in files:
        known, end = written[file]
        bounds = itertools.pairwise([*range(0, known, step), known, end])
        splits += [LogSplit(file, begin, end, known_end) for begin, end in bounds if end > begin]
    return splits


def _written_bytes(file: LogFile, known_end: int) -> tuple[int, int]:
    """How much of a file is worth cutting up, and where it ends. The last one is as long as it may become, and empty
    from some place on: what may be there behind the last record a queue knows is one split, or the end of one."""
    if not file.is_last:
        return file.size, file.size
    known = min(file.size, max(known_end - file.base, 0))
    end = max(known, data_end(file.path, known))
    return (end, end) if end - known <= SMALL_TAIL else (known, end)
