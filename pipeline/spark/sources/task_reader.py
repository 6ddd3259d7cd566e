"""The Spark readers of stores and journals: each task of a table (`pipeline/tables`) is a task of Spark.

With `pushdown=true` the filters of a query rule out tasks and rows, as conditions do for DuckDB and Polars.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from ...errors import OptionError
from ...tables.planning.option_values import plain_options
from ...tables.planning.spark_processes import in_worker
from ...tables.records.columns import Columns
from .filters import condition_of
from .output_schema import OutputSchema

PATHS: Final = "paths"
_EXAMPLE: Final = '{"broker-a":"/data/a","broker-b":"s3://bucket/b"}'


def read_paths(options: Mapping[str, Any]) -> tuple[dict[str, str] | None, dict[str, str]]:
    """(location of each broker or None without option `paths`, the other options). `OptionError` for other JSON."""
    texts = plain_options(options)
    named = {key: text for key, text in texts.items() if key.lower() == PATHS}
    others = {key: text for key, text in texts.items() if key.lower() != PATHS}
    if not named:
        return None, others
    (text,) = named.values()
    try:
        paths = msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, UnicodeEncodeError):
        paths = {}
    if not paths or not all(paths.values()):
        raise OptionError("option paths", f"must be JSON such as {_EXAMPLE}, got {text:.100}")
    if any(key.lower() in ("path", "brokername", "commitlogpath") for key in others):
        raise OptionError(
            "option paths", "names the brokers and their folders: leave out path, brokerName, commitLogPath"
        )
    return paths, others


class TaskReader(DataSourceReader):
    """Reads a table of tasks; picklable."""

    def __init__(self, table: Any, schema: StructType, columns: Columns) -> None:
        self._table = table
        self._output = OutputSchema(schema, columns)
        self._condition: Any = None

    def partitions(self) -> list[InputPartition]:
        with in_worker():
            return [InputPartition(task) for task in self._table.tasks(self._condition)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if partition.value is None:
            return  # planning found nothing to read, and Spark made an empty task of its own
        with in_worker():
            for batch in partition.value.batches(self._output.names, self._condition):
                yield self._output.batch(batch.columns)


class FilteringTaskReader(TaskReader):
    """The same, narrowed by filters."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._condition = condition_of(filters, self._table.schema)
        return filters  # the engine applies them again
