"""The aggregates of a store as tables: its runs and its statistics (`files/aggregates.py`), shared by threads.

A task is a split of the log, the units of a queue, or a hole between two files, as in `store_table.py`. Conditions are
applied to the rows, which are few; the log is read as a whole.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from ..files.aggregates import damage_row, scan_runs, scan_statistics
from ..files.consume_queues import QueueSplit, known_log_end, queue_splits
from ..files.log_files import LogFile, LogSplit, log_files, log_splits
from ..files.queue_check import check_units
from ..files.store_rows import hole_after
from ..records.columns import RUN_COLUMNS, STATISTIC_COLUMNS, arrow_schema
from .store_table import Cut, StoreSettings, holes_of
from .tasks import Task, TaskTable

CUT: Final = Cut(split_bytes=64 * 1024 * 1024)
UNIT_ROWS: Final = 4_000_000


class RunsTask(msgspec.Struct, frozen=True):
    """The runs of a split; with `checks_queues` its records are compared with the consume queues."""

    settings: StoreSettings
    split: LogSplit
    checks_queues: bool

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        root = self.settings.root if self.checks_queues else None
        return _chosen(scan_runs(self.split, self.settings.scan, root=root), names, condition)


class UnitCheckTask(msgspec.Struct, frozen=True):
    """The units of a queue that have no record."""

    settings: StoreSettings
    split: QueueSplit

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        return _chosen(check_units(self.split, self.settings.log_folder), names, condition)


class HoleRunsTask(msgspec.Struct, frozen=True):
    """The missing bytes after a file, as a row."""

    file: LogFile

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        return _chosen(iter((damage_row(hole_after(self.file)),)), names, condition)


class StatisticsTask(msgspec.Struct, frozen=True):
    """The counts of a split, by the groups that are asked for."""

    settings: StoreSettings
    split: LogSplit

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        needed = names if condition is None else tuple(STATISTIC_COLUMNS)
        return _chosen(scan_statistics(self.split, self.settings.scan, needed), names, condition)


def runs_table(settings: StoreSettings, *, checks_queues: bool, cut: Cut = CUT) -> TaskTable:
    """Runs of consecutive records, damage, and with `checks_queues` what does not match the consume queues."""
    tasks = functools.partial(_runs_tasks, settings, cut, checks_queues)
    return TaskTable(arrow_schema(RUN_COLUMNS, list(RUN_COLUMNS)), tasks)


def _runs_tasks(settings: StoreSettings, cut: Cut, checks_queues: bool, condition: Any) -> list[Task]:
    """The log in pieces, and the queues if they are checked. One end is taken for both."""
    files, splits, queues = _pieces(settings, cut)
    topics = settings.scan.topics
    checks = [queue for queue in queues if checks_queues and (not topics or queue.topic in topics)]
    return [
        *(HoleRunsTask(hole.file) for hole in holes_of(settings, files)),
        *(RunsTask(settings, split, checks_queues) for split in splits),
        *(UnitCheckTask(settings, queue) for queue in checks),
    ]


def statistics_table(settings: StoreSettings, cut: Cut = CUT) -> TaskTable:
    """Messages and bytes by topic, queue, tag and minute."""
    tasks = functools.partial(_statistics_tasks, settings, cut)
    return TaskTable(arrow_schema(STATISTIC_COLUMNS, list(STATISTIC_COLUMNS)), tasks)


def _statistics_tasks(settings: StoreSettings, cut: Cut, condition: Any) -> list[Task]:
    files, splits, _ = _pieces(settings, cut)
    holes_of(settings, files)
    return [StatisticsTask(settings, split) for split in splits]


def _pieces(settings: StoreSettings, cut: Cut) -> tuple[list[LogFile], list[LogSplit], list[QueueSplit]]:
    """(files, splits, queues)."""
    queues = queue_splits(settings.queues_root(), frozenset(), UNIT_ROWS)
    files = log_files(settings.log_folder)
    return files, log_splits(files, cut.split_bytes, cut.min_tasks, known_log_end(queues)), queues


def _chosen(batches: Iterator[Any], names: Sequence[str], condition: Any) -> Iterator[Any]:
    for batch in batches:
        matching = batch if condition is None else batch.filter(condition)
        if matching.num_rows:
            yield matching.select(list(names))
