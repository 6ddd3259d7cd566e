"""The records of a batch whose messages differ in body and unique id only."""

import mmap
import struct
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

from pocketmq.protocol.message.batch import UNIQUE_ID_BYTES

from .choice import chosen

_INT = struct.Struct(">i")
_PACK_INT = _INT.pack_into
MIDDLE = struct.Struct(">4sq8sq12sq")
"""The bytes of a record between its position and its body's length: sysFlag, bornTimestamp, bornHost, storeTimestamp,
storeHost and reconsumeTimes, preparedTransactionOffset."""
_NO_LENGTH = bytes(4)


@lru_cache(2048)
def _shape(body_bytes: int, before_bytes: int, behind_bytes: int) -> struct.Struct:
    return struct.Struct(
        f">8si8sqq{MIDDLE.size}si{body_bytes}s{before_bytes}s{UNIQUE_ID_BYTES}s{behind_bytes}s"
    )


def pack_batch(
    memory: mmap.mmap | bytearray,
    at: int,
    position: int,
    queue_offset: int,
    magic: bytes,
    queue_and_flag: bytes,
    middle: bytes,
    up_to_id: bytes,
    behind_id: bytes,
    bodies: Sequence[bytes],
    unique_ids: Sequence[bytes],
) -> list[int]:
    """Write the records back to back from byte `at` of a log file on; returns the size of each.

    `position` is that of the first record in the log, `queue_offset` that of the first in its queue. Each id is 32
    bytes long. The first length is written last: where the process dies half-way, the log ends before the batch.
    Raises ValueError, struct.error or OverflowError for what does not fit; then bytes behind `at` may have changed.
    """
    first_at, body_bytes, size, head = at, -1, 0, b""
    sizes: list[int] = []
    for body, unique_id in zip(bodies, unique_ids, strict=True):
        if len(body) != body_bytes:
            body_bytes = len(body)
            shape = _shape(body_bytes, len(up_to_id), len(behind_id))
            pack_record, size = shape.pack_into, shape.size
            head = _INT.pack(size) + magic
        pack_record(
            memory,
            at,
            head if sizes else _NO_LENGTH + magic,
            crc32(body) & 0x7FFFFFFF,
            queue_and_flag,
            queue_offset,
            position,
            middle,
            body_bytes,
            body,
            up_to_id,
            unique_id,
            behind_id,
        )
        sizes.append(size)
        at += size
        position += size
        queue_offset += 1
    if sizes:
        _PACK_INT(memory, first_at, sizes[0])
    return sizes


pack_batch = chosen(pack_batch)
