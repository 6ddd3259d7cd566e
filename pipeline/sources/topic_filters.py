"""The batch reader of `rocketmq` with `pushdown=true`: the query's filters narrow what is read.

Filters on topic, brokerName and queueId (=, IN), on ranges of queueOffset and storeTimestamp, and on tags (=, IN),
which the broker then filters by. They are applied only partly here, so all of them are returned to Spark, which
applies them again.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from ..brokers.read_planner import Planner
from ..planning.ranges import QueueBounds, Range
from ..planning.topic_options import SourceOptions, tags_of
from .topic_reader import TopicReader

_Interval = tuple[int, int]
_EVERYTHING: Final = (-(1 << 62), 1 << 62)
_INTERVAL_COLUMNS: Final = ("queueOffset", "storeTimestamp")


class FilteringReader(TopicReader):
    """Reads a batch, narrowed by filters."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._values: dict[str, frozenset[Any]] = {}
        self._intervals: dict[str, _Interval] = {}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for condition in filters:
            column = ".".join(getattr(condition, "attribute", ()))
            if isinstance(condition, EqualTo):
                self._keep_values(column, frozenset((condition.value,)))
            elif isinstance(condition, In):
                self._keep_values(column, frozenset(condition.value))
            if isinstance(condition, EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
                self._narrow_interval(column, condition)
        self._filter_by_tags()
        return filters

    def _keep_values(self, column: str, values: frozenset[Any]) -> None:
        self._values[column] = self._values.get(column, values) & values

    def _narrow_interval(self, column: str, comparison: Any) -> None:
        if column not in _INTERVAL_COLUMNS:
            return
        # Store times have milliseconds, Spark's timestamps microseconds: the same millisecond may still match.
        step = 1 if column == "queueOffset" else 0
        value = _as_number(comparison.value)
        low, high = self._intervals.get(column, _EVERYTHING)
        if isinstance(comparison, EqualTo | GreaterThanOrEqual):
            low = max(low, value)
        if isinstance(comparison, GreaterThan):
            low = max(low, value + step)
        if isinstance(comparison, EqualTo | LessThanOrEqual):
            high = min(high, value + 1)
        if isinstance(comparison, LessThan):
            high = min(high, value + 1 - step)
        self._intervals[column] = low, high

    def _filter_by_tags(self) -> None:
        tags = self._values.get("tags")
        if tags and not self._options.is_filtered and all(map(_is_plain_tag, tags)):
            self._options = msgspec.structs.replace(
                self._options, expression=" || ".join(sorted(map(str, tags)))
            )

    def _narrow_ranges(self, ranges: list[Range], planner: Planner) -> list[Range]:
        low, high = self._intervals.get("queueOffset", _EVERYTHING)
        kept = [
            Range(part.queue, max(part.lo, low), min(part.hi, high))
            for part in ranges
            if self._is_wanted(part)
        ]
        kept = [part for part in kept if part.hi > part.lo]
        begin_ms, end_ms = self._intervals.get("storeTimestamp", _EVERYTHING)
        bounds = {part.queue: QueueBounds(part.lo, part.hi) for part in kept}
        if begin_ms > 0:
            found = planner.offsets_at(dict.fromkeys(bounds, begin_ms), bounds)
            kept = [Range(part.queue, max(part.lo, found[part.queue]), part.hi) for part in kept]
        if end_ms < 1 << 62:
            found = planner.offsets_at(dict.fromkeys(bounds, end_ms), bounds)
            kept = [Range(part.queue, part.lo, min(part.hi, found[part.queue])) for part in kept]
        return [part for part in kept if part.hi > part.lo]

    def _is_wanted(self, part: Range) -> bool:
        queue = part.queue
        columns = {"topic": queue.topic, "brokerName": queue.broker_name, "queueId": queue.queue_id}
        return all(value in self._values.get(column, {value}) for column, value in columns.items())


def _is_plain_tag(tag: Any) -> bool:
    """Whether a tag expression can name this tag: it has no blanks around it, no `*` and no `||`."""
    return tags_of(str(tag)) == {tag}


def _as_number(value: Any) -> int:
    """An offset, or a time as epoch ms (rounded down)."""
    if isinstance(value, datetime):
        time = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return int(time.timestamp() * 1000)
    return int(value)
