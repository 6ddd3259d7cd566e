"""Walks the records of a log file: checks each, CRC included, and returns the fields that dispatch needs.

`measure_record` decides what a record is. The common form (version 1, IPv4 hosts) is checked here by the same rule and
unpacked at once instead of field by field, because a crash may leave millions of records to read. All other forms are
decoded field by field.
"""

import zlib
from collections.abc import Iterator

from pocketmq.protocol.message.flags import HOSTS_IPV6
from pocketmq.protocol.message.record import DISPATCH_HEAD, MAGIC_V1, decode_record, measure_record

LoggedRecord = tuple[int, int, int, int, int, int, bytes, bytes]
"""(byte in the file, size, queue id, queue offset, sys flag, store timestamp ms, topic, properties); a plain tuple,
because making anything else takes longer than all the checks."""

_SHORTEST_TAIL = 3
"""Behind the body: the length of the topic in one byte, that of the properties in two."""


def scan_records(view: memoryview, at: int, end: int, *, check_crc: bool) -> Iterator[LoggedRecord]:
    """The records that lie back to back from byte `at` on, none reaching beyond `end`; never raises for any bytes.

    Ends before the first bytes that are not a record: filler, zeros, damage. `measure_record` says which.
    """
    unpack, crc32, head_bytes = DISPATCH_HEAD.unpack_from, zlib.crc32, DISPATCH_HEAD.size
    # What the record before had between body and properties, and how many bytes from there to its end.
    known, known_bytes, tail_bytes, topic = b"", 0, 0, b""
    while at + head_bytes <= end:
        size, magic, crc, queue_id, queue_offset, sys_flag, timestamp, body_bytes = unpack(view, at)
        body_at, record_end = at + head_bytes, at + size
        tail_at = body_at + body_bytes
        is_common = False
        if (
            magic == MAGIC_V1
            and not sys_flag & HOSTS_IPV6
            and body_bytes >= 0
            and tail_at + _SHORTEST_TAIL <= record_end <= end
        ):
            tail = view[tail_at:record_end].tobytes()
            if len(tail) == tail_bytes and tail[:known_bytes] == known:
                is_common = True
            elif (topic_bytes := tail[0]) < 0x80:
                known_bytes, tail_bytes = topic_bytes + 3, len(tail)
                known = tail[:known_bytes]
                topic = tail[1 : topic_bytes + 1]
                properties_bytes = int.from_bytes(known[-2:], "big", signed=True)
                is_common = properties_bytes == tail_bytes - known_bytes >= 0
                if not is_common:
                    tail_bytes = 0
            if is_common and check_crc and body_bytes:
                is_common = crc32(view[body_at:tail_at]) & 0x7FFFFFFF == crc
        if is_common:
            yield at, size, queue_id, queue_offset, sys_flag, timestamp, topic, tail[known_bytes:]
        else:
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
