"""The settings of the broker: the official keys it honours, as typed values.

A field is the official key in snake_case (`brokerIP1` is `broker_ip1`); its default is the official one unless a
comment gives the reason for another. Units are the official ones, milliseconds unless the comment names another.
Settings of the store are in `BrokerConfig.store`, those of the gRPC port in `BrokerConfig.endpoint`. Keys we know but
do not honour are in `official_keys.tsv`; `keys.py` maps keys to fields, `loading.py` reads broker.conf.
"""

from pathlib import Path
from typing import Final, Literal

import msgspec
from pocketmq.store import StoreConfig

DEFAULT_STORE_DIR: Final = "pocketmq-store"
MASTER_ID: Final = 0
"""The broker id of a master; a slave's is greater."""


class EndpointConfig(msgspec.Struct, kw_only=True):
    """Official `ProxyConfig`, as far as LOCAL mode uses it, with its keys in broker.conf. Read once, at the start.

    A limit of the proxy that a key of the broker sets already (maxMessageSize) has no field.
    """

    grpc_server_port: int | None = None
    """None: there is no such port; 0 picks a free one. Official: 8081, but there the proxy is a program of its own."""
    grpc_strict: bool = False
    """Our own key: behave exactly as the official proxy, also where it is a trap for tests."""
    grpc_shutdown_time_seconds: int = 2
    """Official: 30. Streams end at once, so only a call that a fault keeps, or a client that does not read, is waited
    for; no test shall end half a minute later for that."""
    grpc_max_inbound_message_size: int = 136_314_880
    grpc_max_concurrent_calls_per_connection: int = 2_147_483_647
    grpc_client_idle_time_mills: int = 120_000
    tls_key_path: str = ""
    tls_key_password: str = ""
    tls_cert_path: str = ""
    tls_test_mode_enable: bool = True
    """tlsTestModeEnable; tls.test.mode.enable is that of the other ports."""

    # -- sends
    enable_message_body_empty_check: bool = True
    max_user_property_size: int = 16_384
    user_property_max_num: int = 128
    max_message_group_size: int = 64
    max_lite_topic_size: int = 64
    max_delay_time_mills: int = 86_400_000
    max_transaction_recovery_second: int = 3600
    enable_topic_message_type_check: bool = True
    use_delay_level: bool = False
    transaction_data_expire_millis: int = 30_000
    transaction_data_max_num: int = 15

    # -- settings that clients get
    grpc_client_producer_max_attempts: int = 3
    grpc_client_producer_backoff_initial_millis: int = 10
    grpc_client_producer_backoff_max_millis: int = 1000
    grpc_client_producer_backoff_multiplier: int = 2
    grpc_client_consumer_min_long_polling_timeout_millis: int = 5000
    grpc_client_consumer_max_long_polling_timeout_millis: int = 20_000
    grpc_client_consumer_long_polling_batch_size: int = 32
    grpc_proxy_relay_request_timeout_in_seconds: int = 5
    metric_collector_mode: Literal["off", "on", "proxy"] = "off"
    metric_collector_address: str = ""

    # -- receives
    default_invisible_time_mills: int = 60_000
    min_invisible_time_mills_for_recv: int = 10_000
    max_invisible_time_mills: int = 43_200_000
    enable_proxy_auto_renew: bool = True
    max_renew_retry_times: int = 3
    renew_ahead_time_millis: int = 10_000
    renew_max_time_millis: int = 10_800_000
    renew_schedule_period_millis: int = 5000
    invisible_time_millis_when_clear: int = 1000


