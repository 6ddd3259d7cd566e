"""Bodies about offsets: statistics of topics and groups, resets, time spans, units of queues."""

from datetime import datetime
from typing import Self

from msgspec import field

from ..message.message_queue import MessageQueue
from .body import Body, DataVersion
from .client import SubscriptionData


class TopicOffset(Body, frozen=True):
    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


class TopicStatsTable(Body, frozen=True):
    """Offsets of a topic's queues. `topic_put_tps` is 5.x."""

    offset_table: dict[MessageQueue, TopicOffset] = field(default_factory=dict)
    topic_put_tps: float = 0.0


class OffsetWrapper(Body, frozen=True):
    """Offsets of broker and consumer in one queue; `pull_offset` is 5.x."""

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int = 0
    last_timestamp: int = 0


class ConsumeStats(Body, frozen=True):
    """How far a group has consumed its queues."""

    offset_table: dict[MessageQueue, OffsetWrapper] = field(default_factory=dict)
    consume_tps: float = 0.0

    @property
    def total_diff(self) -> int:
        """Messages still to consume (official computeTotalDiff)."""
        return sum(place.broker_offset - place.consumer_offset for place in self.offset_table.values())

    @property
    def total_inflight_diff(self) -> int:
        """Messages pulled, but not yet consumed (official computeInflightTotalDiff)."""
        return sum(place.pull_offset - place.consumer_offset for place in self.offset_table.values())


class OffsetMovedEvent(Body, frozen=True):
    """A message in OFFSET_MOVED_EVENT: a pull asked for one offset and was sent to another (4.9)."""

    consumer_group: str | None = None
    message_queue: MessageQueue | None = None
    offset_request: int = 0
    offset_new: int = 0


class ConsumeStatsList(Body, frozen=True):
    """One map a group, group to statistics."""

    consume_stats_list: list[dict[str, list[ConsumeStats]]] = field(default_factory=list)
    broker_addr: str | None = None
    total_diff: int = 0
    total_inflight_diff: int = 0


class QueueTimeSpan(Body, frozen=True):
    """Store times in ms of the oldest, newest and last consumed message of a queue. The official class writes the
    times a second time as local text, so `of` fills both.
    """

    message_queue: MessageQueue | None = None
    min_time_stamp: int = 0
    max_time_stamp: int = 0
    consume_time_stamp: int = 0
    delay_time: int = 0
    min_time_stamp_str: str | None = None
    max_time_stamp_str: str | None = None
    consume_time_stamp_str: str | None = None

    @classmethod
    def of(
        cls,
        message_queue: MessageQueue,
        *,
        min_time_stamp: int,
        max_time_stamp: int,
        consume_time_stamp: int,
        delay_time: int,
    ) -> Self:
        return cls(
            message_queue=message_queue,
            min_time_stamp=min_time_stamp,
            max_time_stamp=max_time_stamp,
            consume_time_stamp=consume_time_stamp,
            delay_time=delay_time,
            min_time_stamp_str=local_time_text(min_time_stamp),
            max_time_stamp_str=local_time_text(max_time_stamp),
            consume_time_stamp_str=local_time_text(consume_time_stamp),
        )


def local_time_text(timestamp_ms: int) -> str:
    """`2023-11-14#22:13:20:123` in local time (official UtilAll.timeMillisToHumanString2)."""
    seconds, ms = divmod(timestamp_ms, 1000)
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d#%H:%M:%S}:{ms:03d}"


class QueryConsumeTimeSpanBody(Body, frozen=True):
    """The time spans of a topic's queues."""

    consume_time_span_set: list[QueueTimeSpan] = field(default_factory=list)


class GroupList(Body, frozen=True):
    """Names of groups."""

    group_list: list[str] = field(default_factory=list)


class QueryCorrectionOffsetBody(Body, frozen=True):
    """Queue id to offset."""

    correction_offsets: dict[int, int] = field(default_factory=dict)


class ConsumerOffsetSerializeWrapper(Body, frozen=True):
    """`topic@group` to queue id to offset. 5.5.0 writes further members, which are ignored here. The file
    consumerOffset.json has the same form.
    """

    offset_table: dict[str, dict[int, int]] = field(default_factory=dict)
    data_version: DataVersion | None = None


class DelayOffsetSerializeWrapper(Body, frozen=True):
    """Delay level to offset: the form of delayOffset.json. 4.x writes no data version."""

    offset_table: dict[int, int] = field(default_factory=dict)
    data_version: DataVersion | None = None


class MessageQueueForC(Body, frozen=True):
    """A queue with its offset, for clients that cannot read object keys."""

    topic: str | None = None
    broker_name: str | None = None
    queue_id: int = 0
    offset: int = 0


class ResetOffsetBodyForC(Body, frozen=True):
    """The new offsets, for clients of language CPP."""

    offset_table: list[MessageQueueForC] | None = None


class ResetOffsetBody(Body, frozen=True):
    """The new offsets of a group."""

    offset_table: dict[MessageQueue, int] = field(default_factory=dict)

    def for_c(self) -> ResetOffsetBodyForC:
        return ResetOffsetBodyForC(
            offset_table=[
                MessageQueueForC(
                    topic=mq.topic, broker_name=mq.broker_name, queue_id=mq.queue_id, offset=offset
                )
                for mq, offset in self.offset_table.items()
            ]
        )


class ConsumeQueueData(Body, frozen=True):
    """One unit of a consume queue."""

    physic_offset: int = 0
    physic_size: int = 0
    tags_code: int = 0
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


class QueryConsumeQueueResponseBody(Body, frozen=True):
    """Units of a consume queue."""

    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
    queue_data: list[ConsumeQueueData] | None = None
    max_queue_index: int = 0
    min_queue_index: int = 0


class QuerySubscriptionResponseBody(Body, frozen=True):
    """What a group subscribes to."""

    subscription_data: SubscriptionData | None = None
    group: str | None = None
    topic: str | None = None


class GroupForbidden(Body, frozen=True):
    """Whether a group may read a topic."""

    topic: str | None = None
    group: str | None = None
    readable: bool | None = None
