"""Walks the records of a log file: checks each, CRC included, and returns the fields that dispatch needs.

`measure_record` decides what a record is. Records of the plain form are checked by the same rule and unpacked at once,
many at a time (`core/plain_records.py`), because a crash may leave millions of records to read. All other forms
are decoded field by field.
"""

from collections.abc import Iterator

from pocketmq.core.plain_records import LoggedRecord, scan_plain
from pocketmq.protocol.message.record import decode_record, measure_record

_AT_ONCE = 4096


def scan_records(view: memoryview, at: int, end: int, *, check_crc: bool) -> Iterator[LoggedRecord]:
    """The records that lie back to back from byte `at` on, none reaching beyond `end`; never raises for any bytes.

    Ends before the first bytes that are not a record: filler, zeros, damage. `measure_record` says which.
    """
    while True:
        while piece := scan_plain(view, at, end, check_crc, _AT_ONCE):
            yield from piece
            at = piece[-1][0] + piece[-1][1]
        size = measure_record(view, at, end, check_crc=check_crc)
        if size <= 0:
            return
        yield _take_apart(view, at, size)
        at += size


def _take_apart(view: memoryview, at: int, size: int) -> LoggedRecord:
    record = decode_record(view, at)
    return (
        at,
        size,
        record.queue_id,
        record.queue_offset,
        record.sys_flag,
        record.store_timestamp,
        record.topic.encode(),
        bytes(record.properties),
    )
