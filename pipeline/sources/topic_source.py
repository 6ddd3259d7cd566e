"""The data source `rocketmq`: topics as data frames, and data frames as messages.

    spark.read.format("rocketmq").option("rocketmq.namesrv.addr", "127.0.0.1:9876").option("subscribe", "Orders").load()

This file has the source and its batch reader; the stream reader is `topic_stream.py`, the sink
`sink/topic_writer.py`, the options
`planning/topic_options.py`. Spark finds the source by itself (`pyspark_rocketmq`). What Spark does not do here: it
prunes no columns,
so a user schema of the columns wanted is what saves work; and it hands filters over only to a reader that says it
takes them, which fails where `spark.sql.python.filterPushdown.enabled` is false: `pushdown=true` is for sessions that
have it on (`session/session.py`).
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
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
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ..brokers.range_reader import RangeReader
from ..brokers.read_planner import Planner
from ..brokers.wire import wire_for
from ..errors import OptionError
from ..planning.positions import Range
from ..planning.topic_options import SourceOptions, as_dict, read_source_options, tags_of
from ..records.columns import MESSAGE_COLUMNS, check_names, ddl
from ..records.records import Records

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter, DataSourceStreamReader, DataSourceWriter


class RocketMQSource(DataSource):
    """Format `rocketmq`."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        text = next((value for key, value in self.options.items() if key.lower() == "includeproperties"), "")
        chosen = dict(MESSAGE_COLUMNS)
        if text.lower() == "false":  # what it may be is the readers' to say
            del chosen["properties"]
        return ddl(chosen)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = read_source_options(as_dict(self.options), is_stream=False)
        kind = FilteringReader if options.pushes_down else TopicReader
        return kind(options, schema)

    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":
        from .topic_stream import RefusedReader, TopicStreamReader

        try:
            return TopicStreamReader(read_source_options(as_dict(self.options), is_stream=True), schema)
        except OptionError as error:
            return RefusedReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> "DataSourceWriter":
        from ..sink.topic_writer import TopicWriter

        return TopicWriter(as_dict(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DataSourceStreamArrowWriter":
        from ..sink.topic_writer import TopicStreamWriter

        return TopicStreamWriter(as_dict(self.options), schema, overwrite=overwrite)


class RangePartition(InputPartition):
    """One task: a range of a queue, or small ones of several."""

    def __init__(self, ranges: tuple[Range, ...]) -> None:
        self.value = ranges


class Layout:
    """The columns of a user's schema, as Spark wants them back; picklable.

    Spark compares the first batch of a task with exactly this Arrow schema, and dies on a later batch that differs.
    """

    def __init__(self, schema: StructType, columns: dict[str, tuple[str, Any]]) -> None:
        fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        self.names = check_names(columns, fields)
        if len(set(self.names)) < len(self.names):
            raise OptionError(f"schema: names a column twice: {', '.join(self.names)}")
        self.arrow = to_arrow_schema(schema, timezone="UTC")

    def batch(self, arrays: list[Any]) -> Any:
        """One record batch of arrays in the order of `names`."""
        fitted = [
            array if array.type == field.type else array.cast(field.type)
            for array, field in zip(arrays, self.arrow, strict=True)
        ]
        return pa.RecordBatch.from_arrays(fitted, schema=self.arrow)

    def batch_of(self, records: Records) -> Any:
        """One record batch of messages."""
        return self.batch(records.columns(self.names))


def read_range(options: SourceOptions, layout: Layout, partition: InputPartition | None) -> Iterator[Any]:
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
        self._layout = Layout(schema, MESSAGE_COLUMNS)

    def partitions(self) -> list[InputPartition]:
        planner = Planner(wire_for(self._options), self._options)
        return [RangePartition(one) for one in planner.split(self._narrowed(planner.batch(), planner))]

    def _narrowed(self, ranges: list[Range], planner: Planner) -> list[Range]:
        return ranges

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        return read_range(self._options, self._layout, partition)


_Between = tuple[int, int]
_EVERYTHING: Final = (-(1 << 62), 1 << 62)
_RANGES: Final = ("queueOffset", "storeTimestamp")


class FilteringReader(TopicReader):
    """The same with filters used for planning: topic, brokerName, queueId (=, IN), ranges of queueOffset and
    storeTimestamp, and tags (=, IN) which the broker then looks at.

    All filters are given back to Spark as well: what is left out here can be more than nothing and less than all.
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._values: dict[str, frozenset[Any]] = {}
        self._between: dict[str, _Between] = {}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for one in filters:
            column = ".".join(getattr(one, "attribute", ()))
            if isinstance(one, EqualTo):
                self._keep(column, frozenset((one.value,)))
            elif isinstance(one, In):
                self._keep(column, frozenset(one.value))
            if isinstance(one, EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
                self._narrow(column, one)
        self._ask_for_tags()
        return filters

    def _keep(self, column: str, values: frozenset[Any]) -> None:
        self._values[column] = self._values.get(column, values) & values

    def _narrow(self, column: str, one: Any) -> None:
        if column not in _RANGES:
            return
        value = _as_number(one.value)
        low, high = self._between.get(column, _EVERYTHING)
        if isinstance(one, EqualTo | GreaterThanOrEqual):
            low = max(low, value)
        if isinstance(
            one, GreaterThan
        ):  # times of less than a millisecond: the same millisecond may still match
            low = max(low, value + 1 if column == "queueOffset" else value)
        if isinstance(one, EqualTo | LessThanOrEqual):
            high = min(high, value + 1)
        if isinstance(one, LessThan):
            high = min(high, value if column == "queueOffset" else value + 1)
        self._between[column] = low, high

    def _ask_for_tags(self) -> None:
        tags = self._values.get("tags")
        if tags and not self._options.is_filtered and all(map(_can_be_asked_for, tags)):
            self._options = msgspec.structs.replace(
                self._options, expression=" || ".join(sorted(map(str, tags)))
            )

    def _narrowed(self, ranges: list[Range], planner: Planner) -> list[Range]:
        low, high = self._between.get("queueOffset", _EVERYTHING)
        kept = [
            Range(one.queue, max(one.lo, low), min(one.hi, high)) for one in ranges if self._is_wanted(one)
        ]
        kept = [one for one in kept if one.hi > one.lo]
        begin_ms, end_ms = self._between.get("storeTimestamp", _EVERYTHING)
        bounds = {one.queue: (one.lo, one.hi) for one in kept}
        if begin_ms > 0:
            found = planner.offsets_at(dict.fromkeys(bounds, begin_ms), bounds)
            kept = [Range(one.queue, max(one.lo, found[one.queue]), one.hi) for one in kept]
        if end_ms < 1 << 62:
            found = planner.offsets_at(dict.fromkeys(bounds, end_ms), bounds)
            kept = [Range(one.queue, one.lo, min(one.hi, found[one.queue])) for one in kept]
        return [one for one in kept if one.hi > one.lo]

    def _is_wanted(self, one: Range) -> bool:
        facts = {
            "topic": one.queue.topic,
            "brokerName": one.queue.broker_name,
            "queueId": one.queue.queue_id,
        }
        return all(fact in self._values.get(column, {fact}) for column, fact in facts.items())


def _can_be_asked_for(tag: Any) -> bool:
    """Whether an expression can name this tag: there, blanks around one are dropped, and `*` and `||` are signs."""
    return tags_of(str(tag)) == {tag}


def _as_number(value: Any) -> int:
    """An offset, or a time as epoch ms (rounded down)."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    return int(value)
