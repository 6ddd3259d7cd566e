"""Scans the files of a store: finds records and checks them. Errors carry file and byte position. No Spark.

`scan_log` walks one split of the commit log, `scan_queue` follows the units of one consume queue. Each yields
`ScannedRecords`: some thousand records with a status each, or one position without a record. `on_corrupt` says what
happens with damage:

    fail     CorruptStoreError
    skip     a warning; reading continues at the next record that can be found
    report   a row with a status; reading continues

    ok  bad magic  bad size  bad offset (stored for another position)  bad crc (checked if `verifies_crc`)

Memory is limited to one batch of decoded columns; the file itself is mapped.
"""

import logging
from collections.abc import Generator, Iterator
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from pocketmq.protocol.message.record import MIN_RECORD_BYTES

from ..errors import CorruptStoreError
from ..records.boundaries import AT_END, BAD_MAGIC, BAD_SIZE, find_record
from ..records.lanes import walk_window
from ..records.records import Records
from ..records.slices import Ints
from ..records.sound_records import is_built, sound_records
from .consume_queues import PRE_BLANK, QueueSplit, units
from .log_files import LogFile, LogSplit, mapped
from .mapped_file import map_file
from .run_statuses import OK
from .unit_starts import UnitStarts

_log = logging.getLogger("pocketmq.pipeline")

BAD_CRC: Final = "bad crc"
BAD_OFFSET: Final = "bad offset"
BATCH_BYTES: Final = 8 * 1024 * 1024
"""Bytes of records in one batch; the last record may reach beyond."""
WINDOW_BYTES: Final = 32 * 1024 * 1024
"""Bytes in which records are looked for at once."""
DAMAGED_WINDOW_BYTES: Final = 256 * 1024
"""The same after damage, because what was found behind it is not trusted; doubled while no more damage is met."""
FIRST_WINDOW_BYTES: Final = DAMAGED_WINDOW_BYTES if is_built() else WINDOW_BYTES
"""Where a scan in C finds the sound records, a window begins with one that is not sound."""
UNIT_ROWS: Final = 1 << 16
"""Units of a queue that are read at once."""
FAIL, SKIP, REPORT = "fail", "skip", "report"


class ScanOptions(msgspec.Struct, frozen=True):
    """How to scan."""

    topics: frozenset[str] = frozenset()
    on_corrupt: str = FAIL
    verifies_crc: bool = False
    decompresses: bool = True
    decode_rows: int = 4096
    broker_name: str | None = None
    queues_folder: str | None = None
    """The store's consume queues: they say where records begin, and are believed as far as the log agrees."""
    reads_heads_only: bool = False
    """Only numbers of the heads are read: the lengths of the texts behind them need not agree."""


class ScannedRecords(msgspec.Struct):
    """Records of one file with a status each (None: all ok), or, without records, the position of damage."""

    file: LogFile
    records: Records | None = None
    statuses: Any = None
    bad_position: int = -1
    bad_status: str = ""


def scan_log(split: LogSplit, options: ScanOptions) -> Iterator[ScannedRecords]:
    """The records that begin in a split, in the order of the log."""
    file = split.file
    data = map_file(file.path)
    # Since planning, the file may have been deleted or shortened: such a split ends early.
    end = min(split.end, len(data))
    position = split.begin if split.begin == 0 else find_record(data, split.begin, end, file.base)
    window_bytes = FIRST_WINDOW_BYTES
    queues: UnitStarts | None = None
    while position < end:
        position = yield from _scan_sound(data, position, end, file, options)
        if position >= end:
            return
        if queues is None and options.queues_folder is not None:
            queues = UnitStarts(options.queues_folder, file.base)
        window_end = min(end, position + window_bytes)
        if queues is not None:
            found = queues.walk(data, position, window_end)
        else:
            found = walk_window(data, position, window_end, file.base)
        position, reason = found.stop, found.reason
        for starts in _batches(found.starts, options.decode_rows):
            records = Records(data, starts, broker_name=options.broker_name)
            reads_no_texts = options.reads_heads_only and not options.topics  # the topic is one of the texts
            agree = None if reads_no_texts else records.lengths_agree()
            is_sound = agree is None or bool(agree.all())
            if (
                agree is not None and not is_sound
            ):  # its size may be wrong as well, so the records found after it are not trusted
                first = int(agree.argmin())
                position, reason = int(records.starts[first]), BAD_SIZE
                records = records.only(np.arange(len(agree)) < first)
            yield from _check_records(records, file, options)
            if not is_sound:
                break
        if position >= window_end and reason == AT_END:
            window_bytes = min(2 * window_bytes, WINDOW_BYTES)
            continue
        window_bytes = DAMAGED_WINDOW_BYTES
        following = next_position(data, position, end, split)
        if reason == AT_END and following >= end:
            return
        if file.is_last and file.base + position >= split.known_end:
            return
        yield from _report_damage(file, position, BAD_MAGIC if reason == AT_END else _status(reason), options)
        position = following


def _scan_sound(
    data: memoryview, position: int, end: int, file: LogFile, options: ScanOptions
) -> Generator[ScannedRecords, None, int]:
    """The records up to the first that is not sound; returns where that begins."""
    while position < end:
        records = sound_records(
            data,
            position,
            min(end, position + BATCH_BYTES),
            file.base,
            most=options.decode_rows,
            checks_crc=options.verifies_crc,
            broker_name=options.broker_name,
        )
        if not len(records):
            break
        position = int(records.starts[-1] + records.sizes[-1])
        records = _wanted(records, options)
        if len(records):
            yield ScannedRecords(file, records)
    return position


