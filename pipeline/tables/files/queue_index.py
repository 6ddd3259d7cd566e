"""The consume queues as an index of the log, believed only where they cover it. No Spark.

    log        | Orders 7 | Bills 3 | Orders 8 | Bills 4 | Orders 9 | filler |      | Orders 10
    units      |----------|---------|----------|         |----------|               (not dispatched yet)
    uncovered                                  |.........|

The units of all queues together must cover every byte of the log up to the last record that a queue knows. What they
leave out is walked: it holds records of deleted topics, or records whose units are lost. So the records of some topics
are found without reading those of others, and they are the same that a scan of the whole log finds.
"""

import itertools
import logging
import struct
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from pocketmq.protocol.message.record import BLANK_MAGIC

from ..records.records import Records, records_at, scan
from .consume_queues import UNIT, QueueSplit, UnitFiles, are_records, units_of
from .log_files import LogFile, LogWindow, log_window, read_bytes
from .queue_check import QueueFiles
from .runs import in_queues
from .scan import ScannedRecords, ScanOptions, records_at_units

_log = logging.getLogger("pocketmq.pipeline")

SMALL_PART: Final = 4
"""The index is used for topics that have less than a fourth of the log's bytes, if it covers three fourths."""
MAX_UNITS: Final = 4_000_000
"""Units of the wanted topics that are held at once."""
MAX_UNCOVERED: Final = 100_000
"""Places that no queue covers: with more of them, a scan is quicker."""
GAP_BYTES: Final = 1 << 20
"""Records behind a URL that are less apart are read together with what lies between them."""
MAX_READ: Final = 16 * 1024 * 1024
"""Bytes behind a URL that are read at once, and those that no queue covers: with more of them, a scan is better."""
_SIZE_MAGIC: Final = struct.Struct(">ii")
_LIGHT_QUEUES: Final = "%LMQ%"
"""The beginning of the names of queues whose units point at records of other topics."""


class FoundRecords(msgspec.Struct, frozen=True):
    """Records of one file, by their log positions and sizes; positions rise. Picklable."""

    file: LogFile
    positions: Any
    sizes: Any


def find_by_queues(
    root: Path, files: list[LogFile], queues: list[QueueSplit], topics: frozenset[str], known_end: int
) -> list[FoundRecords] | None:
    """The records of some topics, as the queues and what they leave out tell; None where a scan is better or needed.

    `root` is the folder of the queues, `known_end` the end of the last record that they know. Records that their queue
    does not have are named in a warning.
    """
    chosen = [queue for queue in queues if queue.topic in topics]
    if not files or sum(queue.hi - queue.lo for queue in chosen) > MAX_UNITS:
        return None
    found_units = np.concatenate([np.empty(0, dtype=UNIT), *map(units_of, chosen)])
    found_units = found_units[are_records(found_units)]
    positions, sizes = found_units["position"].astype(np.int64), found_units["size"].astype(np.int64)
    if int(sizes.sum()) * SMALL_PART > _bytes_of(files):
        return None
    lost = find_uncovered(root, files, queues, topics, known_end)
    if lost is None:
        return None
    found = []
    for file in files:
        in_file = (positions >= file.base) & (positions < file.base + file.size)
        pieces = [(positions[in_file], sizes[in_file])]
        pieces += [(each.positions, each.sizes) for each in lost if each.file == file]
        starts, lengths = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
        starts, first = np.unique(starts, return_index=True)
        if len(starts):
            found.append(FoundRecords(file, starts, lengths[first]))
    return found


def find_uncovered(
    root: Path, files: list[LogFile], queues: list[QueueSplit], topics: frozenset[str], known_end: int
) -> list[FoundRecords] | None:
    """The records of some topics (all, if none is named) before `known_end` that no queue has, with a warning.

    None if queues and log do not match, or leave too much uncovered: then only a scan of the log is sure.
    """
    try:
        parts = uncovered_parts(files, queues, known_end)
        uncovered = sum(end - begin for _, begin, end in parts or ())
        if parts is None or uncovered * SMALL_PART > _bytes_of(files):
            return None
        if uncovered > MAX_READ and files and files[0].url is not None:
            return None
        found: list[tuple[LogFile, Records]] = []
        for file in files:
            records = _records_in(file, [(begin, end) for of, begin, end in parts if of == file])
            if records is None:
                return None
            if topics and len(records):
                records = records.only(records.of_topics(topics))
            if len(records):
                found.append((file, records))
        _warn(root, [records.only(in_queues(records)) for _, records in found])
    except FileNotFoundError:  # deleted since planning began
        return None
    return [FoundRecords(file, records.head("physicalOffset"), records.sizes) for file, records in found]


