"""The settings of push consumers and lite pull consumers, with defaults and limits.

Where the official setter ignores a value (an auto-commit interval below one second) InvalidSetting is raised.
4.9 clients have no pop. Official classes: DefaultMQPushConsumer, DefaultLitePullConsumer.
"""

import time
from typing import Final

from msgspec import field
from msgspec.structs import force_setattr
from pocketmq.protocol.bodies.client import ConsumeFromWhere, ExpressionError, MessageModel, tag_subscription

from ..errors import ClientError
from .allocation import AllocateMessageQueueAveragely, AllocateMessageQueueStrategy
from .checks import AT_LEAST_0, AT_LEAST_1, LONG_MAX, OFF, check_ranges, check_topic_name, invalid_setting
from .client_settings import ClientSettings
from .timestamps import CONSUME_TIMESTAMP_AGE_MS, format_timestamp, parse_timestamp

_PUSH_RANGES: Final = {
    "consume_thread_min": (1, 1000),
    "consume_thread_max": (1, 1000),
    "consume_concurrently_max_span": (1, 65535),
    "pull_threshold_for_queue": (1, 65535),
    "pull_threshold_size_for_queue": (1, 1024),
    "pull_interval": (0, 65535),
    "consume_message_batch_max_size": (1, 1024),
    "pull_batch_size": (1, 1024),
    "pop_invisible_time": (5000, 300000),
    "pop_batch_nums": (1, 32),
    "pop_threshold_for_queue": AT_LEAST_1,
    "pull_batch_size_in_bytes": AT_LEAST_1,
    "consume_timeout": AT_LEAST_1,
    "await_termination_millis_when_shutdown": (0, LONG_MAX),
}
_PUSH_RANGES_OR_OFF: Final = {
    "pull_threshold_for_topic": (1, 6553500),
    "pull_threshold_size_for_topic": (1, 102400),
    "max_reconsume_times": AT_LEAST_0,
    "suspend_current_queue_time_millis": AT_LEAST_0,
}
_LITE_RANGES: Final = {
    "broker_suspend_max_time_millis": AT_LEAST_1,
    "auto_commit_interval_millis": (1000, LONG_MAX),
    "pull_batch_size": AT_LEAST_1,
    "pull_threshold_for_all": (1, LONG_MAX),
    "consume_max_span": AT_LEAST_1,
    "pull_threshold_for_queue": AT_LEAST_1,
    "pull_threshold_size_for_queue": AT_LEAST_1,
    "poll_timeout_millis": (0, LONG_MAX),
    "topic_metadata_check_interval_millis": AT_LEAST_1,
}
_LITE_STARTS: Final = (
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
)


