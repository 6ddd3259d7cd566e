"""The settings as typed keyword arguments, such as `Producer("g", send_msg_timeout=1000)`.

Written by `docs/settings.py` from the structs beside this file. Nothing here exists at run time but names.
"""

import ssl
from typing import TypedDict

from pocketmq.protocol.bodies.client import ConsumeFromWhere, MessageModel

from .allocation import AllocateMessageQueueStrategy
from .client_settings import AccessChannel


class ClientOptions(TypedDict, total=False):
    """All clients take these."""

    namesrv_addr: str | None
    """`host:port`, several separated by `;`; None uses NAMESRV_ADDR of the environment."""
    client_ip: str | None
    """None finds the address that this machine uses."""
    instance_name: str
    """Clients of one name in one event loop share connections, routes and heartbeats; the default is made unique."""
    namespace: str | None
    """Deprecated namespace, a prefix of names: `ns%topic`."""
    namespace_v2: str | None
    """Namespace that is sent with each request."""
    access_channel: AccessChannel
    """CLOUD changes the topic and the last fields of traces."""
    poll_name_server_interval: int
    """Between two refreshes of the routes in use, ms."""
    heartbeat_broker_interval: int
    """Between two heartbeats, ms. Brokers forget a client after 120 s of silence."""
    persist_consumer_offset_interval: int
    """Between two reports of offsets to the brokers, or writes of the file, ms."""
    pull_time_delay_mills_when_exception: int
    """Pause of a queue after a pull that failed, ms."""
    trace_msg_batch_num: int
    """Trace records in a message, at most 20."""
    unit_mode: bool
    """Sent messages, pulls and heartbeats carry the mark of a unit."""
    unit_name: str | None
    """Part of the client id, and of the page asked at the address server."""
    decode_read_body: bool
    """False: consumers get messages without their bodies."""
    decode_decompress_body: bool
    """False: consumers get compressed bodies as they are stored."""
    vip_channel_enabled: bool
    """Most requests go to the broker's port minus 2."""
    use_heartbeat_v2: bool
    """Heartbeats leave out subscriptions that the broker knows already (5.x)."""
    use_tls: bool | ssl.SSLContext
    """True alone encrypts, but accepts any certificate: see the tls_ settings. A context is used as it is."""
    mq_client_api_timeout: int
    """For one request to a name server, and for heartbeats, ms."""
    language: str
    """Declared to servers (official default: JAVA)."""
    enable_stream_request_type: bool
    """Requests carry the mark of a stream, and the client id ends with `@STREAM`."""
    enable_heartbeat_channel_event_listener: bool
    """A new connection gets a heartbeat at once."""
    enable_trace: bool
    """Record each message sent and consumed in the trace topic."""
    trace_topic: str | None
    """None is RMQ_SYS_TRACE_TOPIC."""
    namesrv_domain: str | None
    """`host` or `host:port` of an address server, which lists the name servers; asked if no address is given."""
    namesrv_domain_subgroup: str
    """Last part of the path at the address server."""
    recall_trace_enable: bool
    """With enable_trace: recalls too."""
    tls_test_mode_enable: bool
    """With use_tls: any certificate is accepted, none is sent. False: the settings below are used."""
    tls_client_auth_server: bool
    """Check the server's certificate against tls_client_trust_cert_path (host names are not compared, as in Java)."""
    tls_client_trust_cert_path: str | None
    """PEM file of the CA; None trusts those of the system."""
    tls_client_cert_path: str | None
    """PEM file of the certificate sent to servers."""
    tls_client_key_path: str | None
    """PEM file of its key."""
    tls_client_key_password: str | None
    """What the key is locked with; never logged or printed."""


