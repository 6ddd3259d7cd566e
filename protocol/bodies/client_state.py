"""Bodies about connected clients: what the broker knows of them (203, 204, 328), what they report (307, 309, 221)."""

from enum import StrEnum

from msgspec import field

from ..message.message_queue import MessageQueue
from .body import Body
from .client import SubscriptionData


class Connection(Body, frozen=True):
    """A connected client. `language` is a LanguageCode name, `version` an MQVersion ordinal."""

    client_id: str | None = None
    client_addr: str | None = None
    language: str | None = None
    version: int = 0


class ConsumerConnection(Body, frozen=True):
    """The connections of a consumer group."""

    connection_set: list[Connection] = field(default_factory=list)
    subscription_table: dict[str, SubscriptionData] = field(default_factory=dict)
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None


class ProducerConnection(Body, frozen=True):
    """The connections of a producer group."""

    connection_set: list[Connection] = field(default_factory=list)


class ProducerInfo(Body, frozen=True):
    client_id: str | None = None
    remote_ip: str | None = field(name="remoteIP", default=None)
    language: str | None = None
    version: int = 0
    last_update_timestamp: int = 0


class ProducerTableInfo(Body, frozen=True):
    """Producers by group."""

    data: dict[str, list[ProducerInfo]] | None = None


class ProcessQueueInfo(Body, frozen=True):
    """State of one queue inside a push consumer. `droped` is the official spelling."""

    commit_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: int = 0
    cached_msg_size_in_mib: int = field(name="cachedMsgSizeInMiB", default=0)
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    droped: bool = False
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


class PopProcessQueueInfo(Body, frozen=True):
    """State of one queue inside a pop consumer (5.x)."""

    wait_ack_count: int = 0
    droped: bool = False
    last_pop_timestamp: int = 0


class ConsumeStatus(Body, frozen=True):
    """Rates of one topic inside a consumer: times in ms, throughput a second, failures in the last hour."""

    pull_rt: float = field(name="pullRT", default=0.0)
    pull_tps: float = field(name="pullTPS", default=0.0)
    consume_rt: float = field(name="consumeRT", default=0.0)
    consume_ok_tps: float = field(name="consumeOKTPS", default=0.0)
    consume_failed_tps: float = field(name="consumeFailedTPS", default=0.0)
    consume_failed_msgs: int = 0


class ConsumerRunningInfo(Body, frozen=True):
    """The inner state of a consumer. Tools read PROP_CONSUME_TYPE, PROP_CLIENT_VERSION, PROP_CONSUMEORDERLY and
    PROP_CONSUMER_START_TIMESTAMP from `properties`.
    """

    properties: dict[str, str] = field(default_factory=dict)
    subscription_set: list[SubscriptionData] = field(default_factory=list)
    mq_table: dict[MessageQueue, ProcessQueueInfo] = field(default_factory=dict)
    mq_pop_table: dict[MessageQueue, PopProcessQueueInfo] = field(default_factory=dict)
    status_table: dict[str, ConsumeStatus] = field(default_factory=dict)
    user_consumer_info: dict[str, str] = field(default_factory=dict)
    jstack: str | None = None


class CMResult(StrEnum):
    """How a listener processed the message of 309."""

    CR_SUCCESS = "CR_SUCCESS"
    CR_LATER = "CR_LATER"
    CR_ROLLBACK = "CR_ROLLBACK"
    CR_COMMIT = "CR_COMMIT"
    CR_THROW_EXCEPTION = "CR_THROW_EXCEPTION"
    CR_RETURN_NULL = "CR_RETURN_NULL"


class ConsumeMessageDirectlyResult(Body, frozen=True):
    """The result of a listener. `consume_result` is a text of `CMResult`."""

    order: bool = False
    auto_commit: bool = True
    consume_result: str | None = None
    remark: str | None = None
    spent_time_mills: int = 0


class GetConsumerStatusBody(Body, frozen=True):
    """Offsets of one client in `message_queue_table` (221), or of all by client id in `consumer_table` (223)."""

    message_queue_table: dict[MessageQueue, int] = field(default_factory=dict)
    consumer_table: dict[str, dict[MessageQueue, int]] = field(default_factory=dict)
