"""What a broker reports of itself: statistics, counts of waiting messages, the check of RocksDB queues."""

from msgspec import field

from .body import Body, DataVersion


class BrokerStatsItem(Body, frozen=True):
    """Sum, throughput a second and average size a call over one span."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


class BrokerStatsData(Body, frozen=True):
    """Answer to 315."""

    stats_minute: BrokerStatsItem | None = None
    stats_hour: BrokerStatsItem | None = None
    stats_day: BrokerStatsItem | None = None


class TopicMetric(Body, frozen=True):
    """How many messages of a topic wait, and when that was counted (ms)."""

    count: int = 0
    time_stamp: int = 0


class TimerMetricsSerializeWrapper(Body, frozen=True):
    """Answer to 61 and the file timermetrics."""

    timing_count: dict[str, TopicMetric] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


class TransactionMetricsSerializeWrapper(Body, frozen=True):
    """The file transactionMetrics."""

    transaction_count: dict[str, TopicMetric] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


class TimerCheckpointBytes(bytes):
    """The file timercheck: 56 bytes, drawn in `store/FORMAT.md`."""


class CheckRocksdbCqWriteResult(Body, frozen=True):
    """Answer to 354: 0 fine, 1 not, 2 under way, 3 failed."""

    check_result: str | None = None
    check_status: int = 0