def read_found(found: FoundRecords, options: ScanOptions) -> Iterator[ScannedRecords]:
    """The records, in batches. Behind a URL those of a batch are near each other, because it is read as a whole."""
    positions, ends, base = found.positions, found.positions + found.sizes, found.file.base
    edges = np.arange(0, len(positions), options.decode_rows)
    if found.file.url is not None:
        is_far = (positions[1:] - ends[:-1] >= GAP_BYTES) | (np.diff(positions // MAX_READ) > 0)
        edges = np.union1d(edges, np.flatnonzero(is_far) + 1)
    window: LogWindow | None = None
    for first, stop in itertools.pairwise([*edges.tolist(), len(positions)]):
        rows = slice(first, stop)
        span = int(positions[first]) - base, int(ends[rows].max()) - base
        window = log_window(found.file, *span, before=window)
        yield from records_at_units(window, positions[rows], found.sizes[rows], options)


def uncovered_parts(
    files: list[LogFile], queues: list[QueueSplit], known_end: int
) -> list[tuple[LogFile, int, int]] | None:
    """(file, begin, end) of the bytes before `known_end` that no unit covers, at most `MAX_UNCOVERED`; None for more of
    them, and for units that overlap."""
    index = [
        each
        for queue in queues
        if not queue.topic.startswith(_LIGHT_QUEUES)
        for _, each in UnitFiles(queue.folder).pieces(queue.lo, queue.hi)
    ]
    found: list[tuple[LogFile, int, int]] = []
    for file in files:
        parts = _uncovered(file, index, min(file.base + file.size, known_end))
        if parts is None or len(found) + len(parts) > MAX_UNCOVERED:
            return None
        found += [(file, begin, end) for begin, end in parts]
    return found


def _bytes_of(files: list[LogFile]) -> int:
    return sum(file.size for file in files)


def _uncovered(file: LogFile, index: Sequence[Any], end: int) -> list[tuple[int, int]] | None:
    """[begin, end) of the bytes of a file, up to log position `end`, that no unit covers; None if units overlap."""
    pieces = []
    for units_of_file in index:
        positions = units_of_file["position"]
        if len(positions) and positions[-1] >= file.base and positions[0] < end:
            first = bisect_left(positions, file.base)
            pieces.append(units_of_file[first : bisect_left(positions, end, first)])
    found = np.concatenate(pieces) if pieces else np.empty(0, dtype=UNIT)
    found = found[are_records(found)]
    begins, first_of = np.unique(found["position"].astype(np.int64), return_index=True)
    ends = begins + found["size"].astype(np.int64)[first_of]
    if (ends[:-1] > begins[1:]).any() or (len(ends) and ends[-1] > file.base + file.size):
        return None
    edges_begin = np.concatenate(([file.base], ends))
    edges_end = np.concatenate((begins, [max(end, int(edges_begin[-1]))]))
    is_gap = edges_end > edges_begin
    return list(
        zip((edges_begin[is_gap] - file.base).tolist(), (edges_end[is_gap] - file.base).tolist(), strict=True)
    )


def _records_in(file: LogFile, parts: Sequence[tuple[int, int]]) -> Records | None:
    """The records in some parts of a file; None for bytes that are no record, and are not the filler of the file."""
    data, shifts = _bytes_in(file, parts)
    none = np.empty(0, dtype=np.int64)
    starts, sizes = [none], [none]
    for (begin, end), shift in zip(parts, shifts, strict=True):
        first, last = begin - shift, end - shift
        records = scan(data, first, last, file.base + shift, most=end - begin)
        stop = int(records.starts[-1] + records.sizes[-1]) if len(records) else first
        if stop != last and not (end == file.size and _is_filler(data, stop, last)):
            return None
        starts.append(records.starts)
        sizes.append(records.sizes)
    return records_at(data, np.concatenate(starts), np.concatenate(sizes))


def _bytes_in(file: LogFile, parts: Sequence[tuple[int, int]]) -> tuple[memoryview, list[int]]:
    """(a buffer with the parts, how far each of them lies before its place in the file). Behind a URL only the parts
    are read."""
    if file.url is None:
        return log_window(file).data, [0] * len(parts)
    sizes = [end - begin for begin, end in parts]
    places = itertools.accumulate(sizes, initial=0)
    data = b"".join(read_bytes(file, begin, end) for begin, end in parts)
    return memoryview(data), [begin - place for (begin, _), place in zip(parts, places, strict=False)]


def _is_filler(data: memoryview, position: int, end: int) -> bool:
    """Whether the bytes up to the end of the file are one filler, or too few for any record."""
    rest = end - position
    return rest < _SIZE_MAGIC.size or _SIZE_MAGIC.unpack_from(data, position) == (rest, BLANK_MAGIC)


def _warn(root: Path, found: Sequence[Records]) -> None:
    """Name the topics of records whose queues do not have them now, either."""
    queues = QueueFiles(root)
    counts: Counter[str] = Counter()
    for records in found:
        for topic, queue_id, offset, position in zip(
            records.topics().to_pylist(),
            records.head("queueId").tolist(),
            records.queue_offsets.tolist(),
            records.head("physicalOffset").tolist(),
            strict=True,
        ):
            counts[topic] += not queues.has_unit(topic, queue_id, offset, position)
    for topic, count in sorted(counts.items()):
        if count:
            _log.warning(
                "%s: %d messages of %s are not in its consume queues, and are read from the log: "
                "their units are lost, or the topic was deleted",
                root.parent,
                count,
                topic,
            )