class ProducerOptions(ClientOptions, total=False):
    """Producers take these."""

    topics: tuple[str, ...]
    """Routes of these are fetched at start."""
    create_topic_key: str
    """The topic whose route is used for a topic that does not exist yet."""
    default_topic_queue_nums: int
    """Queues of a topic that the first send creates, at most those of the template."""
    send_msg_timeout: int
    """For the whole call, all attempts together."""
    send_msg_max_timeout_per_request: int
    """For one attempt, ms; -1 is the time that is left of the call."""
    compress_msg_body_over_howmuch: int
    """Bodies of at least so many bytes are compressed."""
    compress_level: int
    """-1 to 9 for ZLIB, to 22 for ZSTD; LZ4 has no level."""
    compress_type: str
    """ZLIB, LZ4 or ZSTD."""
    retry_times_when_send_failed: int
    """Attempts after the first of an awaited send."""
    retry_times_when_send_async_failed: int
    """Attempts after the first of a send as a future."""
    retry_another_broker_when_not_store_ok: bool
    """Also repeat a send that is stored but not on disk or on a slave."""
    retry_response_codes: frozenset[int]
    """Refusals after which another broker is tried."""
    max_message_size: int
    """Bytes of a body, before compression."""
    enable_backpressure_for_async_mode: bool
    """Sends as futures wait while too many are under way."""
    back_pressure_for_async_send_num: int
    """Futures under way with back pressure, at least 10."""
    back_pressure_for_async_send_size: int
    """Bytes of their bodies, at least 1 MiB."""
    auto_batch: bool
    """Sends that are under way together travel as batches (5.x)."""
    batch_max_delay_ms: int
    """-1 takes 10."""
    batch_max_bytes: int
    """-1 takes 32 KiB."""
    total_batch_max_bytes: int
    """-1 takes 32 MiB."""
    send_latency_fault_enable: bool | None
    """Fault tolerance; None takes send_latency_enable, the same switch of ClientConfig."""
    send_latency_enable: bool
    """Producers avoid brokers that failed or were slow; send_latency_fault_enable is the same switch."""
    start_detector_enable: bool
    """With fault tolerance: a producer tries in the background whether a failed broker accepts connections again."""
    detect_timeout: int
    """For one connect of the detector (start_detector_enable), ms."""
    detect_interval: int
    """Between two connects of the detector to a broker that failed, ms."""
    latency_max: tuple[int, ...]
    """Durations of a send in ms, ascending: the n-th makes a broker avoided ..."""
    not_available_duration: tuple[int, ...]
    """... for the n-th of these times, ms."""


class ConsumerOptions(ClientOptions, total=False):
    """Push and lite pull consumers take these."""

    message_model: MessageModel
    """CLUSTERING shares the messages among the members of a group, BROADCASTING gives all to each."""
    consume_from_where: ConsumeFromWhere
    """Where a group without offsets starts; `start` of the consumer is shorter."""
    consume_timestamp: str
    """`yyyyMMddHHmmss`, local time; empty takes 30 minutes before now."""
    allocate_message_queue_strategy: AllocateMessageQueueStrategy
    """Which member reads which queues."""
    pull_threshold_for_queue: int
    """Messages of a queue in memory before its pulling pauses."""
    pull_threshold_size_for_queue: int
    """MiB of a queue in memory before its pulling pauses."""


class PushConsumerOptions(ConsumerOptions, total=False):
    """Push consumers take these."""

    subscription: dict[str, str]
    """Topic to tag expression."""
    consume_thread_min: int
    """Messages in listeners at once; the official pool never grows beyond it either."""
    consume_thread_max: int
    """Threads for listeners that are plain functions."""
    consume_concurrently_max_span: int
    """Pulling of a queue pauses while its first and last message in memory are so many offsets apart."""
    pull_threshold_for_topic: int
    """The same for all queues held of a topic; -1: no limit."""
    pull_threshold_size_for_topic: int
    """The same in MiB; -1: no limit."""
    pull_interval: int
    """Pause between two pulls of a queue, ms."""
    pull_batch_size: int
    """Messages that one pull asks for."""
    pull_batch_size_in_bytes: int
    """Bytes that one pull asks for (5.x brokers)."""
    consume_message_batch_max_size: int
    """Messages that a batch listener gets at once."""
    post_subscription_when_pull: bool
    """Each pull carries the expression, instead of the heartbeat alone."""
    max_reconsume_times: int
    """-1: 16 for a concurrent listener, no limit for an ordered one."""
    suspend_current_queue_time_millis: int
    """Pause of an ordered queue after SUSPEND_CURRENT_QUEUE_A_MOMENT, ms."""
    consume_timeout: int
    """Minutes after which a message that its listener still holds is sent back."""
    pop_invisible_time: int
    """How long popped messages are hidden from other members, ms."""
    pop_batch_nums: int
    """Messages that one pop asks for."""
    pop_threshold_for_queue: int
    """Popped messages in memory before popping pauses."""
    await_termination_millis_when_shutdown: int
    """How long `shutdown` lets running listeners end before it cancels them, ms; 0 is the official default."""
    client_rebalance: bool
    """False: the broker assigns, and may choose pop."""


class LitePullConsumerOptions(ConsumerOptions, total=False):
    """Lite pull consumers take these."""

    broker_suspend_max_time_millis: int
    """How long the broker may hold a pull, ms."""
    consumer_timeout_millis_when_suspend: int
    """For the answer to such a pull, ms; more than that."""
    auto_commit: bool
    """Offsets of polled messages are committed in the background."""
    auto_commit_interval_millis: int
    """Between two of these commits, ms."""
    pull_batch_size: int
    """Messages that one pull asks for."""
    pull_threshold_for_all: int
    """Messages of all queues in memory before pulling pauses."""
    consume_max_span: int
    """Pulling of a queue pauses while its first and last message in memory are so many offsets apart."""
    poll_timeout_millis: int
    """How long `poll` waits for messages, ms."""
    topic_metadata_check_interval_millis: int
    """Between two looks for changed queues of a topic (`on_queues_changed`), ms."""
