"""The SQL92 expressions of all groups, kept in config/consumerFilter.json so that they outlive the clients.

    {"filterDataByTopic": {topic: {"topic", "groupFilterData": {group: {
        "topic", "consumerGroup", "expressionType", "expression",
        "bornTime", "deadTime", "clientVersion",          ms; dead is deadTime >= bornTime
        "bloomFilterData": {"bitNum", "bitPos"}}}}}}       `bloom_filter.py`

Heartbeats register the expressions; a newer version of a subscription replaces the older one. When a group leaves, its
data is dead: it still serves pulls and is deleted a day later. An expression that cannot be compiled is not kept, and
the group's pulls are refused with 27. Tag subscriptions are not kept here. Mirrors `ConsumerFilterManager`; only the
event loop's thread touches it.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import field
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.bodies.client import SubscriptionData, is_tag_type
from pocketmq.protocol.text import fastjson
from pocketmq.store import layout
from pocketmq.store.files.json_file import MAX_FILE_BYTES
from pocketmq.store.tables.json_table import JsonTable

from .bloom_filter import BloomFilter, BloomFilterData
from .sql_filter import ExpressionRefused, SqlFilter, compile_expression

if TYPE_CHECKING:
    from ..config.broker_config import BrokerConfig

DEAD_BEFORE_START_MS: Final = 30_000
"""A group that was alive when the file was written counts as dead since this long before the start."""
MAX_FILTERS: Final = 100_000
"""Pairs of group and topic; further filters are not kept, and their pulls are refused with 27."""


class FilterData(Body, frozen=True):
    """One group's filter of one topic (official `ConsumerFilterData`)."""

    topic: str
    consumer_group: str
    expression: str
    expression_type: str
    bloom_filter_data: BloomFilterData | None = None
    born_time: int = 0
    client_version: int = 0
    dead_time: int = 0
    dead: bool = False

    @property
    def is_dead(self) -> bool:
        return self.dead_time >= self.born_time


class TopicFilters(Body, frozen=True):
    """The filters of one topic by group."""

    topic: str | None = None
    group_filter_data: dict[str, FilterData] = field(default_factory=dict)


class FilterFile(Body, frozen=True):
    """The whole file."""

    filter_data_by_topic: dict[str, TopicFilters] = field(default_factory=dict)


class ConsumerFilters(JsonTable):
    """All SQL filters of a broker. Filtered pulls call `find`, which is one look-up."""

    remembered = ("_filters",)

    def __init__(self, config: "BrokerConfig", now_ms: Callable[[], int]) -> None:
        super().__init__(config.store.root / layout.CONFIG / layout.CONSUMER_FILTERS, now_ms)
        self._is_5 = config.is_5
        self._bloom_filter = BloomFilter(
            config.max_error_rate_of_bloom_filter, config.expect_consumer_num_use_filter
        )
        self._clean_after_ms = config.filter_data_clean_time_span
        self._filters: dict[tuple[str, str], tuple[FilterData, SqlFilter]] = {}

    def find(self, topic: str, group: str) -> tuple[FilterData, SqlFilter] | None:
        """The filter a group registered for a topic, dead or alive."""
        return self._filters.get((topic, group))

    def register(self, group: str, subscriptions: Iterable[SubscriptionData]) -> None:
        """Register the subscriptions of a heartbeat; filters of topics it does not name become dead."""
        named = set()
        for subscription in subscriptions:
            topic = subscription.topic or ""
            named.add(topic)
            if not is_tag_type(subscription.expression_type) and subscription.sub_string:
                self._register(topic, group, subscription)
        if self._filters:
            self._end_life(group, named)

    def unregister(self, group: str) -> None:
        """The last client of a group left."""
        if self._filters:
            self._end_life(group, ())

    def clean(self) -> None:
        """Delete filters that have been dead for longer than a day (`filterDataCleanTimeSpan`)."""
        limit_ms = self._now_ms() - self._clean_after_ms
        for key, (data, _) in list(self._filters.items()):
            if data.is_dead and data.dead_time <= limit_ms:
                del self._filters[key]
                self.dirty = True

    def _end_life(self, group: str, but_topics: Iterable[str]) -> None:
        for key, (data, compiled) in list(self._filters.items()):
            topic, owner = key
            if owner == group and topic not in but_topics and not data.is_dead:
                self._filters[key] = msgspec.structs.replace(data, dead_time=self._now_ms()), compiled
                self.dirty = True

    def _register(self, topic: str, group: str, subscription: SubscriptionData) -> None:
        expression, version = subscription.sub_string or "", subscription.sub_version
        known = self._filters.get((topic, group))
        if known is not None:
            data, compiled = known
            if version < data.client_version or (version == data.client_version and not data.is_dead):
                return
            if version == data.client_version or (
                data.expression == expression and data.expression_type == subscription.expression_type
            ):
                alive = msgspec.structs.replace(data, client_version=version, dead_time=0)
                self._filters[topic, group] = alive, compiled
                self.dirty = True
                return
        elif len(self._filters) >= MAX_FILTERS:
            return
        self.dirty = True
        try:
            compiled = compile_expression(expression, subscription.expression_type, is_5=self._is_5)
        except ExpressionRefused:
            self._filters.pop((topic, group), None)
            return
        made = FilterData(
            topic=topic,
            consumer_group=group,
            expression=expression,
            expression_type=subscription.expression_type,
            bloom_filter_data=self._bloom_filter.generate(f"{group}#{topic}"),
            born_time=self._now_ms(),
            client_version=version,
        )
        self._filters[topic, group] = made, compiled

    # --- text

    def snapshot(self) -> bytes | None:
        self.clean()
        return super().snapshot()

    def to_json(self, *, pretty: bool = False) -> bytes:
        file = FilterFile()
        for (topic, group), (data, _) in self._filters.items():
            of_topic = file.filter_data_by_topic.setdefault(topic, TopicFilters(topic=topic))
            of_topic.group_filter_data[group] = msgspec.structs.replace(data, dead=data.is_dead)
        return fastjson.dumps(file, pretty=pretty)

    def _take(self, content: bytes) -> bool:
        """Load the file, without expressions that cannot be compiled. If the size of the bloom filter changed, load
        nothing, as the official broker does."""
        stored = fastjson.decode(content, FilterFile, max_bytes=MAX_FILE_BYTES)
        filters = {}
        for topic, of_topic in stored.filter_data_by_topic.items():
            for group, data in of_topic.group_filter_data.items():
                if not self._bloom_filter.is_valid(data.bloom_filter_data):
                    return True
                try:
                    compiled = compile_expression(data.expression, data.expression_type, is_5=self._is_5)
                except ExpressionRefused:
                    continue
                if data.dead_time == 0:
                    dead_time = max(self._now_ms() - DEAD_BEFORE_START_MS, data.born_time)
                    data = msgspec.structs.replace(data, dead_time=dead_time)
                filters[topic, group] = data, compiled
        self._filters = filters
        return True
