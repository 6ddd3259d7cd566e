"""The files of a store as a scan needs them: which there are, where they are cut, where the log ends. No Spark.

    <path>/commitlog/00000000000000000000 ...                   named by the position of their first byte
    <path>/consumequeue/<topic>/<queue>/00000000000000000000    entries of 20 bytes: position 8, size 4, tag code 8
    <path>/config/consumerOffset.json

Files are only read. A store may be in use meanwhile: what is appended after planning is not looked for. The formats are
drawn in `store/FORMAT.md`.
"""

import errno
import itertools
import mmap
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.text.fastjson import loads

from ..errors import CorruptStoreError, OptionError

ENTRY: Final = np.dtype([("position", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
assert ENTRY.itemsize == 20
PRE_BLANK: Final = 0x7FFFFFFF
"""The size in entries that fill the first file of a queue which did not begin at 0."""
MOST_SPLITS: Final = 10_000
"""Tasks of one scan: the engine keeps each of them in the driver, and starts some twenty in a second."""
SMALL_TAIL: Final = 1 << 20
"""Bytes behind the last known record that are not worth a task of their own."""
_NAME: Final = re.compile(r"\d{20}")


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


class QueueSplit(msgspec.Struct, frozen=True):
    """Entries [lo, hi) of one queue."""

    topic: str
    queue_id: int
    folder: str
    lo: int
    hi: int


def log_files(folder: Path) -> list[LogFile]:
    """The files of a commit log, oldest first. `OptionError` where there is none."""
    if not folder.is_dir():
        raise OptionError(f"option path: {folder} is no folder; a store has commitlog and consumequeue in it")
    paths = sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name) and path.is_file())
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


def data_end(path: str, begin: int = 0) -> int:
    """Where the last byte ends, at or behind `begin`, that the file system keeps: behind it there are but zeros,
    which nobody needs to look at. The file's size where a file system does not tell."""
    with open(path, "rb") as file:
        end = begin
        try:
            while True:
                end = os.lseek(file.fileno(), os.lseek(file.fileno(), end, os.SEEK_DATA), os.SEEK_HOLE)
        except OSError as error:
            return end if error.errno == errno.ENXIO else os.fstat(file.fileno()).st_size


def known_log_end(queues: "list[QueueSplit]") -> int:
    """The end of the last record that a queue knows: what a broker had dispatched when this was looked at."""
    end = 0
    for queue in queues:
        if queue.hi > queue.lo:
            last = entries(queue.folder, queue.hi - 1, queue.hi)
            end = max(end, int((last["position"] + last["size"]).max(initial=0)))
    return end


def queue_folders(root: Path, topics: frozenset[str]) -> Iterator[tuple[str, int, Path]]:
    """(topic, queue, folder) of the consume queues, of the named topics or of all."""
    if not root.is_dir():
        return
    for topic in sorted(path for path in root.iterdir() if path.is_dir()):
        if not topics or topic.name in topics:
            for queue in sorted(path for path in topic.iterdir() if path.name.isdigit()):
                yield topic.name, int(queue.name), queue


def queue_splits(root: Path, topics: frozenset[str], rows: int = 1 << 62) -> list[QueueSplit]:
    """The written entries of each queue, cut into at most `rows` each."""
    splits = []
    for topic, queue_id, folder in queue_folders(root, topics):
        lo, hi = written_entries(folder)
        splits += [
            QueueSplit(topic, queue_id, str(folder), first, min(first + rows, hi))
            for first in range(lo, hi, rows)
        ]
    return splits


def written_entries(folder: Path) -> tuple[int, int]:
    """[first, end) of the entries of a queue that were written: behind the last one stand zeros."""
    files = sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))
    if not files:
        return 0, 0
    first = int(files[0].name) // ENTRY.itemsize + int((_map(files[0])["size"] == PRE_BLANK).sum())
    for path in reversed(files):
        written = np.flatnonzero(_map(path)["size"] > 0)
        if len(written):
            return first, int(path.name) // ENTRY.itemsize + int(written[-1]) + 1
    return first, first


def entries(folder: str, lo: int, hi: int) -> Any:
    """Entries [lo, hi) of a queue as one array of `ENTRY`."""
    pieces = []
    for path in sorted(path for path in Path(folder).iterdir() if _NAME.fullmatch(path.name)):
        base = int(path.name) // ENTRY.itemsize
        there = _map(path)
        begin, end = max(lo - base, 0), min(hi - base, len(there))
        if begin < end:
            pieces.append(np.array(there[begin:end]))
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=ENTRY)


def _map(path: Path) -> Any:
    """The entries of a file, as far as the file system keeps any of it."""
    size = min(-(-data_end(str(path)) // ENTRY.itemsize), path.stat().st_size // ENTRY.itemsize)
    return np.memmap(path, dtype=ENTRY, mode="r", shape=(size,)) if size else np.empty(0, dtype=ENTRY)


def mapped(path: str) -> memoryview:
    """A file in memory, to be read. Pages come from the disk as they are touched."""
    with open(path, "rb") as file:
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except ValueError:  # an empty file cannot be mapped
            return memoryview(b"")


def consumer_offsets(path: Path) -> list[tuple[str, str, int, int]]:
    """(group, topic, queue, offset) rows of a consumer offset table."""
    try:
        table = loads(path.read_bytes())
        rows = [
            (group, topic, int(queue_id), int(offset))
            for key, queues in table["offsetTable"].items()
            for topic, _, group in (key.partition("@"),)
            for queue_id, offset in queues.items()
        ]
    except FileNotFoundError as error:
        raise OptionError(f"option path: there is no {path}") from error
    except (OSError, ProtocolError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptStoreError(f"{path} is no consumer offset table: {error}") from error
    return sorted(rows)
