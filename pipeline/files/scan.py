"""Scanning store files: records found, checked, and what is wrong said with its place. No Spark.

`scan_log` walks one split of the commit log, `scan_queue` follows the entries of one consume queue. Each yields
`ScannedRecords`: some thousand records with a status each, or one place that is no record. What becomes of a bad one is
`on_corrupt`:

    fail     CorruptStoreError naming file and position
    skip     left out, with a warning; reading goes on at the next record that can be found
    report   a row with a status, and on

    ok  bad magic  bad size  bad offset (stored for another position)  bad crc (looked at with `verifies_crc`)

Bounds in memory: one batch of decoded columns; the file itself is mapped.
"""

import logging
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pocketmq.protocol.message.record import MIN_RECORD_BYTES

from ..errors import CorruptStoreError
from ..records.boundaries import AT_END, BAD_MAGIC, BAD_SIZE, find_record, walk_records
from ..records.records import Records
from .consume_queues import PRE_BLANK, QueueSplit, entries
from .log_files import LogFile, LogSplit
from .mapped_file import map_file

_log = logging.getLogger("pocketmq.pipeline")

OK: Final = "ok"
BAD_CRC: Final = "bad crc"
BAD_OFFSET: Final = "bad offset"
BATCH_BYTES: Final = 16 * 1024 * 1024
"""Of records in one batch, but for the last one's."""
FAIL, SKIP, REPORT = "fail", "skip", "report"


class ScanOptions(msgspec.Struct, frozen=True):
    """How to scan."""

    topics: frozenset[str] = frozenset()
    on_corrupt: str = FAIL
    verifies_crc: bool = False
    decompresses: bool = True
    decode_rows: int = 4096
    broker_name: str | None = None


class ScannedRecords(msgspec.Struct):
    """Records of one file, with a status each (None: all ok); or, without records, a bad place."""

    file: LogFile
    records: Records | None = None
    statuses: Any = None
    bad_position: int = -1
    bad_status: str = ""


def scan_log(split: LogSplit, options: ScanOptions) -> Iterator[ScannedRecords]:
    """The records that begin in a split, in the order of the log."""
    file = split.file
    data = map_file(file.path)
    # The file was named by planning; a split of one that is gone or shorter now has no more to read.
    end = min(split.end, len(data))
    position = split.begin if split.begin == 0 else find_record(data, split.begin, end, file.base)
    while position < end:
        near = min(end, position + BATCH_BYTES)
        found = walk_records(data, position, near, limit=options.decode_rows)
        records = Records(data, found.starts, broker_name=options.broker_name)
        position, reason = found.stop, found.reason
        agree = records.lengths_agree()
        if not agree.all():  # its size may be wrong as well: what was walked behind it is not trusted
            first = int(agree.argmin())
            position, reason = int(records.starts[first]), BAD_SIZE
            records = records.only(np.arange(len(agree)) < first)
        yield from _checked(records, file, options)
        if position >= near or (reason == AT_END and len(found.starts) == options.decode_rows):
            continue
        again = next_position(data, position, end, split)
        if reason == AT_END and again >= end:
            return
        if file.is_last and file.base + position >= split.known_end:
            return
        yield from _bad(file, position, BAD_MAGIC if reason == AT_END else _status(reason), options)
        position = again


def next_position(data: memoryview, position: int, end: int, split: LogSplit) -> int:
    """Where the next record begins behind a place that is none; the last file ends where nothing was written."""
    if split.file.is_last and split.file.base + position >= split.known_end:
        return end
    return find_record(data, position + 1, end, split.file.base)


def _status(reason: str) -> str:
    return reason if reason in (BAD_MAGIC, BAD_SIZE) else BAD_SIZE


def scan_queue(split: QueueSplit, files: list[LogFile], options: ScanOptions) -> Iterator[ScannedRecords]:
    """The records that entries of a queue point at, in the order of the queue. Those whose log file was deleted are
    left out."""
    for first in range(split.lo, split.hi, options.decode_rows):
        some = entries(split.folder, first, min(first + options.decode_rows, split.hi))
        positions = some["position"].astype(np.int64)
        sizes = some["size"].astype(np.int64)
        for file in files:
            mine = (
                (positions >= file.base)
                & (positions < file.base + file.size)
                & (sizes > 0)
                & (sizes < PRE_BLANK)
            )
            if mine.any():
                yield from records_at_entries(file, positions[mine] - file.base, sizes[mine], options)


def records_at_entries(
    file: LogFile, starts: Any, sizes: Any, options: ScanOptions
) -> Iterator[ScannedRecords]:
    data = map_file(file.path)
    order = np.argsort(
        starts, kind="stable"
    )  # texts are cut in rising order; queues rise, damaged ones need not
    starts, sizes = starts[order], sizes[order]
    fits = (sizes >= MIN_RECORD_BYTES) & (starts + sizes <= len(data))
    for start in starts[~fits].tolist():
        yield from _bad(file, start, BAD_SIZE, options)
    records = Records(data, starts[fits], broker_name=options.broker_name)
    agree = (records.sizes == sizes[fits]) & records.lengths_agree()
    for start in records.starts[~agree].tolist():
        yield from _bad(file, start, BAD_MAGIC, options)
    if agree.any():
        yield from _checked(records.only(agree), file, options)


def _checked(records: Records, file: LogFile, options: ScanOptions) -> Iterator[ScannedRecords]:
    if not len(records):
        return
    if options.topics:
        wanted = pc.is_in(records.topics(), value_set=pa.array(sorted(options.topics)))
        records = records.only(np.asarray(wanted))
        if not len(records):
            return
    if not options.decompresses:
        records.keep_bodies_compressed()
    yield from check_stored_values(records, file, options)


def check_stored_values(records: Records, file: LogFile, options: ScanOptions) -> Iterator[ScannedRecords]:
    """Records whose parts can be read, but which may not be what was written."""
    elsewhere = records.head("physicalOffset") != file.base + records.starts
    bad_crc = records.bad_crcs() if options.verifies_crc else np.zeros(len(records), dtype=np.bool_)
    bad = elsewhere | bad_crc
    if not bad.any():
        yield ScannedRecords(file, records)
        return
    statuses = np.where(elsewhere, BAD_OFFSET, np.where(bad_crc, BAD_CRC, OK)).astype(object)
    if options.on_corrupt == REPORT:
        yield ScannedRecords(file, records, pa.array(statuses.tolist(), type=pa.string()))
        return
    for row in np.flatnonzero(bad).tolist():
        yield from _bad(file, int(records.starts[row]), statuses[row], options)
    if not bad.all():
        yield ScannedRecords(file, records.only(~bad))


def _bad(file: LogFile, position: int, status: str, options: ScanOptions) -> Iterator[ScannedRecords]:
    where = f"{file.path} at byte {position} (log position {file.base + position}): {status}"
    if options.on_corrupt == FAIL:
        raise CorruptStoreError(f"{where}; onCorrupt=skip leaves it out, report makes a row of it")
    if options.on_corrupt == SKIP:
        _log.warning("left out: %s", where)
        return
    yield ScannedRecords(file, None, None, position, status)
