"""The durable log: what is on disk, byte-compatible with the official broker. Synchronous, no sockets.

Bottom up; `log/` is the truth, `lookup/` is everything that can be rebuilt from it:

    errors.py, clock.py, layout.py, put_values.py, put_statistics.py, delay_levels.py, config.py
    files/              mapped files, JSON files
    tables/             topics, groups, offsets and the other JSON tables
    log/                the commit log: all messages in order
    lookup/             consume queues, the key index, and the dispatch that fills them
    reading/            pull and query; an offset for a time; is a message in memory?
    durability/         flushing, checkpoint, recovery, the lock of the directory
    admission.py        whether messages are accepted now
    appending.py        the hot path
    message_store.py    the facade: append, read, query
    retention.py        old log files are deleted
    timer/              messages for an exact time that wait
    at_rest/            a store that no process has open: check and show
    FORMAT.md           every file on disk, field by field, and the rules of recovery
"""

from .clock import Clock, VirtualClock, WallClock
from .config import StoreConfig
from .errors import (
    DiskFailedError,
    FileSizeError,
    StoreClosedError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
)
from .message_store import MessageStore
from .put_values import AppendResult, NewMessage, PutStatus
from .reading.get_values import GetResult, GetStatus, Hotness, QueryResult

__all__ = [
    "AppendResult",
    "Clock",
    "DiskFailedError",
    "FileSizeError",
    "GetResult",
    "GetStatus",
    "Hotness",
    "MessageStore",
    "NewMessage",
    "PutStatus",
    "QueryResult",
    "StoreClosedError",
    "StoreConfig",
    "StoreDamagedError",
    "StoreError",
    "StoreLockedError",
    "VirtualClock",
    "WallClock",
]
