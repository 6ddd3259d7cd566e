"""Every setting of the official clients under its snake_case name, with its default; checked when made.

Times are in the unit of the official setting: ms, but for `consume_timeout` (minutes). Sizes are bytes, but for the
`pull_threshold_size_*` (MiB). -1 stands for "not set". Where the official setter corrects a value in silence
(back pressure below its minimum) or ignores it (an auto-commit interval under a second), InvalidSetting is raised.
Not here: the group, which is the first argument of each client, and objects that do something (listener, hooks,
offset store). 4.9 clients have neither pop, back pressure, auto-batch nor namespace_v2. Checking is
`checks.py`. Official classes: ClientConfig, DefaultMQProducer, DefaultMQPushConsumer, DefaultLitePullConsumer.
"""

import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import field
from msgspec.structs import force_setattr
from pocketmq.protocol.bodies.client import ConsumeFromWhere, MessageModel
from pocketmq.protocol.bodies.subscription import ExpressionError, tag_subscription
from pocketmq.protocol.languages import LANGUAGES
from pocketmq.protocol.message.compression import COMPRESSION_TYPES
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC

from ..errors import ClientError, ValidationFailed
from ..producing.fault_tolerance import LATENCY_MAX_MS, NOT_AVAILABLE_DURATION_MS
from ..producing.send_retry import RETRY_RESPONSE_CODES
from ..rebalancing.first_position import CONSUME_TIMESTAMP_AGE_MS, format_timestamp, parse_timestamp
from ..rebalancing.process_queue import MIB
from ..values.validators import check_topic
from .allocation import AllocateMessageQueueAveragely, AllocateMessageQueueStrategy
from .checks import (
    INT_MAX,
    LONG_MAX,
    OFF,
    Range,
    check_ranges,
    check_types,
    refuse,
)

DEFAULT_INSTANCE_NAME: Final = "DEFAULT"
"""Stands for a name of this process and moment, but for broadcasting consumers, whose local offsets hang on it."""

SECRETS: Final = frozenset({"tls_client_key_password"})
"""Settings no text shows."""

_AT_LEAST_1: Final[Range] = (1, INT_MAX)
_AT_LEAST_0: Final[Range] = (0, INT_MAX)
_CLIENT_RANGES: Final = {
    "poll_name_server_interval": _AT_LEAST_1,
    "heartbeat_broker_interval": _AT_LEAST_1,
    "persist_consumer_offset_interval": _AT_LEAST_1,
    "pull_time_delay_mills_when_exception": _AT_LEAST_0,
    "trace_msg_batch_num": _AT_LEAST_1,
    "mq_client_api_timeout": _AT_LEAST_1,
    "detect_timeout": _AT_LEAST_1,
    "detect_interval": _AT_LEAST_1,
    "max_page_size_in_get_metadata": _AT_LEAST_1,
}
_PRODUCER_RANGES: Final = {
    "default_topic_queue_nums": _AT_LEAST_1,
    "send_msg_timeout": _AT_LEAST_1,
    "compress_msg_body_over_howmuch": _AT_LEAST_0,
    "retry_times_when_send_failed": _AT_LEAST_0,
    "retry_times_when_send_async_failed": _AT_LEAST_0,
    "max_message_size": _AT_LEAST_1,
    "back_pressure_for_async_send_num": (10, INT_MAX),
    "back_pressure_for_async_send_size": (MIB, INT_MAX),
}
_PUSH_RANGES: Final = {
    "consume_thread_min": (1, 1000),
    "consume_thread_max": (1, 1000),
    "consume_concurrently_max_span": (1, 65535),
    "pull_threshold_for_queue": (1, 65535),
    "pull_threshold_size_for_queue": (1, 1024),
    "pull_interval": (0, 65535),
    "consume_message_batch_max_size": (1, 1024),
    "pull_batch_size": (1, 1024),
    "pop_invisible_time": (5000, 300000),
    "pop_batch_nums": (1, 32),
    "pop_threshold_for_queue": _AT_LEAST_1,
    "pull_batch_size_in_bytes": _AT_LEAST_1,
    "consume_timeout": _AT_LEAST_1,
    "await_termination_millis_when_shutdown": (0, LONG_MAX),
}
_PUSH_RANGES_OR_OFF: Final = {
    "pull_threshold_for_topic": (1, 6553500),
    "pull_threshold_size_for_topic": (1, 102400),
    "max_reconsume_times": _AT_LEAST_0,
    "suspend_current_queue_time_millis": _AT_LEAST_0,
}
_LITE_RANGES: Final = {
    "broker_suspend_max_time_millis": _AT_LEAST_1,
    "consumer_pull_timeout_millis": _AT_LEAST_1,
    "pull_thread_nums": _AT_LEAST_1,
    "auto_commit_interval_millis": (1000, LONG_MAX),
    "pull_batch_size": _AT_LEAST_1,
    "pull_threshold_for_all": (1, LONG_MAX),
    "consume_max_span": _AT_LEAST_1,
    "pull_threshold_for_queue": _AT_LEAST_1,
    "pull_threshold_size_for_queue": _AT_LEAST_1,
    "poll_timeout_millis": (0, LONG_MAX),
    "topic_metadata_check_interval_millis": _AT_LEAST_1,
}
_LITE_STARTS: Final = (
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
)


