"""The batch reader of `rocketmq`: asks for positions once, when the read is planned.

With `pushdown=true` the query's filters narrow what is read. Those on topic, brokerName, queueId and queueOffset rule
out ranges as conditions of the tables do; those on storeTimestamp become offsets by a request to the brokers, and those
on tags (=, IN) are applied by the broker. All of them are returned to Spark, which applies them again.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from ...tables.arrow.topic_table import narrow
from ...tables.brokers.broker_client import shared_client
from ...tables.brokers.read_planner import Planner
from ...tables.planning.ranges import QueueBounds, Range
from ...tables.planning.spark_processes import in_worker
from ...tables.planning.topic_options import SourceOptions, tags_of
from ...tables.records.columns import MESSAGE_COLUMNS, arrow_schema
from .filters import condition_of
from .hybrid_reader import records_of
from .output_schema import OutputSchema


def read_ranges(options: SourceOptions, output: OutputSchema, partition: InputPartition) -> Iterator[Any]:
    """The record batches of one task: of a range of a queue, or of small ranges of several."""
    with in_worker():
        for part in (
            partition.value or ()
        ):  # Spark makes a task of its own where planning found nothing to read
            for records in records_of(part, options):
                yield output.batch_of(records)


class TopicReader(DataSourceReader):
    """Reads a batch."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._output = OutputSchema(schema, MESSAGE_COLUMNS)

    def partitions(self) -> list[InputPartition]:
        with in_worker():
            planner = Planner(shared_client(self._options.namesrv_addr, self._options.access), self._options)
            ranges = self._narrow_ranges(planner.batch(), planner)
            return [InputPartition(task) for task in planner.split(ranges)]

    def _narrow_ranges(self, ranges: list[Range], planner: Planner) -> list[Range]:
        return ranges

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_ranges(self._options, self._output, partition)


class FilteringReader(TopicReader):
    """Reads a batch, narrowed by filters."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._condition: Any = None
        self._begin_ms: int | None = None
        self._end_ms: int | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._condition = condition_of(filters, arrow_schema(MESSAGE_COLUMNS))
        for each in filters:
            if getattr(each, "attribute", ()) == ("storeTimestamp",):
                self._narrow_times(each)
            elif getattr(each, "attribute", ()) == ("tags",):
                self._filter_by_tags(each)
        return filters

    def _narrow_times(self, comparison: Any) -> None:
        """Store times have milliseconds, Spark's timestamps microseconds: the same millisecond may still match."""
        if isinstance(comparison, EqualTo | GreaterThan | GreaterThanOrEqual):
            self._begin_ms = max(self._begin_ms or 0, _epoch_ms(comparison.value))
        if isinstance(comparison, EqualTo | LessThan | LessThanOrEqual):
            end_ms = _epoch_ms(comparison.value) + 1
            self._end_ms = end_ms if self._end_ms is None else min(self._end_ms, end_ms)

    def _filter_by_tags(self, filtered: Any) -> None:
        if not isinstance(filtered, EqualTo | In) or self._options.is_filtered:
            return
        tags = set(filtered.value) if isinstance(filtered, In) else {filtered.value}
        if all(
            tags_of(str(tag)) == {tag} for tag in tags
        ):  # an expression cannot name blanks around it, `*` and `||`
            expression = " || ".join(sorted(tags))
            self._options = msgspec.structs.replace(self._options, expression=expression)

    def _narrow_ranges(self, ranges: list[Range], planner: Planner) -> list[Range]:
        kept = narrow(ranges, self._condition, arrow_schema(MESSAGE_COLUMNS))
        bounds = {part.queue: QueueBounds(part.lo, part.hi) for part in kept}
        if self._begin_ms is not None:
            found = planner.offsets_at(dict.fromkeys(bounds, self._begin_ms), bounds)
            kept = [Range(part.queue, max(part.lo, found[part.queue]), part.hi) for part in kept]
        if self._end_ms is not None:
            found = planner.offsets_at(dict.fromkeys(bounds, self._end_ms), bounds)
            kept = [Range(part.queue, part.lo, min(part.hi, found[part.queue])) for part in kept]
        return [part for part in kept if part.hi > part.lo]


def _epoch_ms(time: datetime) -> int:
    """Rounded down."""
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)
