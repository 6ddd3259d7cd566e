"""The batch reader of `rocketmq` with `pushdown=true`: filters of the query narrow what is read."""

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
from ..planning.ranges import Range
from ..planning.topic_options import SourceOptions, tags_of
from .topic_reader import TopicReader

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
        if tags and not self._options.is_filtered and all(map(_is_plain_tag, tags)):
            self._options = msgspec.structs.replace(
                self._options, expression=" || ".join(sorted(map(str, tags)))
            )

    def _narrow_ranges(self, ranges: list[Range], planner: Planner) -> list[Range]:
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


def _is_plain_tag(tag: Any) -> bool:
    """Whether an expression can name this tag: there, blanks around one are dropped, and `*` and `||` are signs."""
    return tags_of(str(tag)) == {tag}


def _as_number(value: Any) -> int:
    """An offset, or a time as epoch ms (rounded down)."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    return int(value)
