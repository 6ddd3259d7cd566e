"""The settings as keyword arguments: what type checkers and editors know of `Producer("g", send_msg_timeout=1000)`.

One entry a setting, with the type it has in `client_settings.py`, where each is explained; a test compares the two.
Nothing
here exists at run time but names.
"""

import ssl
from typing import TypedDict

from pocketmq.protocol.bodies.client import ConsumeFromWhere, MessageModel

from .allocation import AllocateMessageQueueStrategy
from .client_settings import AccessChannel


class ClientOptions(TypedDict, total=False):
    """What all clients take (official ClientConfig)."""

    namesrv_addr: str | None
    client_ip: str | None
    instance_name: str
    namespace: str | None
    namespace_v2: str | None
    access_channel: AccessChannel
    poll_name_server_interval: int
    heartbeat_broker_interval: int
    persist_consumer_offset_interval: int
    pull_time_delay_mills_when_exception: int
    trace_msg_batch_num: int
    unit_mode: bool
    unit_name: str | None
    decode_read_body: bool
    decode_decompress_body: bool
    vip_channel_enabled: bool
    use_heartbeat_v2: bool
    use_tls: bool | ssl.SSLContext
    mq_client_api_timeout: int
    detect_timeout: int
    detect_interval: int
    language: str
    enable_stream_request_type: bool
    send_latency_enable: bool
    start_detector_enable: bool
    enable_heartbeat_channel_event_listener: bool
    enable_trace: bool
    trace_topic: str | None
    namesrv_domain: str | None
    namesrv_domain_subgroup: str
    recall_trace_enable: bool
    tls_test_mode_enable: bool
    tls_client_auth_server: bool
    tls_client_trust_cert_path: str | None
    tls_client_cert_path: str | None
    tls_client_key_path: str | None
    tls_client_key_password: str | None


class ProducerOptions(ClientOptions, total=False):
    """What producers take (official DefaultMQProducer)."""

    topics: tuple[str, ...]
    create_topic_key: str
    default_topic_queue_nums: int
    send_msg_timeout: int
    send_msg_max_timeout_per_request: int
    compress_msg_body_over_howmuch: int
    compress_level: int
    compress_type: str
    retry_times_when_send_failed: int
    retry_times_when_send_async_failed: int
    retry_another_broker_when_not_store_ok: bool
    retry_response_codes: frozenset[int]
    max_message_size: int
    enable_backpressure_for_async_mode: bool
    back_pressure_for_async_send_num: int
    back_pressure_for_async_send_size: int
    auto_batch: bool
    batch_max_delay_ms: int
    batch_max_bytes: int
    total_batch_max_bytes: int
    send_latency_fault_enable: bool | None
    latency_max: tuple[int, ...]
    not_available_duration: tuple[int, ...]


class PushConsumerOptions(ClientOptions, total=False):
    """What push consumers take (official DefaultMQPushConsumer)."""

    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    consume_timestamp: str
    allocate_message_queue_strategy: AllocateMessageQueueStrategy
    subscription: dict[str, str]
    consume_thread_min: int
    consume_thread_max: int
    consume_concurrently_max_span: int
    pull_threshold_for_queue: int
    pull_threshold_size_for_queue: int
    pull_threshold_for_topic: int
    pull_threshold_size_for_topic: int
    pull_interval: int
    pull_batch_size: int
    pull_batch_size_in_bytes: int
    consume_message_batch_max_size: int
    post_subscription_when_pull: bool
    max_reconsume_times: int
    suspend_current_queue_time_millis: int
    consume_timeout: int
    pop_invisible_time: int
    pop_batch_nums: int
    pop_threshold_for_queue: int
    await_termination_millis_when_shutdown: int
    client_rebalance: bool


class LitePullConsumerOptions(ClientOptions, total=False):
    """What lite pull consumers take (official DefaultLitePullConsumer)."""

    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    consume_timestamp: str
    allocate_message_queue_strategy: AllocateMessageQueueStrategy
    broker_suspend_max_time_millis: int
    consumer_timeout_millis_when_suspend: int
    auto_commit: bool
    auto_commit_interval_millis: int
    pull_batch_size: int
    pull_threshold_for_all: int
    pull_threshold_for_queue: int
    pull_threshold_size_for_queue: int
    consume_max_span: int
    poll_timeout_millis: int
    topic_metadata_check_interval_millis: int