class AccessChannel(StrEnum):
    """Where the brokers run; CLOUD changes the trace topic and the trace's last fields."""

    LOCAL = "LOCAL"
    CLOUD = "CLOUD"


class ClientSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What all clients share (official ClientConfig)."""

    namesrv_addr: str | None = None
    """`host:port`, several separated by `;`; None takes NAMESRV_ADDR from the environment."""
    client_ip: str | None = None
    """None finds out."""
    instance_name: str = DEFAULT_INSTANCE_NAME
    client_callback_executor_threads: int | None = None
    """Callbacks run in the event loop, without threads: anything but None is refused."""
    namespace: str | None = None
    """Deprecated namespace that goes before names, `ns%topic`."""
    namespace_v2: str | None = None
    """Namespace that goes with each request."""
    access_channel: AccessChannel = AccessChannel.LOCAL
    poll_name_server_interval: int = 30_000
    heartbeat_broker_interval: int = 30_000
    persist_consumer_offset_interval: int = 5_000
    pull_time_delay_mills_when_exception: int = 1_000
    trace_msg_batch_num: int = 10
    unit_mode: bool = False
    unit_name: str | None = None
    decode_read_body: bool = True
    """False: consumers get messages without their bodies."""
    decode_decompress_body: bool = True
    """False: consumers get compressed bodies as they are stored."""
    vip_channel_enabled: bool = False
    """Most requests go to the broker's port minus 2."""
    use_heartbeat_v2: bool = False
    use_tls: bool = False
    socks_proxy_config: str = "{}"
    """Proxies are not supported: anything but `{}` is refused."""
    mq_client_api_timeout: int = 3_000
    detect_timeout: int = 200
    detect_interval: int = 2_000
    language: str = "PYTHON"
    """Declared to servers (official default: JAVA)."""
    enable_stream_request_type: bool = False
    """Requests carry the mark of a stream, and the client id ends with `@STREAM`."""
    send_latency_enable: bool = False
    start_detector_enable: bool = False
    enable_heartbeat_channel_event_listener: bool = True
    enable_concurrent_heartbeat: bool = False
    """Heartbeats to several brokers at once, instead of one after the other (not with use_heartbeat_v2)."""
    concurrent_heartbeat_thread_pool_size: int | None = None
    """How many at once; None takes the number of processors."""
    enable_trace: bool = False
    """Tell of each message sent and consumed in messages of the trace topic."""
    trace_topic: str | None = None
    """None takes RMQ_SYS_TRACE_TOPIC."""
    max_page_size_in_get_metadata: int = 2_000
    """For administration; producers and consumers ask for no such pages."""

    # What the official client takes from JVM properties.
    namesrv_domain: str | None = None
    """`host` or `host:port` of an address server that tells the name servers; asked where no address is given."""
    namesrv_domain_subgroup: str = "nsaddr"
    recall_trace_enable: bool = False
    """With enable_trace: recalls too."""
    tls_test_mode_enable: bool = True
    """With use_tls: any certificate is taken, none is shown. False: the settings below count."""
    tls_client_auth_server: bool = False
    """Check the server's certificate against tls_client_trust_cert_path (its name is not looked at, as in Java)."""
    tls_client_trust_cert_path: str | None = None
    tls_client_cert_path: str | None = None
    tls_client_key_path: str | None = None
    tls_client_key_password: str | None = None

    def __repr__(self) -> str:
        told = (
            f"{name}={'***' if name in SECRETS and value is not None else repr(value)}"
            for name in self.__struct_fields__
            if (value := getattr(self, name)) != self.default(name)
        )
        return f"{type(self).__name__}({', '.join(told)})"

    @classmethod
    def default(cls, name: str) -> object:
        """What a setting is unless given; None for those whose default is made anew each time."""
        return next((one.default for one in msgspec.structs.fields(cls) if one.name == name), None)

    def __post_init__(self) -> None:
        check_types(self)
        check_ranges(self, _CLIENT_RANGES)
        if not self.instance_name:
            raise refuse("instance_name", self.instance_name, "a name is needed")
        if self.language not in LANGUAGES:
            raise refuse("language", self.language, f"expected one of {', '.join(LANGUAGES)}")
        if self.client_callback_executor_threads is not None:
            threads = self.client_callback_executor_threads
            raise refuse("client_callback_executor_threads", threads, "callbacks run in the event loop")
        if self.socks_proxy_config.strip() not in ("", "{}"):
            raise refuse("socks_proxy_config", self.socks_proxy_config, "proxies are not supported")
        if self.namesrv_addr is not None:
            name_servers(self.namesrv_addr, {})

    def client_id(self, ip: str, instance_name: str) -> str:
        """The id of a client instance (official buildMQClientId)."""
        unit = f"@{self.unit_name}" if self.unit_name and self.unit_name.strip() else ""
        return f"{ip}@{instance_name}{unit}{'@STREAM' if self.enable_stream_request_type else ''}"


