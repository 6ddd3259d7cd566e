"""`Settings`: what a client says about itself on its telemetry stream, and what the server answers."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from ..wire.declare import Float, Int32, Message, OneOf
from .enumerations import ClientType, Language
from .resources import Endpoints, Resource, SubscriptionEntry
from .times import Duration


class ExponentialBackoff(Message, frozen=True, kw_only=True):
    initial: Annotated[Duration, 1] = Duration()
    max: Annotated[Duration, 2] = Duration()
    multiplier: Annotated[Float, 3] = 0.0


class CustomizedBackoff(Message, frozen=True, kw_only=True):
    next: Annotated[Sequence[Duration], 1] = ()


class RetryPolicy(Message, frozen=True, kw_only=True):
    max_attempts: Annotated[Int32, 1] = 0
    exponential_backoff: Annotated[ExponentialBackoff | None, 2, OneOf("strategy")] = None
    customized_backoff: Annotated[CustomizedBackoff | None, 3, OneOf("strategy")] = None


class UA(Message, frozen=True, kw_only=True):
    """The program that asks."""

    language: Annotated[Language, 1] = Language.LANGUAGE_UNSPECIFIED
    version: Annotated[str, 2] = ""
    platform: Annotated[str, 3] = ""
    hostname: Annotated[str, 4] = ""


class Metric(Message, frozen=True, kw_only=True):
    on: Annotated[bool, 1] = False
    endpoints: Annotated[Endpoints | None, 2] = None


class Publishing(Message, frozen=True, kw_only=True):
    topics: Annotated[Sequence[Resource], 1] = ()
    max_body_size: Annotated[Int32, 2] = 0
    validate_message_type: Annotated[bool, 3] = False


class Subscription(Message, frozen=True, kw_only=True):
    group: Annotated[Resource | None, 1] = None
    subscriptions: Annotated[Sequence[SubscriptionEntry], 2] = ()
    fifo: Annotated[bool | None, 3] = None
    receive_batch_size: Annotated[Int32 | None, 4] = None
    long_polling_timeout: Annotated[Duration | None, 5] = None
    lite_subscription_quota: Annotated[Int32 | None, 6] = None
    max_lite_topic_size: Annotated[Int32 | None, 7] = None


class Settings(Message, frozen=True, kw_only=True):
    client_type: Annotated[ClientType | None, 1] = None
    access_point: Annotated[Endpoints | None, 2] = None
    backoff_policy: Annotated[RetryPolicy | None, 3] = None
    request_timeout: Annotated[Duration | None, 4] = None
    publishing: Annotated[Publishing | None, 5, OneOf("pub_sub")] = None
    subscription: Annotated[Subscription | None, 6, OneOf("pub_sub")] = None
    user_agent: Annotated[UA, 7] = UA()
    metric: Annotated[Metric, 8] = Metric()
    client_properties: Annotated[Mapping[str, str], 9] = msgspec.field(default_factory=dict)
