"""POP: the broker hands messages out for a time, the consumer acknowledges each; and who gets which queues.

Codes from 200050 on travel with a JSON header only. Numbers that are Java primitives in the official classes
count as 0 when absent. Times in ms.
"""

from ..wire.schema import Int, Long, NoReply, Reply, Request, field, request


class PopMessageReply(Reply, frozen=True, kw_only=True):
    """What was handed out. `PopMessageResponseHeader`; the body holds messages as stored.

    The three infos tell which message came from which queue and offset, as text.
    """

    pop_time: Long
    invisible_time: Long
    revive_qid: Int
    rest_num: Long
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


@request(200050)
class PopMessage(Request[PopMessageReply], frozen=True, kw_only=True):
    """Messages for a group from any queue (-1) or one. `PopMessageRequestHeader`.

    They stay hidden for `invisible_time`; `poll_time` is how long to wait from `born_time` on (0: from now).
    `init_mode` says where a new group starts: 0 oldest, 1 newest. `exp_type` and `exp` are the filter.
    """

    consumer_group: str
    topic: str
    queue_id: Int = 0
    max_msg_nums: Int = 0
    invisible_time: Long = 0
    poll_time: Long = 0
    born_time: Long = 0
    init_mode: Int = 0
    exp_type: str | None = None
    exp: str | None = None
    order: bool = False
    attempt_id: str | None = None
    broker_name: str | None = field(name="bname", default=None)


@request(200051)
class AckMessage(Request[NoReply], frozen=True, kw_only=True):
    """This message is done. `AckMessageRequestHeader`.

    `extra_info` is the message's POP_CK text. With `lite_topic` it acknowledges a light queue's message.
    """

    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    lite_topic: str | None = None
    broker_name: str | None = field(name="bname", default=None)


@request(200151)
class BatchAckMessage(Request[NoReply], frozen=True, kw_only=True):
    """Many messages are done. Body BatchAckMessageRequestBody."""


@request(200052)
class PeekMessage(Request[PopMessageReply], frozen=True, kw_only=True):
    """Look at messages without taking them. `PeekMessageRequestHeader`."""

    topic: str
    queue_id: Int = 0
    max_msg_nums: Int = 0
    consumer_group: str


class ChangeMessageInvisibleTimeReply(Reply, frozen=True, kw_only=True):
    """The message's new receipt. `ChangeInvisibleTimeResponseHeader`."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int


@request(200053, "CHANGE_MESSAGE_INVISIBLETIME")
class ChangeMessageInvisibleTime(Request[ChangeMessageInvisibleTimeReply], frozen=True, kw_only=True):
    """Hide a message for another while. `ChangeInvisibleTimeRequestHeader`.

    `suspend` keeps its coming back from counting as another try.
    """

    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    invisible_time: Long
    lite_topic: str | None = None
    suspend: bool = False
    broker_name: str | None = field(name="bname", default=None)


class NotificationReply(Reply, frozen=True, kw_only=True):
    """Is there something to pop? `NotificationResponseHeader`."""

    has_msg: bool
    polling_full: bool = False


@request(200054)
class Notification(Request[NotificationReply], frozen=True, kw_only=True):
    """Wait until there is something to pop, without taking it. `NotificationRequestHeader`."""

    consumer_group: str
    topic: str
    queue_id: Int = 0
    poll_time: Long = 0
    born_time: Long = 0
    order: bool = False
    attempt_id: str | None = None
    exp_type: str | None = None
    exp: str | None = None


class PollingInfoReply(Reply, frozen=True, kw_only=True):
    """How many wait. `PollingInfoResponseHeader`."""

    polling_num: Int


@request(200055)
class PollingInfo(Request[PollingInfoReply], frozen=True, kw_only=True):
    """How many pops wait for a queue? `PollingInfoRequestHeader`."""

    consumer_group: str
    topic: str
    queue_id: Int = 0


@request(200056)
class PopRollback(Request[NoReply], frozen=True, kw_only=True):
    """Write the records of a RocksDB pop store back as messages (the tool's exportPopRecord)."""


@request(400)
class QueryAssignment(Request[NoReply], frozen=True, kw_only=True):
    """Which queues are mine, and pull or pop? Bodies QueryAssignmentRequestBody and QueryAssignmentResponseBody."""


@request(401)
class SetMessageRequestMode(Request[NoReply], frozen=True, kw_only=True):
    """A group pulls or pops a topic. Body SetMessageRequestModeRequestBody."""


@request(402)
class GetAllMessageRequestMode(Request[NoReply], frozen=True, kw_only=True):
    """All such settings, for slaves; the reply's body is MessageRequestModeSerializeWrapper."""
