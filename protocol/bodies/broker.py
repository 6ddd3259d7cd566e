"""What a broker reports of itself: statistics, counts of waiting messages."""

from msgspec import field

from .body import Body, DataVersion


class BrokerStatsItem(Body, frozen=True):
    """Sum, calls a second and average size of a call over one span."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class BrokerStatsData(Body, frozen=True):
    """One series of the statistics."""

    stats_minute: BrokerStatsItem | None = None
    stats_hour: BrokerStatsItem | None = None
    stats_day: BrokerStatsItem | None = None


class TopicMetric(Body, frozen=True):
    """How many messages of a topic wait, and when that last changed (ms)."""

    count: int = 0
    time_stamp: int = 0


class TimerMetricsSerializeWrapper(Body, frozen=True):
    """Waiting delayed messages by topic; also the file timermetrics."""

    timing_count: dict[str, TopicMetric] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


class TransactionMetricsSerializeWrapper(Body, frozen=True):
    """The file transactionMetrics."""

    transaction_count: dict[str, TopicMetric] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


class TimerCheckpointBytes(bytes):
    """The file timercheck: 56 bytes, drawn in `store/FORMAT.md`."""
