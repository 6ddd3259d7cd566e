"""MetricTable: how many messages wait, by their real topic: config/timermetrics, config/transactionMetrics.

    {"dataVersion":{...},"timingCount":{"orders":{"count":3,"timeStamp":1700000000000}}}     one line, no extension
                         "transactionCount" in the other file

Official classes: TimerMetrics, TransactionMetrics. Counting is on the send path, so it makes no new objects.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec
from pocketmq.protocol.bodies.broker import (
    TimerMetricsSerializeWrapper,
    TopicMetric,
    TransactionMetricsSerializeWrapper,
)
from pocketmq.protocol.text import fastjson
from pocketmq.store import layout

from .json_table import JsonTable, NowMs


class MetricTable(JsonTable):
    """Counts by topic. `kind` names the member of the file."""

    state_fields = ("_metrics",)

    def __init__(self, folder: Path, now_ms: NowMs, kind: Literal["timingCount", "transactionCount"]) -> None:
        is_timing = kind == "timingCount"
        name = layout.TIMER_METRICS if is_timing else layout.TRANSACTION_METRICS
        super().__init__(folder / name, now_ms)
        self.body_type = TimerMetricsSerializeWrapper if is_timing else TransactionMetricsSerializeWrapper
        self._kind = kind
        self._metrics: dict[str, list[int]] = {}
        """Count and time of its last change."""
        self._changes = 0
        """Since the data version that was read: counted, because a new version for each change would be slow."""
        self._changed_ms = 0

    def add(self, topic: str, change: int, *, changes: int = 1) -> None:
        """Add `change`, which may be negative, to the count of messages that wait for `topic`; as `changes` calls that
        add it in parts."""
        metric = self._metrics.get(topic)
        if metric is None:
            metric = self._metrics[topic] = [0, 0]
        metric[0] += change
        metric[1] = self._changed_ms = self._now_ms()
        self._changes += changes
        self.dirty = True

    def count(self, topic: str) -> int:
        metric = self._metrics.get(topic)
        return 0 if metric is None else metric[0]

    def remove(self, topic: str) -> None:
        if self._metrics.pop(topic, None) is not None:
            self.dirty = True

    def replace_all(self, content: bytes) -> bool:
        """At a slave: take over the master's reply to 61; False if the slave already has that version.

        Raises BodyError.
        """
        before = self.data_version
        self.read_content(content)
        if self.data_version == before:
            return False
        self.dirty = True
        return True

    def to_json(self) -> bytes:
        """Body of the reply to 61, and the file, which is one line too."""
        version = msgspec.structs.replace(
            self.data_version,
            timestamp=self._changed_ms if self._changes else self.data_version.timestamp,
            counter=self.data_version.counter + self._changes,
        )
        metrics = {
            topic: TopicMetric(count=count, time_stamp=time) for topic, (count, time) in self._metrics.items()
        }
        return fastjson.dumps({"dataVersion": version, self._kind: metrics})

    def _read(self, stored: Any) -> None:
        metrics = stored.timing_count if self._kind == "timingCount" else stored.transaction_count
        self._metrics = {topic: [metric.count, metric.time_stamp] for topic, metric in metrics.items()}
        self.data_version, self._changes = stored.data_version, 0
