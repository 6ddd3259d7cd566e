"""The settings of the gRPC port by names that say what they are; `settings_of` reads them from the broker's config.

A limit of 0 or less switches its check off where the official proxy does so: `max_message_size`,
`max_message_group_size`, `max_delay_time_ms`, `max_invisible_time_ms`, `max_transaction_recovery_seconds`.
"""

from typing import Final, Literal

import msgspec
from pocketmq.broker.config.broker_config import BrokerConfig

OFFICIAL_PORT: Final = 8081


class EndpointSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Read once, at the start. The defaults are those of the keys."""

    port: int
    """grpcServerPort; 0 picks a free one."""
    strict: bool
    """grpcStrict: exactly as the official proxy, also where it is a trap."""
    shutdown_seconds: int
    max_inbound_message_size: int
    max_concurrent_calls_per_connection: int
    client_idle_ms: int
    max_message_size: int
    is_empty_body_refused: bool
    """enableMessageBodyEmptyCheck"""
    max_user_property_size: int
    max_user_properties: int
    """userPropertyMaxNum"""
    max_message_group_size: int
    max_lite_topic_size: int
    default_invisible_time_ms: int
    min_invisible_time_ms_for_receive: int
    max_invisible_time_ms: int
    max_delay_time_ms: int
    max_transaction_recovery_seconds: int
    is_message_type_checked: bool
    """enableTopicMessageTypeCheck"""
    producer_max_attempts: int
    producer_backoff_initial_ms: int
    producer_backoff_max_ms: int
    producer_backoff_multiplier: int
    min_long_polling_ms: int
    max_long_polling_ms: int
    long_polling_batch_size: int
    metric_collector_mode: Literal["off", "on", "proxy"]
    metric_collector_address: str
    """`host:port`; used with the mode `on` only."""
    relay_timeout_seconds: int
    """grpcProxyRelayRequestTimeoutInSeconds"""
    transaction_data_expire_ms: int
    transaction_data_max: int
    is_renewal_on: bool
    """enableProxyAutoRenew"""
    max_renew_retries: int
    renew_ahead_ms: int
    renew_max_ms: int
    renew_period_ms: int
    invisible_time_ms_when_cleared: int
    uses_delay_level: bool
    """useDelayLevel"""


def settings_of(broker_config: BrokerConfig) -> EndpointSettings:
    """As the keys of broker.conf say. The port is 8081 if no key names one."""
    config = broker_config.endpoint
    return EndpointSettings(
        port=OFFICIAL_PORT if config.grpc_server_port is None else config.grpc_server_port,
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
        metric_collector_mode=config.metric_collector_mode,
        metric_collector_address=config.metric_collector_address,
        relay_timeout_seconds=config.grpc_proxy_relay_request_timeout_in_seconds,
        transaction_data_expire_ms=config.transaction_data_expire_millis,
        transaction_data_max=config.transaction_data_max_num,
        is_renewal_on=config.enable_proxy_auto_renew,
        max_renew_retries=config.max_renew_retry_times,
        renew_ahead_ms=config.renew_ahead_time_millis,
        renew_max_ms=config.renew_max_time_millis,
        renew_period_ms=config.renew_schedule_period_millis,
        invisible_time_ms_when_cleared=config.invisible_time_millis_when_clear,
        uses_delay_level=config.use_delay_level,
    )
