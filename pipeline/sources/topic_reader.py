"""The batch reader of `rocketmq`: positions are asked once, when the read is planned, and fixed then."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ..brokers.range_reader import RangeReader
from ..brokers.read_planner import Planner
from ..brokers.wire import wire_for
from ..planning.ranges import Range
from ..planning.topic_options import SourceOptions
from ..records.columns import MESSAGE_COLUMNS
from .output_schema import OutputSchema


class RangePartition(InputPartition):
    """One task: a range of a queue, or small ones of several."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        self.value = ranges


def read_ranges(
    options: SourceOptions, layout: OutputSchema, partition: InputPartition | None
) -> Iterator[Any]:
    """The record batches of one task. Where planning found nothing to read, the engine makes one task of its own, with
    nothing in it."""
    if not isinstance(partition, RangePartition):
        return
    for one in partition.value:
        for records in RangeReader(wire_for(options), one, options).batches():
            yield layout.batch_of(records)


class TopicReader(DataSourceReader):
    """Batch read: positions are asked and fixed when it is planned."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._output = OutputSchema(schema, MESSAGE_COLUMNS)

    def partitions(self) -> list[InputPartition]:
        planner = Planner(wire_for(self._options), self._options)
        return [RangePartition(one) for one in planner.split(self._narrow_ranges(planner.batch(), planner))]

    def _narrow_ranges(self, ranges: list[Range], planner: Planner) -> list[Range]:
        return ranges

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        return read_ranges(self._options, self._output, partition)
