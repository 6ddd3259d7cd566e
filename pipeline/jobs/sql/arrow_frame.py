"""The rows of a query as an Arrow table."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ...tables.files.locations import is_url
from ...tables.files.remote_files import file_system

ROWS: Final = 1024


class ArrowFrame:
    """A table that is computed when it is first used."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._computed_by = compute

    @cached_property
    def table(self) -> Any:
        return self._computed_by()

    def rows(self, most: int | None = None) -> list[dict[str, Any]]:
        """The first rows, or all. A map is a dict."""
        return list(itertools.islice(self.each(), most))

    def each(self) -> Iterator[dict[str, Any]]:
        """The rows, of which `ROWS` are values of Python at once."""
        maps = [field.name for field in self.table.schema if pa.types.is_map(field.type)]
        for batch in self.table.to_batches(max_chunksize=ROWS):
            for row in batch.to_pylist():
                yield row | {name: dict(row[name]) for name in maps if row[name] is not None}

    def count(self) -> int:
        return int(self.table.num_rows)

    def write(self, folder: str, mode: str) -> None:
        """Write the table as one Parquet file in a folder, on this machine or at a URL that Arrow knows."""
        import pyarrow.dataset as ds

        if is_url(folder):
            files, path = file_system(folder)
        else:
            files, path = None, folder
            Path(folder).mkdir(parents=True, exist_ok=True)
        ds.write_dataset(
            self.table,
            path,
            filesystem=files,
            format="parquet",
            basename_template="part-{i}.parquet",
            existing_data_behavior="delete_matching" if mode == "overwrite" else "error",
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
