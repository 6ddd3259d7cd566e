"""The stored message ("record"): the bytes of the commit log, of pull replies and of every "view message" reply.

    byte  field                         bytes
       0  totalSize                     4        the whole record
       4  magic                         4        V1 0xDAA320A7, V2 0xDAA320AB
       8  bodyCRC                       4        CRC-32 of the stored body, & 0x7FFFFFFF; 0 without a body
      12  queueId                       4
      16  flag                          4        the user's number
      20  queueOffset                   8        index in the queue
      28  physicalOffset                8        position of this record in the commit log
      36  sysFlag                       4        flags.py; bits 0x10 and 0x20 widen the hosts below by 12 bytes
      40  bornTimestamp                 8        producer's clock, ms
      48  bornHost                      8 | 20   IP, then port (4)
      56  storeTimestamp                8        broker's clock, ms
      64  storeHost                     8 | 20
      72  reconsumeTimes                4
      76  preparedTransactionOffset     8
      84  bodyLength, body              4 + n
      88  topicLength, topic            1 + n    V2: 2 + n
          propertiesLength, properties  2 + n    signed: at most 32767

All numbers are big-endian. The byte column is for two IPv4 hosts and an empty body. A log file ends with the filler:
int32 bytes left, int32 magic 0xCBD43194. Lengths are checked here, meanings are not.
Official classes: MessageDecoder, MessageExtEncoder, CommitLog.checkMessageAndReturnSize.
"""

import struct
import zlib
from collections.abc import Iterator

import msgspec

from ..errors import BodyError
from .flags import BORN_HOST_IPV6, HOSTS_IPV6, STORE_HOST_IPV6

MAGIC_V1 = -626843481
MAGIC_V2 = -626843477
BLANK_MAGIC = -875286124

BLANK = 0
"""`measure_record`: this is the filler; continue at the next file."""
INVALID = -1
"""`measure_record`: this is not a record."""

HEADS = (
    struct.Struct(">iiiiiqqiq8sq8siqi"),
    struct.Struct(">iiiiiqqiq20sq8siqi"),
    struct.Struct(">iiiiiqqiq8sq20siqi"),
    struct.Struct(">iiiiiqqiq20sq20siqi"),
)
"""The head, which is everything up to and with bodyLength: `head_for` picks the one for the hosts of a record."""
assert [head.size for head in HEADS] == [88, 100, 100, 112]

DISPATCH_HEAD = struct.Struct(">iiii4xq8xi16xq20xi")
"""HEADS[0] without the fields that dispatch does not need: size, magic, bodyCRC, queueId, queueOffset, sysFlag,
storeTimestamp, bodyLength."""
assert DISPATCH_HEAD.size == HEADS[0].size

READER_HEAD = struct.Struct(">ii4xi4xq8xi32xi8xi")
"""HEADS[0] without the fields that few readers look at: size, magic, queueId, queueOffset, sysFlag, reconsumeTimes,
bodyLength."""
assert READER_HEAD.size == HEADS[0].size

# Where the fields of a head begin. Behind bornHost the positions depend on its width.
SIZE_AT = 0
MAGIC_AT = 4
BODY_CRC_AT = 8
QUEUE_ID_AT = 12
FLAG_AT = 16
QUEUE_OFFSET_AT = 20
PHYSICAL_OFFSET_AT = 28
SYS_FLAG_AT = 36
BORN_TIMESTAMP_AT = 40
BORN_HOST_AT = 48

SYS_FLAG_LAST_BYTE = SYS_FLAG_AT + 3
"""The byte of sysFlag that holds the IPv6 bits."""

IPV4_HOST_BYTES = 8
IPV6_HOST_BYTES = 20

FILLER = struct.Struct(">ii")
MIN_RECORD_BYTES = 91
MAX_TOPIC_BYTES_V1 = 127
MAX_PROPERTIES_BYTES = 32767
CRC_PROPERTY_BYTES = 20

_CRC_NAME = b"__CRC32#\x01"
_SIZE_MAGIC = struct.Struct(">ii")
_INT = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_LONG = struct.Struct(">q")
_HEAD_BY_BYTE = tuple(HEADS[(byte >> 4) & 3] for byte in range(256))
"""The head for each value of the byte at SYS_FLAG_LAST_BYTE: records are decoded by the million."""


class RecordError(BodyError):
    """The bytes are not a record: cut off, of an unknown version, or with contradicting lengths."""


