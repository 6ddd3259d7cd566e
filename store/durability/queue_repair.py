"""Finding the end of each consume queue after a stop, and what a power loss took from it.

After any stop a queue ends at its first impossible unit. After a power loss a page that was not forced may hold
anything, also parts of units: units of records at or behind the checkpoint's mark are dropped, and the last unit kept
must match its record. What was dropped is read from the log again. Owner: the caller of `MessageStore.open()`.
"""

import logging

from pocketmq.protocol.message.record import queue_offset_of
from pocketmq.protocol.message.topics import is_lmq

from ..config import QUEUE_UNIT_BYTES
from ..files.mapped_file import MappedFile
from ..log.commit_log import CommitLog
from ..lookup.consume_queue import ConsumeQueue
from ..lookup.queue_table import QueueTable
from ..lookup.queue_unit import BLANK_UNIT, UNIT, end_of_units, position_at

logger = logging.getLogger(__name__)

_FILES_LOOKED_AT = 3
"""The newest files of a queue; older ones were forced long ago."""


def restore_ends(queues: QueueTable, log_start: int) -> int | None:
    """Find and set the end of every queue. Returns the log position from which lost units must be put back, None if
    none were lost."""
    rebuild_from: int | None = None
    for queue in queues:
        is_complete = restore_end(queue, log_start)
        if not is_complete:
            logger.warning(
                "queue %s-%d is damaged behind unit %d: it is filled again from the log",
                queue.topic,
                queue.queue_id,
                queue.max_offset,
            )
            end = max(queue.records_end, 0)
            rebuild_from = end if rebuild_from is None else min(rebuild_from, end)
    return rebuild_from


def restore_end(queue: ConsumeQueue, log_start: int) -> bool:
    """Find and set the end of the loaded files: the first impossible unit, searched for in the newest files.

    False if units were lost, because a file is missing or because bytes follow the end: reading the log again from the
    end of the last record puts them back.
    """
    queue.log_start = log_start
    files = queue.files
    if not files:
        return True
    whole = _close_gap(queue, log_start)
    end_file, end, newest = files[-1], 0, b""
    for file in files[-_FILES_LOOKED_AT:]:
        end_file = file
        end, unit = end_of_units(file.read, file.size)
        newest = unit or newest
        if end < file.size:
            whole = whole and file is files[-1] and not _is_written_behind(file, end)
            break
    if whole:
        end_file.written = end  # only zeros follow
    else:
        files.truncate(end_file.base + end)
    queue.end_with(newest)
    files.flushed = files.end
    return whole


def drop_unforced(queue: ConsumeQueue, position: int, log: CommitLog) -> None:
    """After a power loss: drop every unit that was not forced, whatever its place holds now.

    All records from a log position on will be dispatched again; units of earlier ones were forced.
    """
    files = queue.files
    if not files:
        return
    numbers = range(len(files) - 1, 0, -1)
    at = next((number for number in numbers if _was_forced(queue, files[number], 0, position, log)), 0)
    file, keep, previous_end = files[at], 0, 0
    for unit in UNIT.iter_unpack(file.read(0, file.written)):
        if unit[0] >= position or (unit != BLANK_UNIT and not previous_end <= unit[0]):
            break
        keep += QUEUE_UNIT_BYTES
        previous_end = unit[0] + unit[1] if unit != BLANK_UNIT else 0
    while keep and not _was_forced(queue, file, keep - QUEUE_UNIT_BYTES, position, log):
        keep -= QUEUE_UNIT_BYTES
    queue.end_at(file.base + keep)


def _was_forced(queue: ConsumeQueue, file: MappedFile, at: int, position: int, log: CommitLog) -> bool:
    """Whether a unit was on disk before the power loss: its record lies before `position` and names this offset."""
    unit = UNIT.unpack(file.read(at, at + QUEUE_UNIT_BYTES))
    if not unit[0] < position or unit == BLANK_UNIT:
        return False
    if unit[0] < log.start or is_lmq(queue.topic):
        return True  # the record has left the log, or names its number in another queue
    record = log.read_record(unit[0])
    return (
        record is not None
        and len(record) == unit[1]
        and queue_offset_of(record) == (file.base + at) // QUEUE_UNIT_BYTES
    )


def _close_gap(queue: ConsumeQueue, log_start: int) -> bool:
    """Where a file is missing, keep the side that the log can complete; False if there was a gap."""
    files = queue.files
    gap = files.gap()
    if not gap:
        return True
    before = files[gap - 1]
    if position_at(before, before.size - QUEUE_UNIT_BYTES) < log_start:
        files.delete(0, gap)
    else:
        files.delete(gap, len(files))
    return False


def _is_written_behind(file: MappedFile, end: int) -> bool:
    """Whether anything but zeros is in the data that the file system keeps behind a byte of a file."""
    return any(
        (data := file.read(start, stop)).count(0) < len(data) for start, stop in file.written_ranges(end)
    )
