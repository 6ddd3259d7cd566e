"""What the requests are made of: topics, queues, messages, settings. Names and numbers are those of the official files.

Timestamp,         points in time and spans of it: the well-known types of `google.protobuf`
Duration
Resource           a topic or a group, by name
Endpoints          where a server is
MessageQueue       a queue of a topic on a broker; the id -1 is any queue
Message            as clients send and receive it
Settings           what a client says about itself, and what the server answers
"""

from typing import Final

from . import proto
from .enumerations import (
    AddressScheme,
    ClientType,
    Code,
    DigestType,
    Encoding,
    FilterType,
    Language,
    MessageType,
    Permission,
)

PACKAGE: Final = "apache.rocketmq.v2"


class Timestamp(proto.Message):
    """A point in time since 1970."""

    seconds = proto.int64(1)
    nanos = proto.int32(2)


proto.build("google/protobuf/timestamp.proto", "google.protobuf", globals())


class Duration(proto.Message):
    """A span of time. Both fields have the same sign."""

    seconds = proto.int64(1)
    nanos = proto.int32(2)


proto.build("google/protobuf/duration.proto", "google.protobuf", globals())


def timestamp_of(ms: int) -> Timestamp:
    """Of ms since 1970."""
    return Timestamp(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)


def duration_of(ms: int) -> Duration:
    sign = -1 if ms < 0 else 1
    return Duration(seconds=sign * (abs(ms) // 1000), nanos=sign * (abs(ms) % 1000) * 1_000_000)


def ms_of(time: Timestamp | Duration) -> int:
    """Cut to ms: a span towards zero, a point in time downwards, as their parts are."""
    return time.seconds * 1000 + int(time.nanos / 1_000_000)


class Status(proto.Message):
    code = proto.enum(Code, 1)
    message = proto.string(2)


class Resource(proto.Message):
    resource_namespace = proto.string(1)
    name = proto.string(2)


class FilterExpression(proto.Message):
    type = proto.enum(FilterType, 1)
    expression = proto.string(2)


class SubscriptionEntry(proto.Message):
    topic = proto.one(Resource, 1)
    expression = proto.one(FilterExpression, 2)


class Address(proto.Message):
    host = proto.string(1)
    port = proto.int32(2)


class Endpoints(proto.Message):
    scheme = proto.enum(AddressScheme, 1)
    addresses = proto.repeated(Address, 2)


class Broker(proto.Message):
    name = proto.string(1)
    id = proto.int32(2)
    endpoints = proto.one(Endpoints, 3)


class MessageQueue(proto.Message):
    topic = proto.one(Resource, 1)
    id = proto.int32(2)
    permission = proto.enum(Permission, 3)
    broker = proto.one(Broker, 4)
    accept_message_types = proto.repeated(MessageType, 5)


class Assignment(proto.Message):
    message_queue = proto.one(MessageQueue, 1)


class Digest(proto.Message):
    type = proto.enum(DigestType, 1)
    checksum = proto.string(2)


class DeadLetterQueue(proto.Message):
    topic = proto.string(1)
    message_id = proto.string(2)


class SystemProperties(proto.Message):
    tag = proto.string(1, optional=True)
    keys = proto.repeated(str, 2)
    message_id = proto.string(3)
    body_digest = proto.one(Digest, 4)
    body_encoding = proto.enum(Encoding, 5)
    message_type = proto.enum(MessageType, 6)
    born_timestamp = proto.one(Timestamp, 7)
    born_host = proto.string(8)
    store_timestamp = proto.one(Timestamp, 9)
    store_host = proto.string(10)
    delivery_timestamp = proto.one(Timestamp, 11)
    receipt_handle = proto.string(12, optional=True)
    queue_id = proto.int32(13)
    queue_offset = proto.int64(14, optional=True)
    invisible_duration = proto.one(Duration, 15)
    delivery_attempt = proto.int32(16, optional=True)
    message_group = proto.string(17, optional=True)
    trace_context = proto.string(18, optional=True)
    orphaned_transaction_recovery_duration = proto.one(Duration, 19)
    dead_letter_queue = proto.one(DeadLetterQueue, 20)
    lite_topic = proto.string(21, optional=True)
    priority = proto.int32(22, optional=True)


class Message(proto.Message):
    topic = proto.one(Resource, 1)
    user_properties = proto.texts_by_name(2)
    system_properties = proto.one(SystemProperties, 3)
    body = proto.data(4)


class ExponentialBackoff(proto.Message):
    initial = proto.one(Duration, 1)
    max = proto.one(Duration, 2)
    multiplier = proto.float32(3)


class CustomizedBackoff(proto.Message):
    next = proto.repeated(Duration, 1)


class RetryPolicy(proto.Message):
    max_attempts = proto.int32(1)
    exponential_backoff = proto.one(ExponentialBackoff, 2, oneof="strategy")
    customized_backoff = proto.one(CustomizedBackoff, 3, oneof="strategy")


class UA(proto.Message):
    """The program that asks."""

    language = proto.enum(Language, 1)
    version = proto.string(2)
    platform = proto.string(3)
    hostname = proto.string(4)


class Metric(proto.Message):
    on = proto.boolean(1)
    endpoints = proto.one(Endpoints, 2)


class Publishing(proto.Message):
    topics = proto.repeated(Resource, 1)
    max_body_size = proto.int32(2)
    validate_message_type = proto.boolean(3)


class Subscription(proto.Message):
    group = proto.one(Resource, 1)
    subscriptions = proto.repeated(SubscriptionEntry, 2)
    fifo = proto.boolean(3, optional=True)
    receive_batch_size = proto.int32(4, optional=True)
    long_polling_timeout = proto.one(Duration, 5)
    lite_subscription_quota = proto.int32(6, optional=True)
    max_lite_topic_size = proto.int32(7, optional=True)


class Settings(proto.Message):
    client_type = proto.enum(ClientType, 1, optional=True)
    access_point = proto.one(Endpoints, 2)
    backoff_policy = proto.one(RetryPolicy, 3)
    request_timeout = proto.one(Duration, 4)
    publishing = proto.one(Publishing, 5, oneof="pub_sub")
    subscription = proto.one(Subscription, 6, oneof="pub_sub")
    user_agent = proto.one(UA, 7)
    metric = proto.one(Metric, 8)
    client_properties = proto.texts_by_name(9)


proto.build("apache/rocketmq/v2/definition.proto", PACKAGE, globals())

OK: Final = Status(code=Code.OK, message="OK")
"""Shared: copied where it is put into a reply."""
