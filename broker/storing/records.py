"""Reads a stored message: the record at a log position or of a queue's entry, if there is one."""

import logging

from pocketmq.protocol.message.record import Record, RecordError, decode_record
from pocketmq.store import MessageStore
from pocketmq.store.lookup.consume_queue import ConsumeQueue

_log = logging.getLogger("pocketmq.storing")


def record_at(store: MessageStore, position: int) -> Record | None:
    """The record at a log position that a request names; `None` if no record begins there."""
    data = store.read_record(position) if position >= 0 else None
    try:
        return None if data is None else decode_record(data)
    except RecordError:
        return None  # a position inside a record


def record_of_entry(store: MessageStore, position: int, size: int) -> Record | None:
    """The record of a queue's entry; `None` if the log no longer has it. A damaged record is logged."""
    data = store.read_record(position, size)
    try:
        return None if data is None else decode_record(data)
    except RecordError as error:
        _log.error("record at log position %d cannot be read: %s", position, error)
        return None


def record_at_offset(store: MessageStore, queue: ConsumeQueue, offset: int) -> Record | None:
    """The message at an offset of a queue; `None` if the log no longer has it."""
    entry = queue.unit(offset)
    return None if entry is None else record_of_entry(store, entry[0], entry[1])