def _batches(starts: Ints, rows: int) -> Iterator[Ints]:
    """The positions in pieces of at most `rows` records that begin within `BATCH_BYTES`."""
    first, count = 0, len(starts)
    while first < count:
        stop = min(first + rows, count)
        if starts[stop - 1] - starts[first] >= BATCH_BYTES:
            stop = int(np.searchsorted(starts, starts[first] + BATCH_BYTES))
        yield starts[first:stop]
        first = stop


def next_position(data: memoryview, position: int, end: int, split: LogSplit) -> int:
    """Where the next record begins after a position without one. In the last file, the end of the split after the
    written bytes."""
    if split.file.is_last and split.file.base + position >= split.known_end:
        return end
    return find_record(data, position + 1, end, split.file.base)


def _status(reason: str) -> str:
    return reason if reason in (BAD_MAGIC, BAD_SIZE) else BAD_SIZE


def scan_queue(split: QueueSplit, files: list[LogFile], options: ScanOptions) -> Iterator[ScannedRecords]:
    """The records that the units of a queue point at, in the order of the queue, without those whose log file was
    deleted."""
    maps: dict[str, memoryview] = {}
    for first in range(split.lo, split.hi, UNIT_ROWS):
        block = units(split.folder, first, min(first + UNIT_ROWS, split.hi))
        positions = block["position"].astype(np.int64)
        sizes = block["size"].astype(np.int64)
        sizes[(sizes < 0) | (sizes >= PRE_BLANK)] = 0
        for rows in batch_rows(sizes, options.decode_rows):
            for file in _files_between(files, positions[rows]):
                in_file = (positions[rows] >= file.base) & (positions[rows] < file.base + file.size)
                in_file &= sizes[rows] > 0
                if in_file.any():
                    data = mapped(file, maps)
                    starts = positions[rows][in_file] - file.base
                    yield from records_at_units(file, starts, sizes[rows][in_file], options, data)


def batch_rows(sizes: Ints, rows: int) -> Iterator[slice]:
    """Units in pieces of at most `rows`, of about `BATCH_BYTES` together; at least one."""
    ends = np.cumsum(sizes)
    first, count = 0, len(sizes)
    while first < count:
        before = int(ends[first - 1]) if first else 0
        stop = min(first + rows, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
        stop = min(max(stop, first + 1), count)
        yield slice(first, stop)
        first = stop


def _files_between(files: list[LogFile], positions: Ints) -> list[LogFile]:
    lowest, highest = int(positions.min()), int(positions.max())
    return [file for file in files if file.base <= highest and file.base + file.size > lowest]


def records_at_units(
    file: LogFile, starts: Any, sizes: Any, options: ScanOptions, data: memoryview | None = None
) -> Iterator[ScannedRecords]:
    """The records at these byte positions of one file; `data` is the file if it is mapped already."""
    data = map_file(file.path) if data is None else data
    # `Records` needs rising positions. A queue's positions rise, unless it is damaged.
    order = np.argsort(starts, kind="stable")
    starts, sizes = starts[order], sizes[order]
    fits = (sizes >= MIN_RECORD_BYTES) & (starts + sizes <= len(data))
    for start in starts[~fits].tolist():
        yield from _report_damage(file, start, BAD_SIZE, options)
    records = Records(data, starts[fits], broker_name=options.broker_name)
    agree = (records.sizes == sizes[fits]) & records.lengths_agree()
    for start in records.starts[~agree].tolist():
        yield from _report_damage(file, start, BAD_MAGIC, options)
    if agree.any():
        yield from _check_records(records.only(agree), file, options)


def _check_records(records: Records, file: LogFile, options: ScanOptions) -> Iterator[ScannedRecords]:
    records = _wanted(records, options)
    if len(records):
        yield from check_stored_values(records, file, options)


def _wanted(records: Records, options: ScanOptions) -> Records:
    if options.topics and len(records):
        records = records.only(records.of_topics(options.topics))
    if not options.decompresses:
        records.keep_bodies_compressed()
    return records


def check_stored_values(records: Records, file: LogFile, options: ScanOptions) -> Iterator[ScannedRecords]:
    """Checks records that can be decoded: stored position, and CRC if `verifies_crc`."""
    is_elsewhere = records.head("physicalOffset") != file.base + records.starts
    is_bad_crc = records.bad_crcs() if options.verifies_crc else np.zeros(len(records), dtype=np.bool_)
    bad = is_elsewhere | is_bad_crc
    if not bad.any():
        yield ScannedRecords(file, records)
        return
    statuses = np.where(is_elsewhere, BAD_OFFSET, np.where(is_bad_crc, BAD_CRC, OK)).astype(object)
    if options.on_corrupt == REPORT:
        yield ScannedRecords(file, records, pa.array(statuses.tolist(), type=pa.string()))
        return
    for row in np.flatnonzero(bad).tolist():
        yield from _report_damage(file, int(records.starts[row]), statuses[row], options)
    if not bad.all():
        yield ScannedRecords(file, records.only(~bad))


def _report_damage(
    file: LogFile, position: int, status: str, options: ScanOptions
) -> Iterator[ScannedRecords]:
    damage = f"{file.path} at byte {position} (log position {file.base + position}): {status}"
    if options.on_corrupt == FAIL:
        raise CorruptStoreError(
            f"{damage}; onCorrupt (on_corrupt in a call): skip skips it, report makes a row of it"
        )
    if options.on_corrupt == SKIP:
        _log.warning("skipped: %s", damage)
        return
    yield ScannedRecords(file, None, None, position, status)
