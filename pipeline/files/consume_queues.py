"""Consume queues and the consumer offset table of a store. No Spark.

    <path>/consumequeue/<topic>/<queue>/00000000000000000000    units of 20 bytes: position 8, size 4, tag code 8
    <path>/config/consumerOffset.json

Files are only read. Another process may write the store at the same time: what it appends after planning is not read.
The formats are drawn in `store/FORMAT.md`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.text.fastjson import loads

from ..errors import PATH, CorruptStoreError, PathError
from .mapped_file import FILE_NAME, data_end

UNIT: Final = np.dtype([("position", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
assert UNIT.itemsize == 20
PRE_BLANK: Final = 0x7FFFFFFF
"""The size in units that fill the first file of a queue which did not begin at 0."""


OFFSETS: Final = "config/consumerOffset.json"
UNIT_ROWS: Final = 1 << 16
"""Units of a queue that are read at once."""


class QueueSplit(msgspec.Struct, frozen=True):
    """Units [lo, hi) of one queue. With `url` its files are those of that store, and `folder` is not used."""

    topic: str
    queue_id: int
    folder: str
    lo: int
    hi: int
    url: str | None = None


def queue_folders(root: Path, topics: frozenset[str]) -> Iterator[tuple[str, int, Path]]:
    """(topic, queue id, folder) of the consume queues, of the named topics or of all if none is named."""
    if not root.is_dir():
        return
    for topic in sorted(path for path in root.iterdir() if path.is_dir()):
        if not topics or topic.name in topics:
            for queue in sorted(path for path in topic.iterdir() if path.name.isdigit()):
                yield topic.name, int(queue.name), queue


def queue_splits(root: Path, topics: frozenset[str], rows: int = 1 << 62) -> list[QueueSplit]:
    """The written units of each queue, split into at most `rows` each."""
    splits = []
    for topic, queue_id, folder in queue_folders(root, topics):
        lo, hi = written_units(folder)
        splits += [
            QueueSplit(topic, queue_id, str(folder), first, min(first + rows, hi))
            for first in range(lo, hi, rows)
        ]
    return splits


def written_units(folder: Path) -> tuple[int, int]:
    """[first, end) of the written units of a queue: after the last one are zeros."""
    files = _queue_files(folder)
    if not files:
        return 0, 0
    first = int(files[0].name) // UNIT.itemsize + int((_map_units(files[0])["size"] == PRE_BLANK).sum())
    for path in reversed(files):
        written = np.flatnonzero(_map_units(path)["size"] > 0)
        if len(written):
            return first, int(path.name) // UNIT.itemsize + int(written[-1]) + 1
    return first, first


def units(folder: str, lo: int, hi: int) -> Any:
    """Units [lo, hi) of a queue as one array of `UNIT`."""
    pieces = [found for _, found in written_files(QueueSplit("", 0, folder, lo, hi))]
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=UNIT)


def unit_batches(queue: QueueSplit) -> Iterator[tuple[int, Any]]:
    """(offset of the first, units) of a split, in pieces of at most `UNIT_ROWS`."""
    for first, found in written_files(queue):
        for at in range(0, len(found), UNIT_ROWS):
            yield first + at, found[at : at + UNIT_ROWS]


def written_files(queue: QueueSplit) -> Iterator[tuple[int, Any]]:
    """(offset of the first, units) of a split, in each of its files, which are mapped, or read from a URL."""
    for base, found in _files_of(queue):
        first = max(queue.lo, base)
        in_file = found[first - base : max(queue.hi - base, 0)]
        if len(in_file):
            yield first, in_file


def _files_of(queue: QueueSplit) -> Iterator[tuple[int, Any]]:
    if queue.url is None:
        for path in _queue_files(Path(queue.folder)):
            yield int(path.name) // UNIT.itemsize, _map_units(path)
        return
    from .remote_files import location_of

    location = location_of(queue.url)
    for name in sorted(location.sizes(f"consumequeue/{queue.topic}/{queue.queue_id}")):
        base = int(name[-20:]) // UNIT.itemsize
        if base < queue.hi:
            data = location.read(name)
            yield base, np.frombuffer(data, UNIT, len(data) // UNIT.itemsize)


def _queue_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if FILE_NAME.fullmatch(path.name))


def _map_units(path: Path) -> Any:
    """The units of a file, up to the last byte that the file system stores."""
    size = min(-(-data_end(str(path)) // UNIT.itemsize), path.stat().st_size // UNIT.itemsize)
    return np.memmap(path, dtype=UNIT, mode="r", shape=(size,)) if size else np.empty(0, dtype=UNIT)


def known_log_end(queues: list[QueueSplit]) -> int:
    """The log position after the last record that a queue knows: how far the broker had dispatched."""
    end = 0
    for queue in queues:
        if queue.hi > queue.lo:
            last = units(queue.folder, queue.hi - 1, queue.hi)
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
