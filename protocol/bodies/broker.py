"""Bodies about brokers: statistics, replication state, users and access rules, timers.

Bodies of pop consumption stand in `pop.py`, the next to read.
"""

from msgspec import field

from .body import Body
from .data_version import DataVersion
from .routes import BrokerMemberGroup


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


class HAClientRuntimeInfo(Body, frozen=True):
    """Replication as a slave sees it."""

    master_addr: str | None = None
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0


class HAConnectionRuntimeInfo(Body, frozen=True):
    """Replication to one slave as the master sees it. `diff`: bytes the slave is behind."""

    addr: str | None = None
    slave_ack_offset: int = 0
    diff: int = 0
    in_sync: bool = False
    transferred_byte_in_second: int = 0
    transfer_from_where: int = 0


class HARuntimeInfo(Body, frozen=True):
    """Answer to 907."""

    master: bool = False
    master_commit_log_max_offset: int = 0
    in_sync_slave_nums: int = 0
    ha_connection_info: list[HAConnectionRuntimeInfo] = field(default_factory=list)
    ha_client_runtime_info: HAClientRuntimeInfo = field(default_factory=HAClientRuntimeInfo)


class EpochEntry(Body, frozen=True):
    """Log range written under one master epoch."""

    epoch: int = 0
    start_offset: int = 0
    end_offset: int = 0


class EpochEntryCache(Body, frozen=True):
    """Answer to 1007."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: int = 0
    epoch_list: list[EpochEntry] | None = None
    max_offset: int = 0


class SyncStateSet(Body, frozen=True):
    """Ids of the replicas that are in sync (controller mode)."""

    sync_state_set: list[int] = field(default_factory=list)
    sync_state_set_epoch: int = 0


class ElectMasterResponseBody(Body, frozen=True):
    """Answer to 1002."""

    broker_member_group: BrokerMemberGroup | None = None
    sync_state_set: list[int] = field(default_factory=list)


class ReplicaIdentity(Body, frozen=True):
    broker_name: str | None = None
    broker_id: int = 0
    broker_address: str | None = None
    alive: bool = False


class ReplicasInfo(Body, frozen=True):
    """Official BrokerReplicasInfo.ReplicasInfo."""

    master_broker_id: int | None = None
    master_address: str | None = None
    master_epoch: int | None = None
    sync_state_set_epoch: int | None = None
    in_sync_replicas: list[ReplicaIdentity] = field(default_factory=list)
    not_in_sync_replicas: list[ReplicaIdentity] = field(default_factory=list)


class BrokerReplicasInfo(Body, frozen=True):
    """Answer to 1006, by broker name."""

    replicas_info_table: dict[str, ReplicasInfo] = field(default_factory=dict)


class UserInfo(Body, frozen=True):
    """3001-3005. `user_type` Super or Normal, `user_status` enable or disable."""

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None


class PolicyEntryInfo(Body, frozen=True):
    """`decision` is Allow or Deny; `resource` is like `Topic:name`, `Group:prefix*`, `*`."""

    resource: str | None = None
    actions: list[str] | None = None
    source_ips: list[str] | None = None
    decision: str | None = None


class PolicyInfo(Body, frozen=True):
    """`policy_type` is Custom or Default."""

    policy_type: str | None = None
    entries: list[PolicyEntryInfo] | None = None


class AclInfo(Body, frozen=True):
    """3006-3010. `subject` is like `User:name`."""

    subject: str | None = None
    policies: list[PolicyInfo] | None = None


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


class CheckRocksdbCqWriteResult(Body, frozen=True):
    """Answer to 354: 0 fine, 1 not, 2 under way, 3 failed."""

    check_result: str | None = None
    check_status: int = 0