class ConsumerSettings(ClientSettings, frozen=True, kw_only=True):
    """What push and lite pull consumers share."""

    message_model: MessageModel = MessageModel.CLUSTERING
    """CLUSTERING shares the messages among the members of a group, BROADCASTING gives all to each."""
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    """Where a group without offsets starts; `start` of the consumer is shorter."""
    consume_timestamp: str = ""
    """`yyyyMMddHHmmss`, local time; empty takes 30 minutes before now."""
    allocate_message_queue_strategy: AllocateMessageQueueStrategy = field(
        default_factory=AllocateMessageQueueAveragely
    )
    """Which member reads which queues."""
    pull_threshold_for_queue: int = 1_000
    """Messages of a queue in memory before its pulling pauses."""
    pull_threshold_size_for_queue: int = 100
    """MiB of a queue in memory before its pulling pauses."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.message_model is MessageModel.LITE_SELECTIVE:
            raise invalid_setting(
                "message_model", self.message_model.value, "expected CLUSTERING or BROADCASTING"
            )
        strategy = self.allocate_message_queue_strategy
        if not callable(getattr(strategy, "allocate", None)) or not isinstance(
            getattr(strategy, "name", None), str
        ):
            raise invalid_setting("allocate_message_queue_strategy", strategy, "needs `name` and `allocate`")
        if not self.consume_timestamp:
            force_setattr(
                self,
                "consume_timestamp",
                format_timestamp(round(time.time() * 1000) - CONSUME_TIMESTAMP_AGE_MS),
            )
        try:
            parse_timestamp(self.consume_timestamp)
        except ClientError as error:
            raise invalid_setting("consume_timestamp", self.consume_timestamp, str(error)) from error


class PushConsumerSettings(ConsumerSettings, frozen=True, kw_only=True):
    """Official DefaultMQPushConsumer."""

    subscription: dict[str, str] = field(default_factory=dict)
    """Topic to tag expression."""
    consume_thread_min: int = 20
    """Messages in listeners at once; the official pool never grows beyond it either."""
    consume_thread_max: int = 20
    """Threads for listeners that are plain functions."""
    consume_concurrently_max_span: int = 2_000
    """Pulling of a queue pauses while its first and last message in memory are so many offsets apart."""
    pull_threshold_for_topic: int = OFF
    """The same for all queues held of a topic; -1: no limit."""
    pull_threshold_size_for_topic: int = OFF
    """The same in MiB; -1: no limit."""
    pull_interval: int = 0
    """Pause between two pulls of a queue, ms."""
    pull_batch_size: int = 32
    """Messages that one pull asks for."""
    pull_batch_size_in_bytes: int = 256 * 1024
    """Bytes that one pull asks for (5.x brokers)."""
    consume_message_batch_max_size: int = 1
    """Messages that a batch listener gets at once."""
    post_subscription_when_pull: bool = False
    """Each pull carries the expression, instead of the heartbeat alone."""
    max_reconsume_times: int = OFF
    """-1: 16 for a concurrent listener, no limit for an ordered one."""
    suspend_current_queue_time_millis: int = 1_000
    """Pause of an ordered queue after SUSPEND_CURRENT_QUEUE_A_MOMENT, ms."""
    consume_timeout: int = 15
    """Minutes after which a message that its listener still holds is sent back."""
    pop_invisible_time: int = 60_000
    """How long popped messages are hidden from other members, ms."""
    pop_batch_nums: int = 32
    """Messages that one pop asks for."""
    pop_threshold_for_queue: int = 96
    """Popped messages in memory before popping pauses."""
    await_termination_millis_when_shutdown: int = 5_000
    """How long `shutdown` lets running listeners end before it cancels them, ms; 0 is the official default."""
    client_rebalance: bool = True
    """False: the broker assigns, and may choose pop."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, _PUSH_RANGES)
        check_ranges(self, _PUSH_RANGES_OR_OFF, off=True)
        if self.consume_thread_min > self.consume_thread_max:
            raise invalid_setting(
                "consume_thread_min",
                self.consume_thread_min,
                f"consumeThreadMin ({self.consume_thread_min}) is larger than consumeThreadMax "
                f"({self.consume_thread_max})",
            )
        for topic, expression in self.subscription.items():
            check_topic_name("subscription", topic)
            try:
                tag_subscription(topic, expression, sub_version=0)
            except ExpressionError as error:
                raise invalid_setting(
                    "subscription", self.subscription, f"subscription exception: {error}"
                ) from error


class LitePullConsumerSettings(ConsumerSettings, frozen=True, kw_only=True):
    """Official DefaultLitePullConsumer."""

    enable_stream_request_type: bool = True
    """Requests carry the mark of a stream, and the client id ends with `@STREAM`."""
    broker_suspend_max_time_millis: int = 20_000
    """How long the broker may hold a pull, ms."""
    consumer_timeout_millis_when_suspend: int = 30_000
    """For the answer to such a pull, ms; more than that."""
    auto_commit: bool = True
    """Offsets of polled messages are committed in the background."""
    auto_commit_interval_millis: int = 5_000
    """Between two of these commits, ms."""
    pull_batch_size: int = 10
    """Messages that one pull asks for."""
    pull_threshold_for_all: int = 10_000
    """Messages of all queues in memory before pulling pauses."""
    consume_max_span: int = 2_000
    """Pulling of a queue pauses while its first and last message in memory are so many offsets apart."""
    poll_timeout_millis: int = 5_000
    """How long `poll` waits for messages, ms."""
    topic_metadata_check_interval_millis: int = 30_000
    """Between two looks for changed queues of a topic (`on_queues_changed`), ms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self, _LITE_RANGES)
        if self.consumer_timeout_millis_when_suspend < self.broker_suspend_max_time_millis:
            raise invalid_setting(
                "consumer_timeout_millis_when_suspend",
                self.consumer_timeout_millis_when_suspend,
                "Long polling mode, the consumer consumerTimeoutMillisWhenSuspend must greater than "
                "brokerSuspendMaxTimeMillis",
            )
        if self.consume_from_where not in _LITE_STARTS:
            raise invalid_setting(
                "consume_from_where", self.consume_from_where.value, "Invalid ConsumeFromWhere Value"
            )
