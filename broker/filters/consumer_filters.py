"""The SQL92 expressions of all groups, kept in config/consumerFilter.json so that they outlive the clients.

    {"filterDataByTopic": {topic: {"topic", "groupFilterData": {group: {
        "topic", "consumerGroup", "expressionType", "expression",
        "bornTime", "deadTime", "clientVersion",          ms; dead is deadTime >= bornTime
        "bloomFilterData": {"bitNum", "bitPos"}}}}}}       `bloom_filter.py`

Heartbeats register the expressions; a newer version of a subscription replaces the older one. When a group leaves, its
data is dead: it still serves pulls and is deleted a day later. An expression is compiled when a pull needs it (the
official broker compiles it at the heartbeat); if that fails, the pull is refused with 27. Tag subscriptions are not
kept here. Mirrors `ConsumerFilterManager`; only the event loop's thread touches it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import field
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.bodies.client import SubscriptionData, is_tag_type
from pocketmq.protocol.text import fastjson
from pocketmq.store import layout

from ..tables.json_table import JsonTable, NowMs, TextOf
from .bloom_filter import BloomFilter, BloomFilterData
from .sql_filter import MAX_EXPRESSION, ExpressionRefused, SqlFilter, compile_expression

if TYPE_CHECKING:
    from ..config.broker_config import BrokerConfig

DEAD_BEFORE_START_MS: Final = 30_000
"""A group that was alive when the file was written counts as dead since this long before the start."""
MAX_CHARACTERS: Final = 16 * 1024 * 1024
"""Of all expressions, groups and topics, an entry counting as 200 more. Beyond that dead filters are deleted at once;
if that is not enough, further ones are not kept, and their pulls are refused with 27."""
_ENTRY_CHARACTERS: Final = 200


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

    @property
    def characters(self) -> int:
        return len(self.expression) + len(self.topic) + len(self.consumer_group) + _ENTRY_CHARACTERS


class TopicFilters(Body, frozen=True):
    topic: str | None = None
    group_filter_data: dict[str, FilterData] = field(default_factory=dict)


class FilterFile(Body, frozen=True):
    filter_data_by_topic: dict[str, TopicFilters] = field(default_factory=dict)


class ConsumerFilters(JsonTable):
    """All SQL filters of a broker. Filtered pulls call `find`: two look-ups, and one in the cache of expressions."""

    state_fields = ("_characters", "_filters")
    body_type = FilterFile

    def __init__(self, config: "BrokerConfig", now_ms: NowMs) -> None:
        super().__init__(config.store.root / layout.CONFIG / layout.CONSUMER_FILTERS, now_ms)
        self._is_5 = config.is_5
        self._bloom_filter = BloomFilter(
            config.max_error_rate_of_bloom_filter, config.expect_consumer_num_use_filter
        )
        self._clean_after_ms = config.filter_data_clean_time_span
        self._filters: dict[str, dict[str, FilterData]] = {}
        """By group and topic."""
        self._characters = 0

    def find(self, topic: str, group: str) -> tuple[FilterData, SqlFilter] | None:
        """The filter a group registered for a topic, dead or alive; `None` also if it cannot be compiled."""
        data = self._filters.get(group, _NO_FILTERS).get(topic)
        if data is None:
            return None
        try:
            return data, compile_expression(data.expression, data.expression_type, is_5=self._is_5)
        except ExpressionRefused:
            return None

    def register(self, group: str, subscriptions: Iterable[SubscriptionData]) -> None:
        """Register the subscriptions of a heartbeat; filters of topics it does not name become dead."""
        named = set()
        for subscription in subscriptions:
            topic = subscription.topic or ""
            named.add(topic)
            if not is_tag_type(subscription.expression_type) and subscription.sub_string:
                self._register(topic, group, subscription)
        self._end_life(group, named)

    def unregister(self, group: str) -> None:
        """The last client of a group left."""
        self._end_life(group, ())

    def clean(self) -> None:
        """Delete filters that have been dead for longer than a day (`filterDataCleanTimeSpan`)."""
        self._delete_dead(self._now_ms() - self._clean_after_ms)

    def _delete_dead(self, until_ms: int) -> None:
        dead = [
            (group, topic)
            for group, of_group in self._filters.items()
            for topic, data in of_group.items()
            if data.is_dead and data.dead_time <= until_ms
        ]
        for group, topic in dead:
            self._delete(group, topic)

    def _delete(self, group: str, topic: str) -> None:
        of_group = self._filters[group]
        self._characters -= of_group.pop(topic).characters
        if not of_group:
            del self._filters[group]
        self.dirty = True

    def _end_life(self, group: str, but_topics: Iterable[str]) -> None:
        of_group = self._filters.get(group, _NO_FILTERS)
        for topic, data in of_group.items():
            if topic not in but_topics and not data.is_dead:
                of_group[topic] = msgspec.structs.replace(data, dead_time=self._now_ms())
                self.dirty = True

    def _register(self, topic: str, group: str, subscription: SubscriptionData) -> None:
        expression, version = subscription.sub_string or "", subscription.sub_version
        known = self._filters.get(group, _NO_FILTERS).get(topic)
        if known is not None:
            if version < known.client_version or (version == known.client_version and not known.is_dead):
                return
            if version == known.client_version or (
                known.expression == expression and known.expression_type == subscription.expression_type
            ):
                alive = msgspec.structs.replace(known, client_version=version, dead_time=0)
                self._filters[group][topic] = alive
                self.dirty = True
                return
            self._delete(group, topic)
        if len(expression) > MAX_EXPRESSION:
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
        if self._characters + made.characters > MAX_CHARACTERS:
            self._delete_dead(self._now_ms())
        if self._characters + made.characters <= MAX_CHARACTERS:
            self._filters.setdefault(group, {})[topic] = made
            self._characters += made.characters
            self.dirty = True

    # --- text

    def snapshot(self) -> TextOf | None:
        self.clean()
        return super().snapshot()

    def to_json(self) -> bytes:
        file = FilterFile()
        for group, of_group in self._filters.items():
            for topic, data in of_group.items():
                of_topic = file.filter_data_by_topic.setdefault(topic, TopicFilters(topic=topic))
                of_topic.group_filter_data[group] = msgspec.structs.replace(data, dead=data.is_dead)
        return fastjson.dumps(file, pretty=True)

    def _read(self, stored: FilterFile) -> None:
        """If the size of the bloom filter changed, load nothing, as the official broker does."""
        filters: dict[str, dict[str, FilterData]] = {}
        characters = 0
        for topic, of_topic in stored.filter_data_by_topic.items():
            for group, data in of_topic.group_filter_data.items():
                if not self._bloom_filter.is_valid(data.bloom_filter_data):
                    return
                if data.dead_time == 0:
                    dead_time = max(self._now_ms() - DEAD_BEFORE_START_MS, data.born_time)
                    data = msgspec.structs.replace(data, dead_time=dead_time)
                filters.setdefault(group, {})[topic] = data
                characters += data.characters
        self._filters, self._characters = filters, characters


_NO_FILTERS: Final[dict[str, FilterData]] = {}
