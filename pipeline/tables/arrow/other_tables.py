"""The tables of a store besides its messages: runs, statistics, units of consume queues, offsets of consumer groups.

A task is a split of the log, the units of a queue, or a hole between two files, as in `store_table.py`. Conditions are
applied to the rows, which are few; what they stand for is read as a whole.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from ...errors import PATH, PathError
from ..files.aggregates import damage_row, scan_runs, scan_statistics
from ..files.consume_queues import (
    QueueSplit,
    are_records,
    consumer_offsets,
    known_log_end,
    queue_splits,
    unit_batches,
)
from ..files.locations import shown_url
from ..files.log_files import LogFile, LogSplit, log_files, log_splits
from ..files.queue_check import check_units
from ..records.columns import CONSUME_QUEUE_COLUMNS, CONSUMER_OFFSET_COLUMNS, STATISTIC_COLUMNS, arrow_schema
from ..records.slices import repeated
from .store_table import Cut, StoreSettings, find_holes
from .tasks import BatchesTask, Task, chosen

CUT: Final = Cut(split_bytes=64 * 1024 * 1024)
UNIT_ROWS: Final = 4_000_000
"""Units of a task: 80 MB."""


class StatisticsTask(msgspec.Struct, frozen=True):
    """The counts of a split, by the groups that are asked for."""

    settings: StoreSettings
    split: LogSplit

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        needed = names if condition is None else tuple(STATISTIC_COLUMNS)
        return chosen(scan_statistics(self.split, self.settings.scan, needed), names, condition)


def plan_runs(settings: StoreSettings, cut: Cut, checks_queues: bool, condition: Any) -> list[Task]:
    """Runs of consecutive records, damage, and with `checks_queues` what does not match the consume queues. One end is
    taken for both."""
    files, splits, queues = _pieces(settings, cut)
    topics, root = settings.scan.topics, settings.root if checks_queues else None
    checked = [queue for queue in queues if checks_queues and (not topics or queue.topic in topics)]
    reads: list[Callable[[], Iterator[Any]]] = [
        *(functools.partial(iter, (damage_row(hole),)) for hole in find_holes(settings, files)),
        *(functools.partial(scan_runs, split, settings.scan, root=root) for split in splits),
        *(functools.partial(check_units, queue, settings.log_folder) for queue in checked),
    ]
    return list(map(BatchesTask, reads))


def plan_statistics(settings: StoreSettings, cut: Cut, condition: Any) -> list[Task]:
    """Messages and bytes by topic, queue, tag and minute."""
    files, splits, _ = _pieces(settings, cut)
    find_holes(settings, files)
    return [StatisticsTask(settings, split) for split in splits]


def _pieces(settings: StoreSettings, cut: Cut) -> tuple[list[LogFile], list[LogSplit], list[QueueSplit]]:
    queues = queue_splits(settings.queues_root(), frozenset(), UNIT_ROWS)
    files = log_files(settings.log_folder)
    return files, log_splits(files, cut.split_bytes, cut.min_tasks, known_log_end(queues)), queues


def plan_units(root: str, topics: frozenset[str], url: str | None, condition: Any) -> list[Task]:
    """One row for each written unit of the consume queues. With `url` the folder has copies of the queues of that
    store, for planning. `PathError` for a store without consume queues."""
    folder = Path(root) / "consumequeue"
    if not folder.is_dir():
        shown = folder if url is None else f"{shown_url(url)}/consumequeue"
        raise PathError(PATH, f"{shown} is not a folder; table consumequeue needs the consume queues")
    splits = queue_splits(folder, topics, UNIT_ROWS)
    if url is not None:
        splits = [
            msgspec.structs.replace(split, url=url, folder=f"consumequeue/{split.topic}/{split.queue_id}")
            for split in splits
        ]
    return [BatchesTask(functools.partial(_unit_rows, split)) for split in splits]


def _unit_rows(split: QueueSplit) -> Iterator[Any]:
    schema = arrow_schema(CONSUME_QUEUE_COLUMNS)
    for first, found in unit_batches(split):
        offsets = np.arange(first, first + len(found), dtype=np.int64)
        written = are_records(found)
        found, offsets = found[written], offsets[written]
        arrays = [
            repeated(split.topic, len(found)),
            pa.repeat(pa.scalar(split.queue_id, pa.int32()), len(found)),
            pa.array(offsets),
            pa.array(found["position"].astype(np.int64)),
            pa.array(found["size"].astype(np.int32)),
            pa.array(found["tags_code"].astype(np.int64)),
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def plan_offsets(root: str, url: str | None, condition: Any) -> list[Task]:
    """One row for each group, topic and queue with an offset. `PathError` for a folder that is no store,
    `CorruptStoreError` for a table that cannot be read."""
    rows = consumer_offsets(Path(root), shown_url(url or root))
    named = [dict(zip(CONSUMER_OFFSET_COLUMNS, row, strict=True)) for row in rows]
    batch = pa.RecordBatch.from_pylist(named, arrow_schema(CONSUMER_OFFSET_COLUMNS))
    return [BatchesTask(functools.partial(iter, (batch,)))]
