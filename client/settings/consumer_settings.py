"""The settings of push consumers and lite pull consumers, with defaults and limits.

Where the official setter ignores a value (an auto-commit interval below one second) InvalidSetting is raised.
4.9 clients have no pop. Official classes: DefaultMQPushConsumer, DefaultLitePullConsumer.
"""

import time
from typing import Annotated, Final

from msgspec import field
from msgspec.structs import force_setattr
from pocketmq.protocol.bodies.client import ConsumeFromWhere, ExpressionError, MessageModel, tag_subscription

from ..errors import ClientError
from .allocation import AllocateMessageQueueAveragely, AllocateMessageQueueStrategy
from .checks import LONG_MAX, OFF, AtLeast1, Range, check_range, check_topic_name, invalid_setting
from .client_settings import ClientSettings
from .timestamps import CONSUME_TIMESTAMP_AGE_MS, format_timestamp, parse_timestamp

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
    consume_thread_min: Annotated[int, Range(1, 1000)] = 20
    """Messages in listeners at once; the official pool never grows beyond it either."""
    consume_thread_max: Annotated[int, Range(1, 1000)] = 20
    """Threads for listeners that are plain functions."""
    consume_concurrently_max_span: Annotated[int, Range(1, 65535)] = 2_000
    """Pulling of a queue pauses while its first and last message in memory are so many offsets apart."""
    pull_threshold_for_topic: Annotated[int, Range(1, 6553500, or_off=True)] = OFF
    """The same for all queues held of a topic; -1: no limit."""
    pull_threshold_size_for_topic: Annotated[int, Range(1, 102400, or_off=True)] = OFF
    """The same in MiB; -1: no limit."""
    pull_interval: Annotated[int, Range(0, 65535)] = 0
    """Pause between two pulls of a queue, ms."""
    pull_batch_size: Annotated[int, Range(1, 1024)] = 32
    """Messages that one pull asks for."""
    pull_batch_size_in_bytes: AtLeast1 = 256 * 1024
    """Bytes that one pull asks for (5.x brokers)."""
    consume_message_batch_max_size: Annotated[int, Range(1, 1024)] = 1
    """Messages that a batch listener gets at once."""
    post_subscription_when_pull: bool = False
    """Each pull carries the expression, instead of the heartbeat alone."""
    max_reconsume_times: Annotated[int, Range(0, or_off=True)] = OFF
    """-1: 16 for a concurrent listener, no limit for an ordered one."""
    suspend_current_queue_time_millis: Annotated[int, Range(0, or_off=True)] = 1_000
    """Pause of an ordered queue after SUSPEND_CURRENT_QUEUE_A_MOMENT, ms."""
    consume_timeout: AtLeast1 = 15
    """Minutes after which a message that its listener still holds is sent back."""
    pop_invisible_time: Annotated[int, Range(5000, 300000)] = 60_000
    """How long popped messages are hidden from other members, ms."""
    pop_batch_nums: Annotated[int, Range(1, 32)] = 32
    """Messages that one pop asks for."""
    pop_threshold_for_queue: AtLeast1 = 96
    """Popped messages in memory before popping pauses."""
    await_termination_millis_when_shutdown: Annotated[int, Range(0, LONG_MAX)] = 5_000
    """How long `shutdown` lets running listeners end before it cancels them, ms; 0 is the official default."""
    client_rebalance: bool = True
    """False: the broker assigns, and may choose pop."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("pull_threshold_for_queue", self.pull_threshold_for_queue, Range(1, 65535))
        check_range("pull_threshold_size_for_queue", self.pull_threshold_size_for_queue, Range(1, 1024))
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
    broker_suspend_max_time_millis: AtLeast1 = 20_000
    """How long the broker may hold a pull, ms."""
    consumer_timeout_millis_when_suspend: int = 30_000
    """For the answer to such a pull, ms; more than that."""
    auto_commit: bool = True
    """Offsets of polled messages are committed in the background."""
    auto_commit_interval_millis: Annotated[int, Range(1000, LONG_MAX)] = 5_000
    """Between two of these commits, ms."""
    pull_batch_size: AtLeast1 = 10
    """Messages that one pull asks for."""
    pull_threshold_for_all: Annotated[int, Range(1, LONG_MAX)] = 10_000
    """Messages of all queues in memory before pulling pauses."""
    consume_max_span: AtLeast1 = 2_000
    """Pulling of a queue pauses while its first and last message in memory are so many offsets apart."""
    poll_timeout_millis: Annotated[int, Range(0, LONG_MAX)] = 5_000
    """How long `poll` waits for messages, ms."""
    topic_metadata_check_interval_millis: AtLeast1 = 30_000
    """Between two looks for changed queues of a topic (`on_queues_changed`), ms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("pull_threshold_for_queue", self.pull_threshold_for_queue, Range(1))
        check_range("pull_threshold_size_for_queue", self.pull_threshold_size_for_queue, Range(1))
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
