"""Reads a stored message: the record at a log position, if there is one."""

import logging

from pocketmq.protocol.message.record import Record, RecordError, decode_record
from pocketmq.store import MessageStore

_log = logging.getLogger("pocketmq.storing")


def record_named(store: MessageStore, position: int) -> Record | None:
    """The record at a position that a request names; `None` if no record begins there."""
    data = store.read_record(position) if position >= 0 else None
    try:
        return None if data is None else decode_record(data)
    except RecordError:
        return None  # a position inside a record


def record_of_unit(store: MessageStore, position: int, size: int) -> Record | None:
    """The record of a queue's unit; `None` if the log no longer has it. A damaged record is logged."""
    data = store.read_record(position, size)
    try:
        return None if data is None else decode_record(data)
    except RecordError as error:
        _log.error("record at log position %d cannot be read: %s", position, error)
        return None
