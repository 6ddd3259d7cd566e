"""The settings of a client, with what the server decides: retries, limits, waiting times.

Everything else is returned as the client sent it. Mirrors `GrpcClientSettingsManager`.
"""

from typing import Final

import msgspec
from pocketmq.broker.config.addresses import host_and_port
from pocketmq.protocol.bodies.group_config import (
    CustomizedRetryPolicy,
    ExponentialRetryPolicy,
    GroupRetryPolicy,
    SubscriptionGroupConfig,
)

from ..endpoint_settings import EndpointSettings
from ..messages import (
    Address,
    AddressScheme,
    CustomizedBackoff,
    Duration,
    Endpoints,
    ExponentialBackoff,
    Metric,
    Publishing,
    RetryPolicy,
    Settings,
    Subscription,
)

LITE_QUOTA: Final = 2000


def producer_settings(sent: Settings, publishing: Publishing, config: EndpointSettings) -> Settings:
    """What a producer gets."""
    return msgspec.structs.replace(
        sent,
        backoff_policy=RetryPolicy(
            max_attempts=config.producer_max_attempts,
            exponential_backoff=ExponentialBackoff(
                initial=Duration.of_ms(config.producer_backoff_initial_ms),
                max=Duration.of_ms(config.producer_backoff_max_ms),
                multiplier=float(config.producer_backoff_multiplier),
            ),
        ),
        publishing=msgspec.structs.replace(
            publishing,
            max_body_size=config.max_message_size,
            validate_message_type=config.is_message_type_checked,
        ),
        metric=metric_of(sent, config),
    )


def consumer_settings(
    sent: Settings, subscription: Subscription, group: SubscriptionGroupConfig, config: EndpointSettings
) -> Settings:
    """What a consumer of this group gets. The time of a long poll is the server's, also for simple consumers."""
    return msgspec.structs.replace(
        sent,
        backoff_policy=backoff_of(group),
        subscription=msgspec.structs.replace(
            subscription,
            fifo=group.consume_message_orderly,
            receive_batch_size=config.long_polling_batch_size,
            long_polling_timeout=Duration.of_ms(config.max_long_polling_ms),
            lite_subscription_quota=LITE_QUOTA,
            max_lite_topic_size=config.max_lite_topic_size,
        ),
        metric=metric_of(sent, config),
    )


def metric_of(sent: Settings, config: EndpointSettings) -> Metric:
    """Whether the client sends metrics, and where to. The official proxy calls every address an IPv4 address."""
    if config.metric_collector_mode == "off":
        return Metric()
    if config.metric_collector_mode == "proxy":
        return Metric(on=True, endpoints=sent.access_point or Endpoints())
    host, port = host_and_port(config.metric_collector_address)
    return Metric(
        on=True, endpoints=Endpoints(scheme=AddressScheme.IPv4, addresses=[Address(host=host, port=port)])
    )


def backoff_of(group: SubscriptionGroupConfig) -> RetryPolicy:
    """How often and how soon a message is delivered again."""
    attempts = group.retry_max_times + 1
    policy = group.group_retry_policy or GroupRetryPolicy()
    if policy.type == "EXPONENTIAL":
        exponential = policy.exponential_retry_policy or ExponentialRetryPolicy()
        return RetryPolicy(
            max_attempts=attempts,
            exponential_backoff=ExponentialBackoff(
                initial=Duration.of_ms(exponential.initial),
                max=Duration.of_ms(exponential.max),
                multiplier=float(exponential.multiplier),
            ),
        )
    customized = policy.customized_retry_policy or CustomizedRetryPolicy()
    return RetryPolicy(
        max_attempts=attempts,
        customized_backoff=CustomizedBackoff(next=[Duration.of_ms(ms) for ms in customized.next]),
    )
