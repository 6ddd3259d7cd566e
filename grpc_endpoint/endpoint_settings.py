"""The settings of the gRPC port by names that say what they are; `settings_of` reads them from the broker's config.

A limit of 0 or less switches its check off where the official proxy does so: `max_message_size`,
`max_message_group_size`, `max_delay_time_ms`, `max_invisible_time_ms`, `max_transaction_recovery_seconds`.
"""

import msgspec
from pocketmq.broker.config.broker_config import BrokerConfig


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


def settings_of(broker_config: BrokerConfig) -> EndpointSettings:
    """As the keys of broker.conf say. The port is 8081 if no key names one."""
    config = broker_config.endpoint
    return EndpointSettings(
        port=EndpointSettings().port if config.grpc_server_port is None else config.grpc_server_port,
        strict=config.grpc_strict,
        shutdown_seconds=config.grpc_shutdown_time_seconds,
        max_inbound_message_size=config.grpc_max_inbound_message_size,
        max_concurrent_calls_per_connection=config.grpc_max_concurrent_calls_per_connection,
        client_idle_ms=config.grpc_client_idle_time_mills,
        max_message_size=broker_config.store.max_message_size,
        is_empty_body_refused=config.enable_message_body_empty_check,
        max_user_property_size=config.max_user_property_size,
        max_user_properties=config.user_property_max_num,
        max_message_group_size=config.max_message_group_size,
        max_lite_topic_size=config.max_lite_topic_size,
        default_invisible_time_ms=config.default_invisible_time_mills,
        min_invisible_time_ms_for_receive=config.min_invisible_time_mills_for_recv,
        max_invisible_time_ms=config.max_invisible_time_mills,
        max_delay_time_ms=config.max_delay_time_mills,
        max_transaction_recovery_seconds=config.max_transaction_recovery_second,
        is_message_type_checked=config.enable_topic_message_type_check,
        producer_max_attempts=config.grpc_client_producer_max_attempts,
        producer_backoff_initial_ms=config.grpc_client_producer_backoff_initial_millis,
        producer_backoff_max_ms=config.grpc_client_producer_backoff_max_millis,
        producer_backoff_multiplier=config.grpc_client_producer_backoff_multiplier,
        min_long_polling_ms=config.grpc_client_consumer_min_long_polling_timeout_millis,
        max_long_polling_ms=config.grpc_client_consumer_max_long_polling_timeout_millis,
        long_polling_batch_size=config.grpc_client_consumer_long_polling_batch_size,
        relay_timeout_seconds=config.grpc_proxy_relay_request_timeout_in_seconds,
        transaction_data_expire_ms=config.transaction_data_expire_millis,
        transaction_data_max=config.transaction_data_max_num,
        is_renewal_on=config.enable_proxy_auto_renew,
        max_renew_retries=config.max_renew_retry_times,
        renew_ahead_ms=config.renew_ahead_time_millis,
        renew_max_ms=config.renew_max_time_millis,
        renew_period_ms=config.renew_schedule_period_millis,
        invisible_time_ms_when_cleared=config.invisible_time_millis_when_clear,
        is_batch_ack_on=config.enable_batch_ack,
        uses_delay_level=config.use_delay_level,
    )
