"""Aggregates of a scan: records become a handful of rows before anything is handed over.

    records   Orders 0: 7 8 9   Orders 1: 4 5   Orders 0: 10   Orders 1: 7     in the order of the log
    runs      Orders 0: 7 to 10      Orders 1: 4 to 5      Orders 1: 7 to 7

A run is consecutive records of one queue whose offsets rise by one. A sound queue is one run in each split of the log,
however many records it has. A gap, a repeated offset or disorder begins another run. So questions about all records
are answered from few rows: `jobs/answers/audit.py`.

Runs of runs are made as runs of records are, so a scan keeps at most `MAX_RUNS` of them and merges as it goes on. With
more, as in a log without any order, they are handed over unmerged: a reader must expect adjacent runs.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_MASK, TRANSACTION_NONE

from ..records.columns import RUN_COLUMNS, TIMESTAMP
from ..records.records import Records
from ..records.scans import Flags
from ..records.slices import Ints
from .run_statuses import OK

MAX_RUNS: Final = 1 << 16
RUN: Final = np.dtype(
    [
        *(("key", "i8"), ("firstOffset", "i8"), ("lastOffset", "i8")),
        *(("firstPosition", "i8"), ("lastPosition", "i8"), ("records", "i8"), ("bytes", "i8")),
        *(("firstTime", "i8"), ("lastTime", "i8")),
    ]
)
"""`key` is the number of status and topic in the upper half, the queue id in the lower half."""
Runs = npt.NDArray[Any]
_LAST_MS: Final = 253_402_300_799_999
_QUEUE_BITS: Final = 32
_QUEUE_MASK: Final = (1 << _QUEUE_BITS) - 1


def in_queues(records: Records) -> Flags:
    """Which records belong into a consume queue: not those of transactions that are open or were rolled back."""
    kinds = records.head("sysFlag") & TRANSACTION_MASK
    found: Flags = (kinds == TRANSACTION_NONE) | (kinds == TRANSACTION_COMMIT)
    return found


class RunTable:
    """The runs of a scan, by status, topic and queue."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], int] = {}
        self._names: list[tuple[str, str]] = []
        self._pieces: list[Runs] = []
        self._count = 0

    def keys(self, topics: Any, numbers: Ints | None, queue_ids: Ints, status: str = OK) -> Ints:
        """The key of each record, from the distinct topics and the number of each record's (None: all the first)."""
        keys = np.array([self.key(status, topic, 0) for topic in topics.to_pylist()], dtype=np.int64)
        of_topic: Ints = keys[0] if numbers is None else keys[numbers]
        return of_topic | (queue_ids & _QUEUE_MASK)

    def key(self, status: str, topic: str, queue_id: int) -> int:
        """The key of one queue."""
        code = self._codes.setdefault((status, topic), len(self._codes))
        if code == len(self._names):
            self._names.append((status, topic))
        return code << _QUEUE_BITS | queue_id & _QUEUE_MASK

    def queue(self, key: int) -> tuple[str, int]:
        """(topic, queue id) of a key."""
        queue_id = key & _QUEUE_MASK
        return self._names[key >> _QUEUE_BITS][1], queue_id - (queue_id >> 31 << _QUEUE_BITS)

    def add(self, runs: Runs) -> None:
        """Add runs, in the order of the log."""
        self._pieces.append(runs)
        self._count += len(runs)

    def full(self) -> Iterator[Any]:
        """A batch of rows if there are too many runs to keep."""
        if self._count < MAX_RUNS:
            return
        merged = merge_runs(np.concatenate(self._pieces))
        self._pieces, self._count = [merged], len(merged)
        if len(merged) > MAX_RUNS // 2:
            yield from self.rest()

    def rest(self) -> Iterator[Any]:
        """All runs as one batch of `RUN_COLUMNS`."""
        if self._pieces:
            runs = merge_runs(np.concatenate(self._pieces))
            self._pieces, self._count = [], 0
            if len(runs):
                yield self._batch(runs)

    def _batch(self, runs: Runs) -> Any:
        statuses = pa.array([status for status, _ in self._names], type=pa.string())
        topics = pa.array([topic for _, topic in self._names], type=pa.string())
        codes = pa.array(runs["key"] >> _QUEUE_BITS)
        columns: dict[str, Any] = {
            "status": statuses.take(codes),
            "topic": topics.take(codes),
            "queueId": pa.array(runs["key"].astype(np.uint32).astype(np.int32)),
            "firstTime": times_of(runs["firstTime"]),
            "lastTime": times_of(runs["lastTime"]),
            "file": pa.nulls(len(runs), pa.string()),
        }
        arrays = [
            columns[name] if name in columns else pa.array(np.ascontiguousarray(runs[name]))
            for name in RUN_COLUMNS
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(RUN_COLUMNS))


def runs_of(records: Records, keys: Ints, base: int) -> Runs:
    """One run for each record; `base` is the log position of byte 0."""
    runs = np.empty(len(records), dtype=RUN)
    runs["key"] = keys
    runs["firstOffset"] = runs["lastOffset"] = records.queue_offsets
    runs["firstPosition"] = runs["lastPosition"] = records.starts + base
    runs["records"] = 1
    runs["bytes"] = records.sizes
    runs["firstTime"] = runs["lastTime"] = records.store_times_ms
    return runs


def times_of(times_ms: Ints) -> Any:
    """Timestamps; null for units, which have no time, and for times after the year 9999, as damage makes them."""
    return pa.array(times_ms * 1000, mask=(times_ms <= 0) | (times_ms > _LAST_MS)).cast(TIMESTAMP)


def ordered_by_queue(runs: Runs) -> Runs:
    """The runs of each key together, otherwise in the same order."""
    keys = runs["key"]
    if (keys[1:] == keys[:-1]).all():
        return runs
    codes = np.asarray(pa.array(np.ascontiguousarray(keys)).dictionary_encode().indices)
    small = codes.astype(np.int16) if codes.max() < 1 << 15 else codes  # numpy sorts these by radix
    return runs[np.argsort(small, kind="stable")]


def merge_runs(runs: Runs) -> Runs:
    """Runs of runs: those of one key of which each begins where the one before it ended."""
    return merge_ordered(ordered_by_queue(runs))


def merge_ordered(runs: Runs) -> Runs:
    """The same for runs that are ordered by queue."""
    if not len(runs):
        return runs
    goes_on = (runs["key"][1:] == runs["key"][:-1]) & (runs["firstOffset"][1:] == runs["lastOffset"][:-1] + 1)
    begins = np.concatenate(([0], np.flatnonzero(~goes_on) + 1))
    if len(begins) == len(runs):
        return runs
    lasts = np.append(begins[1:], len(runs)) - 1
    merged = runs[begins]
    for name in ("lastOffset", "lastPosition"):
        merged[name] = runs[name][lasts]
    for name in ("records", "bytes"):
        merged[name] = np.add.reduceat(runs[name], begins)
    merged["firstTime"] = np.minimum.reduceat(runs["firstTime"], begins)
    merged["lastTime"] = np.maximum.reduceat(runs["lastTime"], begins)
    return merged
