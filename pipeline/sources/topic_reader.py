"""The batch reader of `rocketmq`: asks for positions once, when the read is planned."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ..brokers.broker_client import client_for
from ..brokers.read_planner import Planner
from ..planning.gc_freeze import freeze_imports
from ..planning.ranges import Range
from ..planning.topic_options import SourceOptions
from ..records.columns import MESSAGE_COLUMNS
from .hybrid_reader import records_of
from .output_schema import OutputSchema


class RangePartition(InputPartition):
    """One task: a range of a queue, or small ranges of several."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        self.value = ranges


def read_ranges(
    options: SourceOptions, output: OutputSchema, partition: InputPartition | None
) -> Iterator[Any]:
    """The record batches of one task."""
    freeze_imports()
    if not isinstance(partition, RangePartition):
        return  # planning found nothing to read, and Spark made an empty task of its own
    for part in partition.value:
        for records in records_of(part, options):
            yield output.batch_of(records)


class TopicReader(DataSourceReader):
    """Reads a batch."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._output = OutputSchema(schema, MESSAGE_COLUMNS)

    def partitions(self) -> list[InputPartition]:
        planner = Planner(client_for(self._options), self._options)
        ranges = self._narrow_ranges(planner.batch(), planner)
        return [RangePartition(task) for task in planner.split(ranges)]

    def _narrow_ranges(self, ranges: list[Range], planner: Planner) -> list[Range]:
        return ranges

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        return read_ranges(self._options, self._output, partition)
