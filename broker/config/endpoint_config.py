"""The settings of the gRPC port: the keys of the official proxy's rmq-proxy.json, which stand in broker.conf here.

A field is the official key in snake_case, its default the official one unless a comment gives the reason for another.
`pocketmq.grpc_endpoint` reads them once, at its start. A limit of the proxy that a key of the broker sets already
(maxMessageSize) has no field here.
"""

from typing import Literal

import msgspec


class EndpointConfig(msgspec.Struct, kw_only=True):
    """Official `ProxyConfig`, as far as LOCAL mode uses it."""

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
