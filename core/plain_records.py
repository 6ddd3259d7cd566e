"""The records of a log file as long as they have the plain form: version 1, IPv4 hosts."""

import zlib

from pocketmq.protocol.message.flags import HOSTS_IPV6
from pocketmq.protocol.message.record import DISPATCH_HEAD, MAGIC_V1

from .choice import choose

_SHORTEST_TAIL = 3
"""Behind the body: the length of the topic in one byte, that of the properties in two."""

LoggedRecord = tuple[int, int, int, int, int, int, bytes, bytes]
"""(byte in the file, size, queue id, queue offset, sys flag, store timestamp ms, topic, properties); a plain tuple,
because making anything else takes longer than all the checks."""


def scan_plain(view: memoryview, at: int, end: int, check_crc: bool, limit: int) -> list[LoggedRecord]:
    """Up to `limit` records that lie back to back from byte `at` on, none reaching beyond `end`; never raises for any
    bytes. Ends before the first bytes that are no record of that form."""
    unpack, crc32, head_bytes = DISPATCH_HEAD.unpack_from, zlib.crc32, DISPATCH_HEAD.size
    records: list[LoggedRecord] = []
    # What the record before had between body and properties, and how many bytes from there to its end.
    known, known_bytes, tail_bytes, topic = b"", 0, 0, b""
    while at + head_bytes <= end and len(records) < limit:
        size, magic, crc, queue_id, queue_offset, sys_flag, timestamp, body_bytes = unpack(view, at)
        body_at, record_end = at + head_bytes, at + size
        tail_at = body_at + body_bytes
        if (
            magic != MAGIC_V1
            or sys_flag & HOSTS_IPV6
            or body_bytes < 0
            or not tail_at + _SHORTEST_TAIL <= record_end <= end
        ):
            break
        tail = view[tail_at:record_end].tobytes()
        if len(tail) != tail_bytes or tail[:known_bytes] != known:
            topic_bytes = tail[0]
            known_bytes, tail_bytes = topic_bytes + 3, len(tail)
            known = tail[:known_bytes]
            topic = tail[1 : topic_bytes + 1]
            properties_bytes = int.from_bytes(known[-2:], "big", signed=True)
            if topic_bytes >= 0x80 or not properties_bytes == tail_bytes - known_bytes >= 0:
                break
        if check_crc and body_bytes and crc32(view[body_at:tail_at]) & 0x7FFFFFFF != crc:
            break
        records.append((at, size, queue_id, queue_offset, sys_flag, timestamp, topic, tail[known_bytes:]))
        at = record_end
    return records


scan_plain = choose(scan_plain)
