"""The keys of broker.conf for the gRPC port: names and defaults as in the official rmq-proxy.json.

A limit of 0 or less switches its check off where the official proxy does so: `max_message_size`,
`max_message_group_size`, `max_delay_time_ms`, `max_invisible_time_ms`, `max_transaction_recovery_seconds`.
"""

import msgspec


class EndpointSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Read once, at the start."""

    port: int = 8081
    """grpcServerPort; 0 picks a free one."""
    strict: bool = False
    """grpcStrict: exactly as the official proxy, also where it is a trap."""
    shutdown_seconds: int = 30
    max_inbound_message_size: int = 136_314_880
    max_concurrent_calls_per_connection: int = 2_147_483_647
    client_idle_ms: int = 120_000
    max_message_size: int = 4_194_304
    is_empty_body_refused: bool = True
    """enableMessageBodyEmptyCheck"""
    max_user_property_size: int = 16_384
    max_user_properties: int = 128
    """userPropertyMaxNum"""
    max_message_group_size: int = 64
    max_lite_topic_size: int = 64
    default_invisible_time_ms: int = 60_000
    min_invisible_time_ms_for_receive: int = 10_000
    max_invisible_time_ms: int = 43_200_000
    max_delay_time_ms: int = 86_400_000
    max_transaction_recovery_seconds: int = 3_600
    is_message_type_checked: bool = True
    """enableTopicMessageTypeCheck"""
    producer_max_attempts: int = 3
    producer_backoff_initial_ms: int = 10
    producer_backoff_max_ms: int = 1_000
    producer_backoff_multiplier: int = 2
    min_long_polling_ms: int = 5_000
    max_long_polling_ms: int = 20_000
    long_polling_batch_size: int = 32
    relay_timeout_seconds: int = 5
    """grpcProxyRelayRequestTimeoutInSeconds"""
    transaction_data_expire_ms: int = 30_000
    transaction_data_max: int = 15
    is_renewal_on: bool = True
    """enableProxyAutoRenew"""
    max_renew_retries: int = 3
    renew_ahead_ms: int = 10_000
    renew_max_ms: int = 10_800_000
    renew_period_ms: int = 5_000
    invisible_time_ms_when_cleared: int = 1_000
    is_batch_ack_on: bool = False
    """enableBatchAck"""
    uses_delay_level: bool = False
    """useDelayLevel"""
