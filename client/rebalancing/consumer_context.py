"""What the parts of one consumer have in common: its group, settings, subscriptions, offsets and rates.

The rates are for its running info (307): means over the last minute, failures of an hour. Mirrors
`ConsumerStatsManager`.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec
from pocketmq.protocol.bodies.client import MessageModel
from pocketmq.protocol.bodies.client_state import ConsumeStatus

from ..hooks.hooks import Hooks
from ..instance.instance import ClientInstance
from ..offsets.offset_store import OffsetStore
from ..settings.consumer_settings import ConsumerSettings
from .subscriptions import Subscriptions

BUCKET_SECONDS: Final = 10
MINUTE_BUCKETS: Final = 6
HOUR_BUCKETS: Final = 360


class _Bucket:
    """Ten seconds of one topic."""

    __slots__ = ("consume_count", "consume_ms", "failed", "number", "ok", "pull_count", "pull_ms", "pulled")

    def __init__(self, number: int) -> None:
        self.number = number
        self.pulled = self.pull_count = self.ok = self.failed = self.consume_count = 0
        self.pull_ms = self.consume_ms = 0.0


class ConsumerStatistics:
    """Rates by topic, updated once for each pull and each listener call. `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: dict[str, list[_Bucket]] = {}

    def pulled(self, topic: str, count: int, took_ms: float) -> None:
        """A pull brought messages."""
        bucket = self._current(topic)
        bucket.pulled += count
        bucket.pull_count += 1
        bucket.pull_ms += took_ms

    def consumed(self, topic: str, ok: int, failed: int, took_ms: float, *, calls: int = 1) -> None:
        """A listener call ended, or several of them that took `took_ms` together."""
        bucket = self._current(topic)
        bucket.ok += ok
        bucket.failed += failed
        bucket.consume_count += calls
        bucket.consume_ms += took_ms

    def of_topic(self, topic: str) -> ConsumeStatus:
        """The topic's rates as of now."""
        now = int(self._clock() / BUCKET_SECONDS)
        hour = [bucket for bucket in self._buckets.get(topic, []) if bucket.number > now - HOUR_BUCKETS]
        minute = [bucket for bucket in hour if bucket.number > now - MINUTE_BUCKETS]
        seconds = float(BUCKET_SECONDS * MINUTE_BUCKETS)
        pulls = sum(bucket.pull_count for bucket in minute)
        calls = sum(bucket.consume_count for bucket in minute)
        return ConsumeStatus(
            pull_rt=sum(bucket.pull_ms for bucket in minute) / pulls if pulls else 0.0,
            pull_tps=sum(bucket.pulled for bucket in minute) / seconds,
            consume_rt=sum(bucket.consume_ms for bucket in minute) / calls if calls else 0.0,
            consume_ok_tps=sum(bucket.ok for bucket in minute) / seconds,
            consume_failed_tps=sum(bucket.failed for bucket in minute) / seconds,
            consume_failed_msgs=sum(bucket.failed for bucket in hour),
        )

    def _current(self, topic: str) -> _Bucket:
        number = int(self._clock() / BUCKET_SECONDS)
        buckets = self._buckets.get(topic)
        if buckets is None:
            buckets = self._buckets[topic] = []
        if not buckets or buckets[-1].number != number:
            buckets.append(_Bucket(number))
            if len(buckets) > HOUR_BUCKETS:
                del buckets[0]
        return buckets[-1]


SettingsT = TypeVar("SettingsT", bound=ConsumerSettings)


class ConsumerContext(msgspec.Struct, Generic[SettingsT], frozen=True):
    """Of one started consumer. `group` has the namespace, if one is set."""

    instance: ClientInstance
    group: str
    settings: SettingsT
    subscriptions: Subscriptions
    offsets: OffsetStore
    statistics: ConsumerStatistics
    hooks: Hooks

    @property
    def is_clustering(self) -> bool:
        return self.settings.message_model is MessageModel.CLUSTERING
