"""Consume queues and the consumer offset table of a store. No Spark.

    <path>/consumequeue/<topic>/<queue>/00000000000000000000    units of 20 bytes: position 8, size 4, tag code 8
    <path>/config/consumerOffset.json

Files are only read. Another process may write the store at the same time: what it appends after planning is not read.
The formats are drawn in `store/FORMAT.md`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.text.fastjson import loads

from ...errors import PATH, CorruptStoreError, PathError
from .log_files import FILE_NAME, data_end
from .remote_files import location_of

UNIT: Final = np.dtype([("position", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
assert UNIT.itemsize == 20
PRE_BLANK: Final = 0x7FFFFFFF
"""The size in units that fill the first file of a queue which did not begin at 0."""
UNIT_ROWS: Final = 1 << 16
"""Units of a queue that are read at once."""
ALL_UNITS: Final = 1 << 62
OFFSETS: Final = "config/consumerOffset.json"
_NONE: Final = np.empty(0, dtype=UNIT)


class QueueSplit(msgspec.Struct, frozen=True):
    """Units [lo, hi) of one queue. With `url` its folder is that of the store behind it."""

    topic: str
    queue_id: int
    folder: str
    lo: int
    hi: int
    url: str | None = None


class UnitFiles:
    """The files of one queue's units, listed once. None is kept open; one that is deleted meanwhile has no units.

    A file of a folder is mapped, one behind a URL is read.
    """

    def __init__(self, folder: str, url: str | None = None) -> None:
        self._folder = folder
        self._url = url
        names = [path.name for path in Path(folder).glob("*")]
        if url is not None:
            names = [name.removeprefix(f"{folder}/") for name in location_of(url).sizes(folder)]
        self._files = sorted(
            (int(name) // UNIT.itemsize, name) for name in names if FILE_NAME.fullmatch(name)
        )

    def pieces(self, lo: int = 0, hi: int = ALL_UNITS) -> Iterator[tuple[int, Any]]:
        """(offset of the first, units) of the units [lo, hi) that each file has, in arrays of `UNIT`."""
        ends = [*(base for base, _ in self._files[1:]), ALL_UNITS]
        for (base, name), end in zip(self._files, ends, strict=False):
            if base < hi and end > lo:
                first = max(lo, base)
                found = self._units(name)[first - base : hi - base]
                if len(found):
                    yield first, found

    def bounds(self) -> tuple[int, int]:
        """[first, end) of the written units: after the last one are zeros."""
        if not self._files:
            return 0, 0
        base, name = self._files[0]
        first = base + int((self._units(name)["size"] == PRE_BLANK).sum())
        for base, name in reversed(self._files):
            written = np.flatnonzero(self._units(name)["size"] > 0)
            if len(written):
                return first, base + int(written[-1]) + 1
        return first, first

    def first_record(self) -> tuple[int, int] | None:
        """(offset, log position) of the first unit that stands for a record; None if there is none."""
        for first, found in self.pieces():
            written = np.flatnonzero(are_records(found))
            if len(written):
                return first + int(written[0]), int(found["position"][written[0]])
        return None

    def _units(self, name: str) -> Any:
        """The units of a file, up to the last byte that the file system stores."""
        try:
            if self._url is not None:
                data = location_of(self._url).read(f"{self._folder}/{name}")
                return np.frombuffer(data, UNIT, len(data) // UNIT.itemsize)
            path = f"{self._folder}/{name}"
            size = min(-(-data_end(path) // UNIT.itemsize), os.path.getsize(path) // UNIT.itemsize)
            return np.memmap(path, dtype=UNIT, mode="r", shape=(size,)) if size else _NONE
        except FileNotFoundError:
            return _NONE


def are_records(found: Any) -> Any:
    """Which units stand for a record: not those that are not written yet, or that fill the first file."""
    return (found["size"] > 0) & (found["size"] < PRE_BLANK)


def queue_folders(root: Path, topics: frozenset[str]) -> Iterator[tuple[str, int, Path]]:
    """(topic, queue id, folder) of the consume queues, of the named topics or of all if none is named."""
    if not root.is_dir():
        return
    for topic in sorted(path for path in root.iterdir() if path.is_dir()):
        if not topics or topic.name in topics:
            for queue in sorted(path for path in topic.iterdir() if path.name.isdigit()):
                yield topic.name, int(queue.name), queue


def queue_splits(root: Path, topics: frozenset[str], rows: int = ALL_UNITS) -> list[QueueSplit]:
    """The written units of each queue, split into at most `rows` each."""
    splits = []
    for topic, queue_id, folder in queue_folders(root, topics):
        lo, hi = UnitFiles(str(folder)).bounds()
        splits += [
            QueueSplit(topic, queue_id, str(folder), first, min(first + rows, hi))
            for first in range(lo, hi, rows)
        ]
    return splits


def units_of(split: QueueSplit) -> Any:
    """All units of a split in one array."""
    pieces = [found for _, found in UnitFiles(split.folder, split.url).pieces(split.lo, split.hi)]
    return np.concatenate(pieces) if pieces else _NONE


def unit_batches(split: QueueSplit) -> Iterator[tuple[int, Any]]:
    """(offset of the first, units) of a split, in pieces of at most `UNIT_ROWS`."""
    for first, found in UnitFiles(split.folder, split.url).pieces(split.lo, split.hi):
        for at in range(0, len(found), UNIT_ROWS):
            yield first + at, found[at : at + UNIT_ROWS]


def known_log_end(queues: list[QueueSplit]) -> int:
    """The log position after the last record that a queue knows: how far the broker had dispatched."""
    end = 0
    for queue in queues:
        if queue.hi > queue.lo:
            last = units_of(msgspec.structs.replace(queue, lo=queue.hi - 1))
            end = max(end, int((last["position"] + last["size"]).max(initial=0)))
    return end


def consumer_offsets(root: Path, shown: str) -> list[tuple[str, str, int, int]]:
    """(group, topic, queue id, offset) rows of a store's consumer offset table; none if its broker has not written one
    yet. Errors name the store `shown`.

    `PathError` if there is neither a table nor a store, `CorruptStoreError` for a table that cannot be read.
    """
    try:
        table = loads((root / OFFSETS).read_bytes())
        rows = [
            (group, topic, int(queue_id), int(offset))
            for key, queues in table["offsetTable"].items()
            for topic, _, group in (key.partition("@"),)
            for queue_id, offset in queues.items()
        ]
    except FileNotFoundError as error:
        if any((root / part).is_dir() for part in ("commitlog", "consumequeue")):
            return []
        raise PathError(PATH, f"{shown}/{OFFSETS} does not exist") from error
    except (OSError, ProtocolError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptStoreError(f"{shown}/{OFFSETS} is not a consumer offset table: {error}") from error
    return sorted(rows)