class Record(msgspec.Struct, frozen=True):
    """A decoded record. `body` and `properties` are views of the bytes it was decoded from."""

    topic: str
    queue_id: int
    queue_offset: int
    position: int
    body: bytes | memoryview
    properties: bytes | memoryview
    flag: int = 0
    sys_flag: int = 0
    born_timestamp: int = 0
    born_host: bytes = bytes(8)
    store_timestamp: int = 0
    store_host: bytes = bytes(8)
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    body_crc: int = 0
    size: int = 0
    magic: int = MAGIC_V1


def head_for(sys_flag: int) -> struct.Struct:
    """The head of a record whose sysFlag is `sys_flag`: its two IPv6 bits say how wide the hosts are."""
    return _HEAD_BY_BYTE[sys_flag & 0xFF]


def body_crc(body: bytes | memoryview) -> int:
    """CRC-32 without its top bit, as records carry it."""
    return zlib.crc32(body) & 0x7FFFFFFF


def measure_record(data: memoryview, position: int, end: int, *, check_crc: bool = True) -> int:
    """Size of the record at `position`, or BLANK, or INVALID; never raises for any bytes.

    `end` is where readable bytes stop: a record that reaches beyond it is INVALID.
    """
    left = end - position
    if left < 8:
        return INVALID
    size: int
    size, magic = _SIZE_MAGIC.unpack_from(data, position)
    if magic == BLANK_MAGIC:
        return BLANK
    if (magic != MAGIC_V1 and magic != MAGIC_V2) or size < MIN_RECORD_BYTES or size > left:
        return INVALID
    record_end = position + size
    body_start = position + _HEAD_BY_BYTE[data[position + SYS_FLAG_LAST_BYTE]].size
    if body_start + 3 > record_end:
        return INVALID
    (body_length,) = _INT.unpack_from(data, body_start - 4)
    topic_start = body_start + body_length + (1 if magic == MAGIC_V1 else 2)
    if body_length < 0 or topic_start + 2 > record_end:
        return INVALID
    if magic == MAGIC_V1:
        # The length is a signed byte: official readers fail above 127.
        topic_length = data[topic_start - 1]
        if topic_length > MAX_TOPIC_BYTES_V1:
            return INVALID
    else:
        (topic_length,) = _SHORT.unpack_from(data, topic_start - 2)
    properties_start = topic_start + topic_length + 2
    if topic_length < 0 or properties_start > record_end:
        return INVALID
    if properties_start + _SHORT.unpack_from(data, properties_start - 2)[0] != record_end:
        return INVALID
    if check_crc and body_length:
        stored = _INT.unpack_from(data, position + BODY_CRC_AT)[0]
        if zlib.crc32(data[body_start : body_start + body_length]) & 0x7FFFFFFF != stored:
            return INVALID
    return size


def decode_record(data: bytes | memoryview, position: int = 0) -> Record:
    """The record at `position`; what follows it is ignored. Raises RecordError where `measure_record` finds none.

    The CRC is not checked, as on the official read path; compare `body_crc(record.body)`.
    """
    view = memoryview(data)
    end = len(view)
    if end - position < MIN_RECORD_BYTES:
        raise _not_a_record(view, position)
    head = _HEAD_BY_BYTE[view[position + SYS_FLAG_LAST_BYTE]]
    body_start = position + head.size
    if body_start >= end:
        raise _not_a_record(view, position)
    (
        size,
        magic,
        crc,
        queue_id,
        flag,
        queue_offset,
        own_position,
        sys_flag,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
        body_length,
    ) = head.unpack_from(view, position)
    body_end, record_end = body_start + body_length, position + size
    topic, tail_bytes = "", 0
    if magic == MAGIC_V1 and body_start <= body_end < record_end <= end:
        tail = bytes(view[body_end : body_end + view[body_end] + 3])
        topic, tail_bytes = _tails.get(tail) or _tail(tail)
    if tail_bytes and body_end + tail_bytes == record_end:
        properties_start = body_end + len(tail)
    else:  # version 2, or not a record
        if magic == MAGIC_V1 or measure_record(view, position, end, check_crc=False) <= 0:
            raise _not_a_record(view, position)
        properties_start = body_end + 2 + _SHORT.unpack_from(view, body_end)[0] + 2
        topic = str(view[body_end + 2 : properties_start - 2], "utf-8", "replace")
    return Record(
        topic,
        queue_id,
        queue_offset,
        own_position,
        view[body_start:body_end],
        view[properties_start:record_end],
        flag,
        sys_flag,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_transaction_offset,
        crc,
        size,
        magic,
    )