class ProducerSettings(ClientSettings, frozen=True, kw_only=True):
    """Official DefaultMQProducer."""

    topics: tuple[str, ...] = ()
    """Routes of these are fetched at start."""
    create_topic_key: str = AUTO_CREATE_TOPIC
    default_topic_queue_nums: int = 4
    send_msg_timeout: int = 3_000
    """For the whole call, all attempts together."""
    send_msg_max_timeout_per_request: int = OFF
    compress_msg_body_over_howmuch: int = 4_096
    compress_level: int = 5
    compress_type: str = "ZLIB"
    retry_times_when_send_failed: int = 2
    retry_times_when_send_async_failed: int = 2
    retry_another_broker_when_not_store_ok: bool = False
    retry_response_codes: frozenset[int] = RETRY_RESPONSE_CODES
    max_message_size: int = 4 * MIB
    enable_backpressure_for_async_mode: bool = False
    back_pressure_for_async_send_num: int = 1_024
    back_pressure_for_async_send_size: int = 100 * MIB
    auto_batch: bool = False
    batch_max_delay_ms: int = OFF
    """-1 takes 10."""
    batch_max_bytes: int = OFF
    """-1 takes 32 KiB."""
    total_batch_max_bytes: int = OFF
    """-1 takes 32 MiB."""
    send_latency_fault_enable: bool | None = None
    """Fault tolerance; None takes send_latency_enable, the same switch of ClientConfig."""
    latency_max: tuple[int, ...] = LATENCY_MAX_MS
    not_available_duration: tuple[int, ...] = NOT_AVAILABLE_DURATION_MS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, _PRODUCER_RANGES)
        check_ranges(self, {"send_msg_max_timeout_per_request": _AT_LEAST_0}, off=True)
        _check_auto_batch(self)
        compress_type = self.compress_type.strip().upper()
        if compress_type not in COMPRESSION_TYPES:
            raise refuse("compress_type", self.compress_type, "Unsupported compress type name")
        force_setattr(self, "compress_type", compress_type)
        check_ranges(self, {"compress_level": (-1, 9 if compress_type == "ZLIB" else 22)})
        for topic in self.topics:
            _check_topic_name("topics", topic)
        _check_topic_name("create_topic_key", self.create_topic_key)
        if len(self.latency_max) != len(self.not_available_duration):
            raise refuse("latency_max", self.latency_max, "needs as many numbers as not_available_duration")
        if list(self.latency_max) != sorted(self.latency_max):
            raise refuse("latency_max", self.latency_max, "must ascend")

    @property
    def is_fault_tolerant(self) -> bool:
        if self.send_latency_fault_enable is None:
            return self.send_latency_enable
        return self.send_latency_fault_enable


