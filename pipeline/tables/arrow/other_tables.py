"""The tables of a store besides its messages: runs, statistics, units of consume queues, offsets of consumer groups.

A task is a split of the log, the units of a queue, or a hole between two files, as in `store_table.py`. Conditions are
applied to the rows, which are few; what they stand for is read as a whole.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from ...errors import PATH, PathError
from ..files.aggregates import damage_row, scan_runs, scan_statistics
from ..files.consume_queues import QueueSplit, consumer_offsets, known_log_end, queue_splits
from ..files.locations import shown_url
from ..files.log_files import LogFile, LogSplit, log_files, log_splits
from ..files.queue_check import check_units
from ..files.store_rows import consumer_offset_rows, hole_after, unit_rows
from ..records.columns import (
    CONSUME_QUEUE_COLUMNS,
    CONSUMER_OFFSET_COLUMNS,
    RUN_COLUMNS,
    STATISTIC_COLUMNS,
    arrow_schema,
)
from .store_table import Cut, StoreSettings, find_holes
from .tasks import BatchesTask, Task, TaskTable, chosen

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


def runs_table(settings: StoreSettings, *, checks_queues: bool, cut: Cut = CUT) -> TaskTable:
    """Runs of consecutive records, damage, and with `checks_queues` what does not match the consume queues."""
    return _table(RUN_COLUMNS, functools.partial(_runs_tasks, settings, cut, checks_queues))


def _runs_tasks(settings: StoreSettings, cut: Cut, checks_queues: bool, condition: Any) -> list[Task]:
    """The log in pieces, and the queues if they are checked. One end is taken for both."""
    files, splits, queues = _pieces(settings, cut)
    topics, root = settings.scan.topics, settings.root if checks_queues else None
    checked = [queue for queue in queues if checks_queues and (not topics or queue.topic in topics)]
    reads: list[Callable[[], Iterator[Any]]] = [
        *(functools.partial(_hole_rows, file) for file in find_holes(settings, files)),
        *(functools.partial(scan_runs, split, settings.scan, root=root) for split in splits),
        *(functools.partial(check_units, queue, settings.log_folder) for queue in checked),
    ]
    return list(map(BatchesTask, reads))


def _hole_rows(file: LogFile) -> Iterator[Any]:
    """The missing bytes after a file, as a row."""
    yield damage_row(hole_after(file))


def statistics_table(settings: StoreSettings, cut: Cut = CUT) -> TaskTable:
    """Messages and bytes by topic, queue, tag and minute."""
    return _table(STATISTIC_COLUMNS, functools.partial(_statistics_tasks, settings, cut))


def _statistics_tasks(settings: StoreSettings, cut: Cut, condition: Any) -> list[Task]:
    files, splits, _ = _pieces(settings, cut)
    find_holes(settings, files)
    return [StatisticsTask(settings, split) for split in splits]


def _pieces(settings: StoreSettings, cut: Cut) -> tuple[list[LogFile], list[LogSplit], list[QueueSplit]]:
    """(files, splits, queues)."""
    queues = queue_splits(settings.queues_root(), frozenset(), UNIT_ROWS)
    files = log_files(settings.log_folder)
    return files, log_splits(files, cut.split_bytes, cut.min_tasks, known_log_end(queues)), queues


def consume_queue_table(root: str, topics: frozenset[str] = frozenset(), url: str | None = None) -> TaskTable:
    """One row for each written unit of the consume queues. With `url` the folder has copies of the queues of that
    store, for planning. Planning raises `PathError` for a store without consume queues."""
    return _table(CONSUME_QUEUE_COLUMNS, functools.partial(_unit_tasks, root, topics, url))


def _unit_tasks(root: str, topics: frozenset[str], url: str | None, condition: Any) -> list[Task]:
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
    return [BatchesTask(functools.partial(unit_rows, split)) for split in splits]


def consumer_offset_table(root: str, url: str | None = None) -> TaskTable:
    """One row for each group, topic and queue with an offset. Planning raises `PathError` for a folder that is no
    store, `CorruptStoreError` for a table that cannot be read."""
    return _table(CONSUMER_OFFSET_COLUMNS, functools.partial(_offset_tasks, root, url))


def _offset_tasks(root: str, url: str | None, condition: Any) -> list[Task]:
    rows = consumer_offsets(Path(root), shown_url(url or root))
    return [BatchesTask(functools.partial(iter, (consumer_offset_rows(rows),)))]


def _table(columns: dict[str, tuple[str, Any]], tasks: Callable[[Any], Sequence[Task]]) -> TaskTable:
    return TaskTable(arrow_schema(columns, list(columns)), tasks)
