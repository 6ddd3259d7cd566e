"""A table as a `pyarrow.dataset.Dataset`, for engines that push columns and conditions into such datasets.

DuckDB and Polars call `scanner` for every scan of a query, with the columns and the condition that they need.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from .conditions import columns_in


class TableDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """Reads its table anew for every scan.

    The base class has no constructor for other kinds of datasets: what would call its C++ object is defined here.
    """

    def __init__(self, table: Any, condition: Any = None) -> None:
        self._table = table
        self._condition = condition

    def __reduce__(self) -> Any:
        return TableDataset, (self._table, self._condition)

    @property
    def schema(self) -> Any:
        return self._table.schema

    def scanner(self, columns: Any = None, filter: Any = None, **_: Any) -> Any:
        """A scanner of some columns (names, or {name: expression}) of the rows that meet `filter`."""
        every = list(self.schema.names)
        filter = _both(self._condition, filter)
        if not isinstance(columns, dict):
            return TableScanner(self._table, every if columns is None else list(columns), filter)
        words = " ".join(map(str, columns.values()))
        names = [name for name in every if name in columns_in(words, every)] or [_narrow_column(self.schema)]
        return TableScanner(self._table, names, filter, columns)

    def filter(self, expression: Any) -> "TableDataset":
        """The rows that meet a condition, as a dataset."""
        return TableDataset(self._table, _both(self._condition, expression))

    def sort_by(self, sorting: Any, **kwargs: Any) -> Any:
        """All rows, sorted, as a dataset in memory."""
        return ds.InMemoryDataset(self.to_table().sort_by(sorting, **kwargs))

    @property
    def partition_expression(self) -> Any:
        """True of every row."""
        return pc.scalar(True)

    def replace_schema(self, schema: Any) -> Any:
        raise NotImplementedError("the columns of a table are fixed")

    def get_fragments(self, filter: Any = None) -> Any:
        raise NotImplementedError("a table has no files: scanner, to_batches and to_table read it")

    def join(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("join the rows: to_table().join(...)")

    def join_asof(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("join the rows: to_table().join_asof(...)")

    _get_fragments = get_fragments


def _both(one: Any, other: Any) -> Any:
    """The rows that meet both conditions; None is one that every row meets."""
    return other if one is None else one if other is None else one & other


class TableScanner:
    """What engines ask of a `pyarrow.dataset.Scanner`, done in the thread that asks.

    pyarrow's own scanner takes the batches of a generator in a thread of its own. That thread may still hold the
    generator when the program ends, and the process is then aborted. So it is used only for one batch at a time, to
    compute `expressions` from the columns `names`.
    """

    def __init__(
        self, table: Any, names: list[str], condition: Any, expressions: dict[str, Any] | None = None
    ) -> None:
        self._table = table
        self._names = names
        self._condition = condition
        self._expressions = expressions
        self.dataset_schema = table.schema
        self.projected_schema = pa.schema([table.schema.field(name) for name in names])
        if expressions is not None:
            self.projected_schema = _computed(self.projected_schema.empty_table(), expressions).schema

    def to_reader(self) -> Any:
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> Any:
        if self._names:
            return self.to_reader().read_all()
        # A table without columns has no rows, either: one column is read to count them.
        counted = [_narrow_column(self.dataset_schema)]
        return TableScanner(self._table, counted, self._condition).to_table().select([])

    def head(self, num_rows: int) -> Any:
        found, left = [], num_rows
        for batch in self.to_batches():
            found.append(batch.slice(0, left))
            left -= found[-1].num_rows
            if left <= 0:
                break
        return pa.Table.from_batches(found, self.projected_schema)

    def take(self, indices: Any) -> Any:
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        names = [_narrow_column(self.dataset_schema)]
        return sum(batch.num_rows for batch in self._table.batches(names, self._condition))

    def to_batches(self) -> Iterator[Any]:
        names = [name for name in self.dataset_schema.names if name in set(self._names)]
        for batch in self._table.batches(names or [_narrow_column(self.dataset_schema)], self._condition):
            if self._expressions is None:
                yield batch if names == self._names else batch.select(self._names)
            else:
                yield from _computed(pa.Table.from_batches([batch]), self._expressions).to_batches()


def _computed(rows: Any, expressions: dict[str, Any]) -> Any:
    """A table of the expressions, which ends what it starts before it returns."""
    return ds.InMemoryDataset(rows).scanner(columns=expressions, use_threads=False).to_table()


def _narrow_column(schema: Any) -> str:
    """The column that costs least where none is asked for."""
    return str(next(name for name in schema.names if schema.field(name).type == pa.int64()))