class BrokerConfig(msgspec.Struct, kw_only=True):
    """Official `BrokerConfig` and the server half of `NettyServerConfig`. Only the event loop's thread touches it.

    A value is read on every use, except for keys with the trait `restart` in `official_keys.tsv`.
    """

    store: StoreConfig = msgspec.field(
        default_factory=lambda: StoreConfig(store_path_root_dir=DEFAULT_STORE_DIR)
    )

    endpoint: EndpointConfig = msgspec.field(default_factory=EndpointConfig)
    """Settings of the gRPC port."""

    # -- identity and addresses
    broker_cluster_name: str = "DefaultCluster"
    broker_name: str = "broker-a"
    """Official: the name of the host. Ours is fixed: a store keeps its name when it moves to another machine."""
    broker_id: int = 0
    broker_ip1: str = "127.0.0.1"
    """Clients connect to it. Official: an address of the machine. Ours follows the listening address."""
    broker_ip2: str = "127.0.0.1"
    """Slaves connect to it."""
    listen_port: int = 10911
    bind_address: str = "127.0.0.1"
    """Official: 0.0.0.0. A server started on a laptop for a trial should not be open to the network."""
    namesrv_addr: str = ""
    """`host:port;host:port`."""
    broker_permission: int = 6
    """4 read, 2 write."""
    region_id: str = "DefaultRegion"

    # -- registration at name servers
    register_name_server_period: int = 30_000
    """Values outside 10 to 60 s are raised or lowered to these limits."""
    register_broker_timeout_mills: int = 24_000
    force_register: bool = True
    enable_slave_acting_master: bool = False
    broker_heartbeat_interval: int = 1000
    broker_not_active_timeout_millis: int = 10_000
    compatible_with_old_name_srv: bool = True

    # -- topics and groups
    auto_create_topic_enable: bool = True
    default_topic_queue_nums: int = 8
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    trace_topic_enable: bool = False
    msg_trace_topic_name: str = "RMQ_SYS_TRACE_TOPIC"
    auto_create_subscription_group: bool = True
    enable_create_sys_group: bool = True
    validate_system_topic_when_update_topic: bool = True
    clear_retry_topic_when_delete_topic: bool = True
    enable_mixed_message_type: bool = False
    revive_queue_num: int = 8

    # -- sending
    trace_on: bool = True
    start_accept_send_request_time_stamp: int = 0
    """Sends before this time (ms since 1970) are refused."""
    send_thread_pool_queue_capacity: int = 10_000
    """Official: the length of the send pool's queue. Here: how many stored sends may wait for disk or slaves."""
    ack_thread_pool_queue_capacity: int = 100_000
    """Likewise, for pops, acks and changed invisible times."""

    # -- transactions, request-reply, timed messages
    reject_transaction_message: bool = False
    transaction_time_out: int = 6000
    """Age in ms of a half message from which its producer is asked about it."""
    transaction_check_interval: int = 30_000
    transaction_check_max: int = 15
    transaction_op_batch_interval: int = 3000
    transaction_op_msg_max_size: int = 4096
    transaction_metric_flush_interval: int = 10_000
    store_reply_message_enable: bool = True
    recall_message_enable: bool = False
    allow_recall_when_broker_not_writeable: bool = True

    # -- pulling
    long_polling_enable: bool = True
    short_polling_time_mills: int = 1000
    pull_thread_pool_queue_capacity: int = 100_000
    """Official: the length of the pull pool's queue. Here: how many pulls may be suspended at once."""
    enable_property_filter: bool = False
    """Whether SQL92 filters are allowed."""
    max_error_rate_of_bloom_filter: int = 20
    expect_consumer_num_use_filter: int = 32
    filter_data_clean_time_span: int = 86_400_000
    slave_read_enable: bool = False
    lite_pull_message_enable: bool = True
    reject_pull_consumer_enable: bool = False
    enable_broadcast_offset_store: bool = True
    broadcast_offset_expire_second: int = 120
    broadcast_offset_expire_max_second: int = 300

    # -- popping (5.x)
    enable_retry_topic_v2: bool = False
    """Retry topics of pop are named %RETRY%group+topic instead of %RETRY%group_topic."""
    retrieve_message_from_pop_retry_topic_v1: bool = True
    use_separate_retry_queue: bool = False
    """Retry topics of pop have as many queues as the topic, and a message keeps its queue."""
    pop_response_return_actual_retry_topic: bool = False
    pop_from_retry_probability: int = 20
    """Per cent of pops that read the retry topic first."""
    pop_from_retry_probability_for_priority: int = 0
    priority_order_asc: bool = True
    init_pop_offset_by_check_msg_in_mem: bool = True
    pop_polling_size: int = 1024
    max_pop_polling_size: int = 100_000
    pop_long_polling_force_notify_interval: int = 800
    """This many messages wake a waiting pop, even if its filter matches none of them."""
    enable_notify_after_pop_order_lock_release: bool = True
    use_message_filter_for_notification: bool = True
    max_message_filter_num_for_notification: int = 64
    revive_interval: int = 1000
    default_message_request_mode: Literal["PULL", "POP"] = "PULL"
    default_pop_share_queue_num: int = -1
    server_load_balancer_enable: bool = True

    # -- groups, offsets
    notify_consumer_ids_changed_enable: bool = True
    real_time_notify_consumer_change: bool = True
    use_server_side_reset_offset: bool = True
    flush_consumer_offset_interval: int = 5000
    channel_expired_timeout: int = 120_000
    """A client without a heartbeat for longer is removed."""

    # -- access control (`access/access_control.py`)
    acl_enable: bool = False
    """The access keys of the 4.9 line."""
    rocketmq_home: str = ""
    """Directory of conf/plain_acl.yml; empty: the directory of the store."""
    authentication_enabled: bool = False
    authentication_metadata_provider: str = ""
    """Official: a Java class. Here: any name turns the table of users on."""
    authentication_whitelist: str = ""
    """Request codes that need no signature, joined by commas."""
    authorization_enabled: bool = False
    authorization_whitelist: str = ""
    init_authentication_user: str = ""
    inner_client_authentication_credentials: str = ""

    # -- encryption (`network/tls.py`)
    use_tls: bool = False
    tls_enable: bool = False
    tls_config_file: str = "/etc/rocketmq/tls.properties"
    tls_test_mode_enable: bool = True
    tls_server_mode: Literal["permissive", "enforcing", "disabled"] = "permissive"
    tls_server_need_client_auth: Literal["none", "optional", "require"] = "none"
    tls_server_key_path: str = ""
    tls_server_key_password: str = ""
    tls_server_cert_path: str = ""
    tls_server_auth_client: bool = False
    tls_server_trust_cert_path: str = ""
    tls_client_key_path: str = ""
    tls_client_key_password: str = ""
    tls_client_cert_path: str = ""
    tls_client_auth_server: bool = False
    tls_client_trust_cert_path: str = ""

    # -- limits of a connection
    server_channel_max_idle_time_seconds: int = 120
    write_buffer_high_water_mark: int = 4_194_304
    """Bytes that a peer may leave unread before we stop reading from it. Official: 65536, less than a full pull reply.
    Ours is enough for several."""
    max_tasks_per_connection: int = 4096
    """Waiting requests of one connection; the next is answered SYSTEM_BUSY. Clients have at most one for a queue."""
    max_calls_per_connection: int = 4096
    """Our unanswered requests on one connection."""
    is_fast_port_required: bool = False
    """An official broker does not start if listenPort - 2 is in use; few clients use that port."""

    emulate: Literal[4, 5] = 5
    """The official line (4.9 or 5.5) to follow where the two differ."""

    new_groups_start_at: Literal["official", "first", "last"] = "official"
    """Where a group without a stored offset starts; our own key. Other values than `official` take away the race in
    which a message is skipped that was sent while the consumer asked for the end of the queue."""
    advertise: str = ""
    """`host:port` that routes and message ids name instead of brokerIP1 and the bound port: behind NAT, in a container.
    Our own key."""

    config_black_list: str = "configBlackList;brokerConfigPath"
    """Keys that cannot be changed over the wire."""

    # -- not settings, but kept with them
    not_applied: dict[str, str] = msgspec.field(default_factory=dict)
    """Official keys that were set but are not honoured, and changes over the wire that wait for a restart."""
    conf_file: Path | None = None
    """Changes over the wire are written to this file."""

    def __post_init__(self) -> None:
        self.store.emulate = self.emulate

    @property
    def is_5(self) -> bool:
        """Whether the broker behaves like the official 5.5 line; otherwise like 4.9."""
        return self.emulate == 5

    @property
    def is_slave(self) -> bool:
        """Whether this broker copies a master instead of accepting messages."""
        return self.store.broker_role == "SLAVE"
