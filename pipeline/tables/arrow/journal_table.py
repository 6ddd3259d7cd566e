"""The entries of a broker's journal as a table: one task for each file, in a folder or behind a URL."""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pocketmq.protocol.journal_frames import SUFFIX

from ...errors import PATH, PathError
from ..files.journal_rows import column, journal_files, read_journal
from ..files.locations import is_url
from ..files.remote_files import location_of
from ..records.columns import JOURNAL_COLUMNS, arrow_schema
from .conditions import columns_in
from .tasks import Task, TaskTable, chosen


class JournalTask(msgspec.Struct, frozen=True):
    """One file of a journal: below a URL, or by its path."""

    path: str
    url: str | None = None

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        """The rows that meet the condition."""
        location = None if self.url is None else location_of(self.url)
        path = self.path if location is None else f"{location.url}/{self.path}"
        tested = [] if condition is None else columns_in(condition, list(JOURNAL_COLUMNS))
        schema = arrow_schema(JOURNAL_COLUMNS, list(dict.fromkeys([*names, *tested])))
        frames = read_journal(path, None if location is None else location.read(self.path))
        batches = (
            pa.RecordBatch.from_arrays([column(rows, name) for name in schema.names], schema=schema)
            for rows in frames
        )
        return chosen(batches, names, condition)


def journal_table(paths: Sequence[str]) -> TaskTable:
    """The files of one or several journals. Planning raises `PathError` for a path without a journal."""
    return TaskTable(arrow_schema(JOURNAL_COLUMNS), functools.partial(_tasks_of_all, paths))


def _tasks_of_all(paths: Sequence[str], condition: Any) -> list[Task]:
    return [task for path in paths for task in _tasks_of(path)]


def _tasks_of(path: str) -> list[JournalTask]:
    if not is_url(path):
        return [JournalTask(str(file)) for file in journal_files(Path(path))]
    location = location_of(path)
    names = sorted(name for name in location.sizes("") if name.endswith(SUFFIX))
    if not names:
        raise PathError(PATH, f"{location.url} has no file *{SUFFIX}, and so is no journal")
    return [JournalTask(name, path) for name in names]
