"""Consume queues and the consumer offset table of a store, as a scan needs them. No Spark.

    <path>/consumequeue/<topic>/<queue>/00000000000000000000    entries of 20 bytes: position 8, size 4, tag code 8
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

from ..errors import CorruptStoreError, OptionError
from .mapped_file import FILE_NAME, data_end

ENTRY: Final = np.dtype([("position", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])

assert ENTRY.itemsize == 20

PRE_BLANK: Final = 0x7FFFFFFF
"""The size in entries that fill the first file of a queue which did not begin at 0."""


class QueueSplit(msgspec.Struct, frozen=True):
    """Entries [lo, hi) of one queue."""

    topic: str
    queue_id: int
    folder: str
    lo: int
    hi: int


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
    files = sorted(path for path in folder.iterdir() if FILE_NAME.fullmatch(path.name))
    if not files:
        return 0, 0
    first = int(files[0].name) // ENTRY.itemsize + int((_map_entries(files[0])["size"] == PRE_BLANK).sum())
    for path in reversed(files):
        written = np.flatnonzero(_map_entries(path)["size"] > 0)
        if len(written):
            return first, int(path.name) // ENTRY.itemsize + int(written[-1]) + 1
    return first, first


def entries(folder: str, lo: int, hi: int) -> Any:
    """Entries [lo, hi) of a queue as one array of `ENTRY`."""
    pieces = []
    for path in sorted(path for path in Path(folder).iterdir() if FILE_NAME.fullmatch(path.name)):
        base = int(path.name) // ENTRY.itemsize
        there = _map_entries(path)
        begin, end = max(lo - base, 0), min(hi - base, len(there))
        if begin < end:
            pieces.append(np.array(there[begin:end]))
    return np.concatenate(pieces) if pieces else np.empty(0, dtype=ENTRY)


def _map_entries(path: Path) -> Any:
    """The entries of a file, as far as the file system keeps any of it."""
    size = min(-(-data_end(str(path)) // ENTRY.itemsize), path.stat().st_size // ENTRY.itemsize)
    return np.memmap(path, dtype=ENTRY, mode="r", shape=(size,)) if size else np.empty(0, dtype=ENTRY)


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