def _not_a_record(view: memoryview, position: int) -> RecordError:
    return RecordError(
        f"no record at byte {position} of {len(view)}: {bytes(view[position : position + 8]).hex()}"
    )


def decode_records(data: bytes | memoryview) -> Iterator[Record]:
    """The records of a pull reply, back to back. Raises RecordError at the first bytes that are not a record."""
    view = memoryview(data)
    position = 0
    while position < len(view):
        record = decode_record(view, position)
        yield record
        position += record.size


Row = tuple[bytes, str, int, int, int, int, bytes, int]
"""What most readers want of a record: body, topic, queueId, queueOffset, reconsumeTimes, sysFlag, its bytes before and
behind the body, for `restore_record`, and the byte at which it begins, for `decode_record`."""


def read_rows(data: bytes) -> list[Row]:
    """The records of a pull reply in one walk, four times as fast as `decode_records`. Raises RecordError as it does.

    A record with wide hosts, of version 2, or with lengths that do not fit is left to `decode_record`.
    """
    rows: list[Row] = []
    unpack, tails = READER_HEAD.unpack_from, _tails
    position, end = 0, len(data)
    while position < end:
        body_start = position + 88
        if body_start < end:
            size, magic, queue_id, queue_offset, sys_flag, times, body_length = unpack(data, position)
            body_end, record_end = body_start + body_length, position + size
            if magic == MAGIC_V1 and body_start <= body_end < record_end <= end and not sys_flag & HOSTS_IPV6:
                tail = data[body_end : body_end + data[body_end] + 3]
                topic, tail_bytes = tails.get(tail) or _tail(tail)
                if body_end + tail_bytes == record_end:
                    body = data[body_start:body_end]
                    around = data[position:body_start] + data[body_end:record_end]
                    rows.append((body, topic, queue_id, queue_offset, times, sys_flag, around, position))
                    position = record_end
                    continue
        record = decode_record(data, position)
        body_start, record_end = position + head_for(record.sys_flag).size, position + record.size
        around = data[position:body_start] + data[body_start + len(record.body) : record_end]
        place = (
            record.queue_id,
            record.queue_offset,
            record.reconsume_times,
            record.sys_flag,
            around,
            position,
        )
        rows.append((bytes(record.body), record.topic, *place))
        position = record_end
    return rows


def restore_record(around: bytes, body: bytes) -> Record:
    """The record with these bytes before and behind its body. A body of another length than the stored one counts as
    zeros."""
    stored_bytes = _INT.unpack_from(around)[0] - len(around)
    head_bytes = _HEAD_BY_BYTE[around[SYS_FLAG_LAST_BYTE]].size
    stored = body if len(body) == stored_bytes else bytes(stored_bytes)
    return decode_record(around[:head_bytes] + stored + around[head_bytes:])


def properties_around(around: bytes) -> memoryview:
    """The properties text of a record without its body."""
    at = _HEAD_BY_BYTE[around[SYS_FLAG_LAST_BYTE]].size
    if _INT.unpack_from(around, MAGIC_AT)[0] == MAGIC_V1:
        at += 1 + around[at]
    else:
        at += 2 + _SHORT.unpack_from(around, at)[0]
    return memoryview(around)[at + 2 :]


_MAX_TAILS = 4096
_tails: dict[bytes, tuple[str, int]] = {}
"""Topic length, topic and properties length as bytes: the topic, and how many bytes follow the body."""


def _tail(tail: bytes) -> tuple[str, int]:
    """The entry of `_tails`; no bytes at all if the lengths are wrong, which fits no record."""
    width = tail[0]
    properties_bytes = int.from_bytes(tail[-2:], "big", signed=True)
    if width > MAX_TOPIC_BYTES_V1 or len(tail) != width + 3 or properties_bytes < 0:
        return "", 0
    if len(_tails) >= _MAX_TAILS:
        _tails.clear()
    found = _tails[tail] = str(tail[1:-2], "utf-8", "replace"), len(tail) + properties_bytes
    return found


