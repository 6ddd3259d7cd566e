"""The settings of a client, with what the server decides: retries, limits, waiting times.

Everything else is returned as the client sent it. Mirrors `GrpcClientSettingsManager`.
"""

from typing import Final

from pocketmq.broker.config.addresses import host_and_port
from pocketmq.broker.config.broker_config import EndpointConfig
from pocketmq.protocol.bodies.group_config import (
    CustomizedRetryPolicy,
    ExponentialRetryPolicy,
    GroupRetryPolicy,
    SubscriptionGroupConfig,
)

from ..messages import (
    Address,
    AddressScheme,
    CustomizedBackoff,
    Endpoints,
    ExponentialBackoff,
    Metric,
    RetryPolicy,
    Settings,
    duration_of,
)

LITE_QUOTA: Final = 2000
_MOST_ATTEMPTS: Final = (1 << 31) - 1


def producer_settings(sent: Settings, config: EndpointConfig, max_body_size: int) -> Settings:
    """What a producer gets."""
    policy = RetryPolicy(
        max_attempts=config.grpc_client_producer_max_attempts,
        exponential_backoff=ExponentialBackoff(
            initial=duration_of(config.grpc_client_producer_backoff_initial_millis),
            max=duration_of(config.grpc_client_producer_backoff_max_millis),
            multiplier=config.grpc_client_producer_backoff_multiplier,
        ),
    )
    settings = _with(sent, policy, config)
    settings.publishing.max_body_size = max_body_size
    settings.publishing.validate_message_type = config.enable_topic_message_type_check
    return settings


def consumer_settings(sent: Settings, group: SubscriptionGroupConfig, config: EndpointConfig) -> Settings:
    """What a consumer of this group gets. The time of a long poll is the server's, also for simple consumers."""
    settings = _with(sent, backoff_of(group), config)
    subscription = settings.subscription
    subscription.fifo = group.consume_message_orderly
    subscription.receive_batch_size = config.grpc_client_consumer_long_polling_batch_size
    subscription.long_polling_timeout.CopyFrom(
        duration_of(config.grpc_client_consumer_max_long_polling_timeout_millis)
    )
    subscription.lite_subscription_quota = LITE_QUOTA
    subscription.max_lite_topic_size = config.max_lite_topic_size
    return settings


def _with(sent: Settings, policy: RetryPolicy, config: EndpointConfig) -> Settings:
    settings = Settings()
    settings.CopyFrom(sent)
    settings.backoff_policy.CopyFrom(policy)
    settings.metric.CopyFrom(metric_of(sent, config))
    return settings


def metric_of(sent: Settings, config: EndpointConfig) -> Metric:
    """Whether the client sends metrics, and where to. The official proxy calls every address an IPv4 address."""
    if config.metric_collector_mode == "off":
        return Metric()
    if config.metric_collector_mode == "proxy":
        return Metric(on=True, endpoints=sent.access_point)
    host, port = host_and_port(config.metric_collector_address)
    return Metric(
        on=True, endpoints=Endpoints(scheme=AddressScheme.IPv4, addresses=[Address(host=host, port=port)])
    )


def backoff_of(group: SubscriptionGroupConfig) -> RetryPolicy:
    """How often and how soon a message is delivered again."""
    attempts = min(group.retry_max_times + 1, _MOST_ATTEMPTS)
    policy = group.group_retry_policy or GroupRetryPolicy()
    if policy.type == "EXPONENTIAL":
        exponential = policy.exponential_retry_policy or ExponentialRetryPolicy()
        backoff = ExponentialBackoff(
            initial=duration_of(exponential.initial),
            max=duration_of(exponential.max),
            multiplier=exponential.multiplier,
        )
        return RetryPolicy(max_attempts=attempts, exponential_backoff=backoff)
    customized = policy.customized_retry_policy or CustomizedRetryPolicy()
    steps = CustomizedBackoff(next=[duration_of(ms) for ms in customized.next])
    return RetryPolicy(max_attempts=attempts, customized_backoff=steps)
