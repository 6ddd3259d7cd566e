"""The durable store: what is on disk, byte-compatible with the official broker. Synchronous, no sockets.

The map, bottom up. log/ holds the messages, lookup/ can be rebuilt from it, durability/ covers what a stop may cost.

    errors.py           what the owner of a store can do about each refusal
    clock.py            wall clock and virtual clock
    layout.py           the name of every file and folder
    put_values.py       a message to append, and what an append returns
    put_statistics.py   counters of appends
    config.py           the settings
    files/              forcing, mapped files, JSON files
    log/                the commit log
    lookup/             consume queues, the key index, and the dispatch that fills them
    reading/            pull, query, an offset for a time, hot or cold
    durability/         lock, flusher, checkpoint, recovery
    admission.py        whether messages are accepted now
    appending.py        the hot path: message to record to queue
    message_store.py    the facade: open, append, read, delete, close
    retention.py        old log files are deleted
    timer/              timed messages that wait
    at_rest/            a store that no process has open: check and show
    FORMAT.md           every file on disk, field by field
    RECOVERY.md         what is forced when, and what a start does
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
