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

import functools
import logging
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from pocketmq.protocol.message.record import MIN_RECORD_BYTES

from ...errors import CorruptStoreError
from ..records.boundaries import AT_END, BAD_MAGIC, BAD_SIZE, find_record, why_none
from ..records.records import Records, records_at, scan
from ..records.slices import Ints, batch_slices
from .consume_queues import PRE_BLANK, QueueSplit, unit_batches
from .log_files import LogFile, LogSplit, LogWindow, files_at, log_window, split_window
from .run_statuses import OK

_log = logging.getLogger("pocketmq.pipeline")

BAD_CRC: Final = "bad crc"
BAD_OFFSET: Final = "bad offset"
BATCH_BYTES: Final = 8 * 1024 * 1024
"""Bytes of records in one batch; the last record may reach beyond."""
FAIL, SKIP, REPORT = "fail", "skip", "report"
HOW_TO_GO_ON: Final = "; onCorrupt (on_corrupt in a call): skip skips it, report makes a row of it"


class ScanOptions(msgspec.Struct, frozen=True):
    """How to scan."""

    topics: frozenset[str] = frozenset()
    on_corrupt: str = FAIL
    verifies_crc: bool = False
    decompresses: bool = True
    decode_rows: int = 4096
    broker_name: str | None = None


class ScannedRecords(msgspec.Struct):
    """Records of one file with a status each (None: all ok), or, without records, the log position of damage.

    `base` is the log position of byte 0 of the records' buffer.
    """

    file: LogFile
    base: int = 0
    records: Records | None = None
    statuses: Any = None
    bad_position: int = -1
    bad_status: str = ""


def scan_log(split: LogSplit, options: ScanOptions) -> Iterator[ScannedRecords]:
    """The records that begin in a split, in the order of the log."""
    file, window = split.file, split_window(split)
    data, base = window.data, window.base
    # Since planning, the file may have been deleted or shortened: such a split ends early.
    end = min(file.base + split.end - base, len(data))
    position = file.base + split.begin - base
    if split.begin > 0:
        position = find_record(data, position, end, base)
    read = functools.partial(scan, data, most=options.decode_rows, broker_name=options.broker_name)
    while position < end:
        batch_end = min(end, position + BATCH_BYTES)
        records = read(position, batch_end, base, check_crc=options.verifies_crc)
        is_sound = len(records) > 0
        if not is_sound:  # the first of them is whole at best: those from it on are looked at one by one
            records = read(position, batch_end)
        if len(records):
            position = int(records.starts[-1] + records.sizes[-1])
            records = _wanted(records, options)
            if is_sound and len(records):
                yield ScannedRecords(file, base, records)
            elif len(records):
                yield from check_stored_values(records, base, file, options)
            continue
        reason = why_none(data, position)
        is_after_known = file.is_last and base + position >= split.known_end
        # In the last file, behind the written bytes, nothing follows.
        following = end if is_after_known else find_record(data, position + 1, end, base)
        if is_after_known or (reason == AT_END and following >= end):
            return
        yield from _report_damage(file, base + position, BAD_MAGIC if reason == AT_END else reason, options)
        position = following


def scan_queue(split: QueueSplit, files: list[LogFile], options: ScanOptions) -> Iterator[ScannedRecords]:
    """The records that the units of a queue point at, in the order of the queue, without those whose log file was
    deleted."""
    window: LogWindow | None = None
    for _, block in unit_batches(split):
        positions = block["position"].astype(np.int64)
        sizes = block["size"].astype(np.int64)
        sizes[(sizes < 0) | (sizes >= PRE_BLANK)] = 0
        for first, stop in batch_slices(sizes, options.decode_rows, BATCH_BYTES):
            rows = slice(first, stop)
            for file in files_at(files, positions[rows]):
                in_file = (positions[rows] >= file.base) & (positions[rows] < file.base + file.size)
                in_file &= sizes[rows] > 0
                if in_file.any():
                    window = log_window(file, before=window)
                    found = positions[rows][in_file], sizes[rows][in_file]
                    yield from records_at_units(window, *found, options)


def records_at_units(
    window: LogWindow, positions: Ints, sizes: Ints, options: ScanOptions
) -> Iterator[ScannedRecords]:
    """The records at these log positions, of which the window has the bytes."""
    file, data, base = window.file, window.data, window.base
    # `Records` needs rising positions. A queue's positions rise, unless it is damaged.
    order = np.argsort(positions, kind="stable")
    starts, sizes = positions[order] - base, sizes[order]
    fits = (sizes >= MIN_RECORD_BYTES) & (starts + sizes <= len(data))
    for start in starts[~fits].tolist():
        yield from _report_damage(file, base + start, BAD_SIZE, options)
    records = records_at(data, starts[fits], sizes[fits], broker_name=options.broker_name)
    agree = records.sizes == sizes[fits]
    for start in records.starts[~agree].tolist():
        yield from _report_damage(file, base + start, BAD_MAGIC, options)
    records = _wanted(records.only(agree), options)
    if len(records):
        yield from check_stored_values(records, base, file, options)


def _wanted(records: Records, options: ScanOptions) -> Records:
    if options.topics and len(records):
        records = records.only(records.of_topics(options.topics))
    if not options.decompresses:
        records.keep_bodies_compressed()
    return records


def check_stored_values(
    records: Records, base: int, file: LogFile, options: ScanOptions
) -> Iterator[ScannedRecords]:
    """Checks records that can be decoded: stored position, and CRC if `verifies_crc`."""
    is_elsewhere = records.head("physicalOffset") != base + records.starts
    is_bad_crc = records.bad_crcs() if options.verifies_crc else np.zeros(len(records), dtype=np.bool_)
    bad = is_elsewhere | is_bad_crc
    if not bad.any():
        yield ScannedRecords(file, base, records)
        return
    statuses = np.where(is_elsewhere, BAD_OFFSET, np.where(is_bad_crc, BAD_CRC, OK)).astype(object)
    if options.on_corrupt == REPORT:
        yield ScannedRecords(file, base, records, pa.array(statuses.tolist(), type=pa.string()))
        return
    for row in np.flatnonzero(bad).tolist():
        yield from _report_damage(file, base + int(records.starts[row]), statuses[row], options)
    if not bad.all():
        yield ScannedRecords(file, base, records.only(~bad))


def _report_damage(
    file: LogFile, position: int, status: str, options: ScanOptions
) -> Iterator[ScannedRecords]:
    damage = f"{file.path} at byte {position - file.base} (log position {position}): {status}"
    if options.on_corrupt == FAIL:
        raise CorruptStoreError(damage, HOW_TO_GO_ON)
    if options.on_corrupt == SKIP:
        _log.warning("skipped: %s", damage)
        return
    yield ScannedRecords(file, bad_position=position, bad_status=status)
