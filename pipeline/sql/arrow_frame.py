"""An Arrow table in the place of a Spark data frame, for reports."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ..files.locations import is_url

ROWS: Final = 1024


class ArrowRow:
    """One row, as reports use the rows of Spark."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def asDict(self, recursive: bool = False) -> dict[str, Any]:
        return dict(self._values)

    def __iter__(self) -> Any:
        return iter(self._values.values())

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(name) from None


class ArrowFrame:
    """A table that is computed when it is first used."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._computed_by = compute

    @cached_property
    def table(self) -> Any:
        """The table."""
        return self._computed_by()

    def compute(self) -> None:
        """Compute the table now, while progress is shown."""
        assert self.table is not None

    @property
    def columns(self) -> list[str]:
        return list(self.table.schema.names)

    def collect(self) -> list[ArrowRow]:
        """All rows. A map is a dict, as in Spark."""
        return list(self.toLocalIterator())

    def limit(self, num: int) -> "ArrowFrame":
        """The first rows."""
        return ArrowFrame(lambda: self.table.slice(0, num))

    def toLocalIterator(self) -> Iterator[ArrowRow]:
        """The rows, of which `ROWS` are values of Python at once."""
        maps = [field.name for field in self.table.schema if pa.types.is_map(field.type)]
        for batch in self.table.to_batches(max_chunksize=ROWS):
            for row in batch.to_pylist():
                for name in maps:
                    if row[name] is not None:
                        row[name] = dict(row[name])
                yield ArrowRow(row)

    def count(self) -> int:
        return int(self.table.num_rows)

    @property
    def write(self) -> "ArrowWriter":
        return ArrowWriter(self)


class ArrowWriter:
    """The part of Spark's writer that reports use."""

    def __init__(self, frame: ArrowFrame) -> None:
        self._frame = frame
        self._existing = "error"

    def mode(self, mode: str) -> "ArrowWriter":
        """overwrite, or errorifexists."""
        self._existing = "delete_matching" if mode == "overwrite" else "error"
        return self

    def parquet(self, folder: str) -> None:
        """Write the table as one file in a folder, on this machine or at a URL that Arrow knows."""
        import pyarrow.dataset as ds

        from ..files.remote_files import file_system

        if is_url(folder):
            files, path = file_system(folder)
        else:
            files, path = None, folder
            Path(folder).mkdir(parents=True, exist_ok=True)
        ds.write_dataset(
            self._frame.table,
            path,
            filesystem=files,
            format="parquet",
            basename_template="part-{i}.parquet",
            existing_data_behavior=self._existing,
        )


def frame_of_rows(schema: Mapping[str, Any], rows: Sequence[Sequence[Any]]) -> ArrowFrame:
    """A frame of rows in hand; `schema` is column -> Arrow type."""
    fields = pa.schema(list(schema.items()))
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
    table = pa.Table.from_arrays(
        [pa.array(list(values), field.type) for values, field in zip(columns, fields, strict=True)],
        schema=fields,
    )
    return ArrowFrame(lambda: table)
