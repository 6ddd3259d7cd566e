"""A table as a `pyarrow.dataset.Dataset`, for engines that push columns and conditions into such datasets.

DuckDB and Polars call `scanner` for every scan of a query, with the columns and the condition that they need.
"""

from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from .conditions import columns_in


class TableDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """Reads its table anew for every scan."""

    def __init__(self, table: Any) -> None:
        # The base class has no constructor for other kinds of datasets, and this one calls none of its C++ parts.
        self._table = table

    def __reduce__(self) -> Any:
        return TableDataset, (self._table,)

    @property
    def schema(self) -> Any:
        return self._table.schema

    def scanner(self, columns: Any = None, filter: Any = None, **_: Any) -> Any:
        """A scanner of some columns (names, or {name: expression}) of the rows that meet `filter`."""
        every = list(self.schema.names)
        if columns is None:
            names = every
        elif isinstance(columns, dict):
            words = " ".join(map(str, columns.values()))
            names = [name for name in every if name in columns_in(words, every)]
        else:
            names = [name for name in every if name in set(columns)]
        names = names or [next(name for name in every if self.schema.field(name).type == pa.int64())]
        schema = pa.schema([self.schema.field(name) for name in names])
        return ds.Scanner.from_batches(self._table.batches(names, filter), schema=schema, columns=columns)

    def replace_schema(self, schema: Any) -> Any:
        raise NotImplementedError("the columns of a table are fixed")
