"""From a point in time to an offset in a queue (request 29, `getOffsetInQueueByTime`).

The two official lines answer differently for a time between, before or after the messages:

    asked time t               5.x LOWER             5.x UPPER            4.x
    after the last message     last + 1              last                 last
    at one or more messages    the first of them     the last of them     any of them
    between two messages       the later             the earlier          the nearer, the earlier on a tie
    before the first           min offset            min offset           the first that still exists

Store times rise within a queue, so this is a binary search in the one queue file that can hold the answer.
"""

from typing import Literal

from ..config import QUEUE_UNIT_BYTES
from ..files.mapped_file import MappedFile
from ..log.commit_log import CommitLog
from ..lookup.consume_queue import ConsumeQueue
from ..lookup.queue_unit import UNIT

Boundary = Literal["LOWER", "UPPER"]


def search_offset(
    queue: ConsumeQueue, log: CommitLog, timestamp_ms: int, boundary: Boundary = "LOWER", emulate: int = 5
) -> int:
    """Offset in `queue` for a time; 0 for an empty queue, or when a record that decides cannot be read."""
    if emulate == 4:
        return _search_nearest(queue, log, timestamp_ms)
    file = _file_for(queue, log, timestamp_ms, boundary)
    offset = (
        _search_file(queue, log, file, timestamp_ms, boundary) if file is not None and file.written else 0
    )
    return min(max(offset, queue.min_offset), queue.max_offset)


def _store_time(log: CommitLog, file: MappedFile, at: int) -> int:
    position, size, _ = UNIT.unpack_from(file.view, at)
    return log.store_timestamp(position, size)


def _file_for(
    queue: ConsumeQueue, log: CommitLog, timestamp_ms: int, boundary: Boundary
) -> MappedFile | None:
    files = queue.files
    if not files:
        return None
    if boundary == "LOWER":
        for file in files[:-1]:
            if _store_time(log, file, file.size - QUEUE_UNIT_BYTES) >= timestamp_ms:
                return file
        return files[-1]
    for file in reversed(files):
        if _store_time(log, file, 0) <= timestamp_ms:
            return file
    return None


def _first_index(queue: ConsumeQueue, file: MappedFile) -> int:
    return max(queue.min_offset - file.base // QUEUE_UNIT_BYTES, 0)


def _search_file(
    queue: ConsumeQueue, log: CommitLog, file: MappedFile, timestamp_ms: int, boundary: Boundary
) -> int:
    """ConsumeQueue.binarySearchInQueueByTime of 5.x: runs of equal times are not followed into other files."""
    base = file.base // QUEUE_UNIT_BYTES
    floor, ceiling = _first_index(queue, file), file.written // QUEUE_UNIT_BYTES - 1
    lower = boundary == "LOWER"
    if _store_time(log, file, ceiling * QUEUE_UNIT_BYTES) < timestamp_ms:
        return base + ceiling + 1 if lower else base + ceiling
    if floor > ceiling:
        return 0
    if _store_time(log, file, floor * QUEUE_UNIT_BYTES) > timestamp_ms:
        return base if lower else 0
    low, high = floor, ceiling + 1
    log_start = log.start
    while low < high:
        middle = (low + high) // 2
        position, size, _ = UNIT.unpack_from(file.view, middle * QUEUE_UNIT_BYTES)
        if position < log_start:
            low = middle + 1
            continue
        time_ms = log.store_timestamp(position, size)
        if time_ms < 0:
            return 0
        if time_ms < timestamp_ms or (time_ms == timestamp_ms and not lower):
            low = middle + 1
        else:
            high = middle
    # `low` is the first unit not before t (LOWER), or the first one after t (UPPER).
    return base + low if lower else max(base + low - 1, 0)


def _search_nearest(queue: ConsumeQueue, log: CommitLog, timestamp_ms: int) -> int:
    """ConsumeQueue.getOffsetInQueueByTime of 4.x; no clamping.

    4.x picks the file by its modification time; the time of its last record is the same, and survives a copy.
    """
    file = _file_for(queue, log, timestamp_ms, "LOWER")
    if file is None or not file.written:
        return 0
    low, high = _first_index(queue, file), file.written // QUEUE_UNIT_BYTES - 1
    left = right = -1
    left_time_ms = right_time_ms = -1
    log_start = log.start
    while high >= low:
        middle = (low + high) // 2
        position, size, _ = UNIT.unpack_from(file.view, middle * QUEUE_UNIT_BYTES)
        if position < log_start:
            left, low = middle, middle + 1
            continue
        time_ms = log.store_timestamp(position, size)
        if time_ms < 0:
            return 0
        if time_ms == timestamp_ms:
            return file.base // QUEUE_UNIT_BYTES + middle
        if time_ms > timestamp_ms:
            right, right_time_ms, high = middle, time_ms, middle - 1
        else:
            left, left_time_ms, low = middle, time_ms, middle + 1
    if left_time_ms == -1:
        index = right
    elif right_time_ms == -1 or timestamp_ms - left_time_ms <= right_time_ms - timestamp_ms:
        index = left
    else:
        index = right
    return (
        max(file.base // QUEUE_UNIT_BYTES + index, 0)
        if index >= 0
        else max(file.base // QUEUE_UNIT_BYTES - 1, 0)
    )
