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
    while at + head_bytes <= end:
        size, magic, crc, queue_id, queue_offset, sys_flag, timestamp, body_bytes = unpack(view, at)
        body_at, record_end = at + head_bytes, at + size
        tail_at = body_at + body_bytes
        topic: bytes | None = None
        if (
            magic == MAGIC_V1
            and not sys_flag & HOSTS_IPV6
            and body_bytes >= 0
            and tail_at + _SHORTEST_TAIL <= record_end <= end
        ):
            tail = bytes(view[tail_at:record_end])
            topic_end = 1 + tail[0]
            properties_at = topic_end + 2
            if (
                tail[0] < 0x80
                and properties_at <= len(tail)
                and int.from_bytes(tail[topic_end:properties_at], "big", signed=True)
                == len(tail) - properties_at
                and (not check_crc or not body_bytes or crc32(view[body_at:tail_at]) & 0x7FFFFFFF == crc)
            ):
                topic = tail[1:topic_end]
                yield at, size, queue_id, queue_offset, sys_flag, timestamp, topic, tail[properties_at:]
        if topic is None:
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
