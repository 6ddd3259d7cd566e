"""The durable log: what is on disk, byte-compatible with the official broker. Synchronous, no sockets.

Reading order:

    FORMAT.md           every file on disk, field by field, and the rules of recovery
    message_store.py    the facade: append, read, query; who owns what
    results.py          what goes in and comes out
    config.py, clock.py, errors.py
    admission.py        whether messages are taken now
    mapped_file.py      one file in memory            mapped_files.py   many, as one space of positions
    open_maps.py        how many may be in memory at once
    commit_log.py       all messages in order         consume_queue.py  the messages of one queue
    queue_table.py      all queues                    key_index.py, key_hash.py   messages by key
    dispatch.py         from the log to queues and index; multi_dispatch.py: one record in several queues
    message_reader.py   pull and query                time_search.py    an offset for a time
    residency.py        is a message in memory?
    flusher.py          the one thread: forcing files to disk
    checkpoint.py       what is known to be on disk   store_lock.py     who may use the directory
    replication.py      the log as bytes: read at a master, appended at a slave
    recovery.py         bringing it all to one state after a stop of any kind
    log_scan.py         reading a log file record by record      bulk_dispatch.py  dispatch of very many
    foreign_parts.py    what newer brokers may have put there
    retention.py        old log files go              disk_usage.py    how full the disk is
    statistics.py       how much came in, how quickly
    at_rest.py          a store nobody has open       check.py         is it whole?   contents.py   what is in it?
    topic_table.py      topics                        group_table.py   groups; attributes.py: what both may carry
    offset_table.py     offsets of groups             lmq_offset_table.py   the same with light queues
    delay_table.py      delay levels                      metric_table.py  how many messages wait, by topic
    timer_store.py      timed messages that wait          timer_wheel.py, timer_log.py, timer_checkpoint.py  its files
    json_table.py       what these tables share       json_file.py     one file, safe against a kill
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
from .results import AppendResult, GetResult, GetStatus, Hotness, NewMessage, PutStatus, QueryResult

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