def encode_record(record: Record) -> bytes:
    """The bytes of `record`; `size` and `body_crc` are computed, the host bits of `sys_flag` follow the hosts.

    V2 is written if `magic` says so or the topic needs it. Raises RecordError if a field is too long for a record.
    """
    topic = record.topic.encode()
    properties = record.properties
    if len(topic) > MAX_PROPERTIES_BYTES or len(properties) > MAX_PROPERTIES_BYTES:
        raise RecordError(
            f"topic of {len(topic)} or properties of {len(properties)} bytes; the limit is 32767"
        )
    version_2 = record.magic == MAGIC_V2 or len(topic) > MAX_TOPIC_BYTES_V1
    sys_flag = sys_flag_for_hosts(record.sys_flag, record.born_host, record.store_host)
    head = head_for(sys_flag)
    topic_head = _SHORT.pack(len(topic)) if version_2 else bytes((len(topic),))
    size = head.size + len(record.body) + len(topic_head) + len(topic) + 2 + len(properties)
    packed = head.pack(
        size,
        MAGIC_V2 if version_2 else MAGIC_V1,
        body_crc(record.body),
        record.queue_id,
        record.flag,
        record.queue_offset,
        record.position,
        sys_flag,
        record.born_timestamp,
        record.born_host,
        record.store_timestamp,
        record.store_host,
        record.reconsume_times,
        record.prepared_transaction_offset,
        len(record.body),
    )
    return b"".join((packed, record.body, topic_head, topic, _SHORT.pack(len(properties)), properties))


def sys_flag_for_hosts(sys_flag: int, born_host: bytes, store_host: bytes) -> int:
    """`sys_flag` with the two IPv6 bits as the packed hosts need. Raises RecordError for other lengths."""
    widths = (IPV4_HOST_BYTES, IPV6_HOST_BYTES)
    if len(born_host) not in widths or len(store_host) not in widths:
        raise RecordError(f"a packed host is 8 or 20 bytes, not {len(born_host)} and {len(store_host)}")
    flag = sys_flag & ~HOSTS_IPV6
    if len(born_host) == IPV6_HOST_BYTES:
        flag |= BORN_HOST_IPV6
    if len(store_host) == IPV6_HOST_BYTES:
        flag |= STORE_HOST_IPV6
    return flag


# One field of a whole record that starts at byte 0.


def queue_offset_of(record: memoryview) -> int:
    queue_offset: int = _LONG.unpack_from(record, QUEUE_OFFSET_AT)[0]
    return queue_offset


def position_of(record: memoryview) -> int:
    """The position in the commit log that the record itself names."""
    position: int = _LONG.unpack_from(record, PHYSICAL_OFFSET_AT)[0]
    return position


def store_timestamp_of(record: memoryview) -> int:
    """storeTimestamp in ms."""
    is_wide = record[SYS_FLAG_LAST_BYTE] & BORN_HOST_IPV6
    timestamp: int = _LONG.unpack_from(
        record, BORN_HOST_AT + (IPV6_HOST_BYTES if is_wide else IPV4_HOST_BYTES)
    )[0]
    return timestamp


def topic_of(record: memoryview) -> str:
    start, end = _topic_bounds(record)
    return str(record[start:end], "utf-8", "replace")


def properties_of(record: memoryview) -> memoryview:
    """The properties text, as stored."""
    _, topic_end = _topic_bounds(record)
    (length,) = _SHORT.unpack_from(record, topic_end)
    return record[topic_end + 2 : topic_end + 2 + length]


def _topic_bounds(record: memoryview) -> tuple[int, int]:
    body_start = _HEAD_BY_BYTE[record[SYS_FLAG_LAST_BYTE]].size
    width_at = body_start + _INT.unpack_from(record, body_start - 4)[0]
    if _INT.unpack_from(record, MAGIC_AT)[0] == MAGIC_V1:
        return width_at + 1, width_at + 1 + record[width_at]
    return width_at + 2, width_at + 2 + _SHORT.unpack_from(record, width_at)[0]


def crc_property(record: bytes | memoryview) -> bytes:
    """The 20-byte property that ends a record with `enabledAppendPropCRC`. It covers all bytes before it.

    Ten decimal digits, least significant first: official brokers compute it in place without reversing.
    """
    return _CRC_NAME + f"{body_crc(record):010d}"[::-1].encode() + b"\x02"


def renew_crc_property(record: memoryview) -> None:
    """Compute the CRC property of a record whose bytes were changed, if it ends in one. `record` is writable."""
    if record[-CRC_PROPERTY_BYTES : -CRC_PROPERTY_BYTES + len(_CRC_NAME)] == _CRC_NAME:
        record[-CRC_PROPERTY_BYTES:] = crc_property(record[:-CRC_PROPERTY_BYTES])


def has_valid_crc_property(record: memoryview) -> bool:
    """True if `record` (exactly one, whole) ends in the property that `crc_property` gives for the rest of it."""
    return record[-CRC_PROPERTY_BYTES:] == crc_property(record[:-CRC_PROPERTY_BYTES])
