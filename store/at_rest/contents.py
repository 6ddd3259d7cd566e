"""What a store at rest holds, for `store show`: queues with their offsets, and messages.

Changes nothing on disk and takes no lock; damage is skipped here and found by `check.py`.
"""

from pathlib import Path

import msgspec
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import decode_record, measure_record

from .. import layout
from ..config import QUEUE_UNIT_BYTES
from ..lookup.queue_unit import BLANK_UNIT, UNIT
from .segments import Segments, count_units, queue_directories, refuse_open_store


class StoredQueue(msgspec.Struct, frozen=True):
    """Offsets as a start would show them; the time is -1 if the newest message has left the log."""

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    newest_store_time_ms: int


class StoredMessage(msgspec.Struct, frozen=True):
    """One message as it lies in the log; the body is not decompressed."""

    topic: str
    queue_id: int
    queue_offset: int
    position: int
    size: int
    store_time_ms: int
    reconsume_times: int
    properties: dict[str, str]
    body: bytes


class StoreContents:
    """Raises StoreError if there is no store, or another process has it open."""

    def __init__(self, root: Path, *, commit_log: Path | None = None) -> None:
        """`commit_log` is the folder of the log if storePathCommitLog names another than the default."""
        refuse_open_store(root)
        self._root = root
        self._log = Segments(commit_log or root / layout.COMMIT_LOG)

    def queues(self, topic: str | None = None) -> list[StoredQueue]:
        """All queues, or those of a topic, by topic and number."""
        found = [
            self._queue(name, queue_id, directory)
            for name, queue_id, directory in queue_directories(self._root)
            if topic is None or name == topic
        ]
        return sorted(found, key=lambda queue: (queue.topic, queue.queue_id))

    def newest(self, queue: StoredQueue, count: int) -> list[StoredMessage]:
        """The newest messages of a queue that can be read, the oldest of them first."""
        segments = Segments(self._root / layout.CONSUME_QUEUE / queue.topic / str(queue.queue_id))
        first = max(queue.max_offset - count, queue.min_offset)
        messages = [self._message(segments, queue, offset) for offset in range(first, queue.max_offset)]
        return [message for message in messages if message is not None]

    def _queue(self, topic: str, queue_id: int, directory: Path) -> StoredQueue:
        segments = Segments(directory)
        minimum = maximum = 0
        newest = None
        if segments.files:
            last = segments.files[-1]
            maximum = last.base // QUEUE_UNIT_BYTES + count_units(last)
            minimum = self._first_readable(segments, maximum)
        queue = StoredQueue(topic, queue_id, minimum, maximum, -1)
        if maximum > minimum:
            newest = self._message(segments, queue, maximum - 1)
        if newest is None:
            return queue
        return msgspec.structs.replace(queue, newest_store_time_ms=newest.store_time_ms)

    def _first_readable(self, segments: Segments, maximum: int) -> int:
        """Number of the first unit that is not pre-blank and whose record is not before the log's start."""
        low, high = segments.start // QUEUE_UNIT_BYTES, maximum
        while low < high:
            middle = (low + high) // 2
            unit = _unit(segments, middle)
            if unit is None or unit == BLANK_UNIT or unit[0] < self._log.start:
                low = middle + 1
            else:
                high = middle
        return low

    def _message(self, segments: Segments, queue: StoredQueue, offset: int) -> StoredMessage | None:
        unit = _unit(segments, offset)
        file = self._log.at(unit[0]) if unit is not None else None
        if unit is None or file is None:
            return None
        at = unit[0] - file.base
        if measure_record(file.view, at, len(file.view), check_crc=False) <= 0:
            return None
        record = decode_record(file.view, at)
        return StoredMessage(
            queue.topic,
            queue.queue_id,
            offset,
            unit[0],
            record.size,
            record.store_timestamp,
            record.reconsume_times,
            decode_properties(bytes(record.properties)),
            bytes(record.body),
        )


def _unit(segments: Segments, offset: int) -> tuple[int, int, int] | None:
    file = segments.at(offset * QUEUE_UNIT_BYTES)
    if file is None:
        return None
    position, size, code = UNIT.unpack_from(file.view, offset * QUEUE_UNIT_BYTES - file.base)
    return position, size, code