class PushConsumerSettings(ClientSettings, frozen=True, kw_only=True):
    """Official DefaultMQPushConsumer."""

    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: str = ""
    """`yyyyMMddHHmmss`, local time; empty takes 30 minutes before now."""
    allocate_message_queue_strategy: AllocateMessageQueueStrategy = field(
        default_factory=AllocateMessageQueueAveragely
    )
    subscription: dict[str, str] = field(default_factory=dict)
    """Topic to tag expression."""
    consume_thread_min: int = 20
    """Messages in listeners at once; the official pool never grows beyond it either."""
    consume_thread_max: int = 20
    adjust_thread_pool_nums_threshold: int = 100_000
    """Without effect, as in the official client."""
    consume_concurrently_max_span: int = 2_000
    pull_threshold_for_queue: int = 1_000
    pull_threshold_size_for_queue: int = 100
    pull_threshold_for_topic: int = OFF
    pull_threshold_size_for_topic: int = OFF
    pull_interval: int = 0
    pull_batch_size: int = 32
    pull_batch_size_in_bytes: int = 256 * 1024
    consume_message_batch_max_size: int = 1
    post_subscription_when_pull: bool = False
    max_reconsume_times: int = OFF
    """-1: 16 for a concurrent listener, no limit for an ordered one."""
    suspend_current_queue_time_millis: int = 1_000
    consume_timeout: int = 15
    pop_invisible_time: int = 60_000
    pop_batch_nums: int = 32
    pop_threshold_for_queue: int = 96
    await_termination_millis_when_shutdown: int = 0
    client_rebalance: bool = True
    """False: the broker assigns, and may choose pop."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_consumer(self)
        check_ranges(self, _PUSH_RANGES)
        check_ranges(self, _PUSH_RANGES_OR_OFF, off=True)
        if self.consume_thread_min > self.consume_thread_max:
            raise refuse(
                "consume_thread_min",
                self.consume_thread_min,
                f"consumeThreadMin ({self.consume_thread_min}) is larger than consumeThreadMax "
                f"({self.consume_thread_max})",
            )
        for topic, expression in self.subscription.items():
            _check_topic_name("subscription", topic)
            try:
                tag_subscription(topic, expression, sub_version=0)
            except ExpressionError as error:
                raise refuse("subscription", self.subscription, f"subscription exception: {error}") from error


class LitePullConsumerSettings(ClientSettings, frozen=True, kw_only=True):
    """Official DefaultLitePullConsumer."""

    enable_stream_request_type: bool = True
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: str = ""
    """`yyyyMMddHHmmss`, local time; empty takes 30 minutes before now."""
    allocate_message_queue_strategy: AllocateMessageQueueStrategy = field(
        default_factory=AllocateMessageQueueAveragely
    )
    broker_suspend_max_time_millis: int = 20_000
    consumer_timeout_millis_when_suspend: int = 30_000
    consumer_pull_timeout_millis: int = 10_000
    """Without effect, as in the official client: pulls wait, so consumer_timeout_millis_when_suspend counts."""
    auto_commit: bool = True
    auto_commit_interval_millis: int = 5_000
    pull_thread_nums: int = 20
    """Pulls under way at once."""
    pull_batch_size: int = 10
    pull_threshold_for_all: int = 10_000
    pull_threshold_for_queue: int = 1_000
    pull_threshold_size_for_queue: int = 100
    consume_max_span: int = 2_000
    poll_timeout_millis: int = 5_000
    topic_metadata_check_interval_millis: int = 30_000

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_consumer(self)
        check_ranges(self, _LITE_RANGES)
        if self.consumer_timeout_millis_when_suspend < self.broker_suspend_max_time_millis:
            raise refuse(
                "consumer_timeout_millis_when_suspend",
                self.consumer_timeout_millis_when_suspend,
                "Long polling mode, the consumer consumerTimeoutMillisWhenSuspend must greater than "
                "brokerSuspendMaxTimeMillis",
            )
        if self.consume_from_where not in _LITE_STARTS:
            raise refuse(
                "consume_from_where", self.consume_from_where.value, "Invalid ConsumeFromWhere Value"
            )


def name_servers(namesrv_addr: str | None, environ: Mapping[str, str]) -> list[str]:
    """`host:port` of each name server: of the setting, else of NAMESRV_ADDR; empty where neither is given.

    `http://host:port` is the host and port alone, as in the official client. Raises InvalidSetting.
    """
    text = (namesrv_addr or environ.get("NAMESRV_ADDR", "")).strip()
    if text.startswith("http://"):
        text = text.rpartition("/")[2]
    servers = [part.strip() for part in text.split(";") if part.strip()]
    for server in servers:
        host, _, port = server.rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise refuse("namesrv_addr", text, f"{server} is not host:port")
    return servers


def _check_consumer(settings: PushConsumerSettings | LitePullConsumerSettings) -> None:
    if settings.message_model is MessageModel.LITE_SELECTIVE:
        raise refuse("message_model", settings.message_model.value, "expected CLUSTERING or BROADCASTING")
    strategy = settings.allocate_message_queue_strategy
    if not callable(getattr(strategy, "allocate", None)) or not isinstance(
        getattr(strategy, "name", None), str
    ):
        raise refuse("allocate_message_queue_strategy", strategy, "needs `name` and `allocate`")
    if not settings.consume_timestamp:
        force_setattr(
            settings,
            "consume_timestamp",
            format_timestamp(round(time.time() * 1000) - CONSUME_TIMESTAMP_AGE_MS),
        )
    try:
        parse_timestamp(settings.consume_timestamp)
    except ClientError as error:
        raise refuse("consume_timestamp", settings.consume_timestamp, str(error)) from error


def _check_auto_batch(settings: ProducerSettings) -> None:
    """In the words of the official ProduceAccumulator."""
    delay_ms, size, total = (
        settings.batch_max_delay_ms,
        settings.batch_max_bytes,
        settings.total_batch_max_bytes,
    )
    if delay_ms != OFF and not 0 < delay_ms <= 30_000:
        reason = f"batchMaxDelayMs expect between 1ms and 30s, but get {delay_ms}!"
        raise refuse("batch_max_delay_ms", delay_ms, reason)
    if size != OFF and not 0 < size <= 2 * MIB:
        reason = f"batchMaxBytes expect between 1B and 2MB, but get {size}!"
        raise refuse("batch_max_bytes", size, reason)
    if total != OFF and total <= 0:
        raise refuse(
            "total_batch_max_bytes", total, f"totalBatchMaxBytes must bigger then 0, but get {total}!"
        )


def _check_topic_name(name: str, topic: str) -> None:
    try:
        check_topic(topic)
    except ValidationFailed as error:
        raise refuse(name, topic, str(error)) from error
