"""The entries of a broker's journal as a table: one task for each file."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from ..files.journal_rows import column, journal_files, read_journal
from ..records.columns import JOURNAL_COLUMNS, arrow_schema
from .conditions import columns_in


class JournalTask(msgspec.Struct, frozen=True):
    """One file of a journal."""

    path: str

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        """The rows that meet the condition."""
        tested = [] if condition is None else columns_in(condition, list(JOURNAL_COLUMNS))
        extra = [name for name in tested if name not in names]
        schema = arrow_schema(JOURNAL_COLUMNS, [*names, *extra])
        for rows in read_journal(Path(self.path)):
            if not rows:
                continue
            batch = pa.RecordBatch.from_arrays([column(rows, name) for name in schema.names], schema=schema)
            if condition is not None:
                batch = batch.filter(condition)
            if batch.num_rows:
                yield batch.select(list(names))


class JournalTable:
    """The files of one or several journals that exist now."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.schema = arrow_schema(JOURNAL_COLUMNS, list(JOURNAL_COLUMNS))
        self._paths = paths

    def check(self) -> None:
        """`OptionError` for a path without a journal."""
        self.tasks(None)

    def tasks(self, condition: Any) -> list[JournalTask]:
        return [JournalTask(str(file)) for path in self._paths for file in journal_files(Path(path))]

    def log_bytes(self) -> int:
        """The bytes of all files."""
        return sum(Path(task.path).stat().st_size for task in self.tasks(None))
