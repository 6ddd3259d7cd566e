"""POP: the broker hands out messages for a time and the consumer acknowledges each; assignments.

Codes from 200050 on travel with a JSON header only. Numbers that are Java
primitives in the official classes count as 0 when absent. Times are in ms.
"""

from ..bodies.body import Records
from ..bodies.client import (
    MessageRequestModeSerializeWrapper,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from ..bodies.pop import BatchAckMessageRequestBody
from ..wire.schema import Int, Long, NoReply, Reply, Request, field, request


class PopMessageReply(Reply, frozen=True, kw_only=True):
    """What was handed out. `PopMessageResponseHeader`.

    The three infos say which message came from which queue and offset (`message/pop_receipt.py`).
    """

    pop_time: Long
    invisible_time: Long
    revive_qid: Int
    rest_num: Long
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


@request(200050, only_in=5, reply_body=Records)
class PopMessage(Request[PopMessageReply], frozen=True, kw_only=True):
    """Messages for a group from any queue (-1) or one. `PopMessageRequestHeader`.

    They stay hidden for `invisible_time`. `poll_time` is how long to wait, counted from `born_time` (0: from now).
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


@request(200051, only_in=5)
class AckMessage(Request[NoReply], frozen=True, kw_only=True):
    """The message is consumed. `AckMessageRequestHeader`.

    `extra_info` is the message's POP_CK text. With `lite_topic` the message is one of a light queue.
    """

    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    lite_topic: str | None = None
    broker_name: str | None = field(name="bname", default=None)


@request(200151, only_in=5, body=BatchAckMessageRequestBody)
class BatchAckMessage(Request[NoReply], frozen=True, kw_only=True):
    """Many messages are consumed."""


@request(200052, only_in=5, reply_body=Records)
class PeekMessage(Request[PopMessageReply], frozen=True, kw_only=True):
    """Read messages without hiding them. `PeekMessageRequestHeader`."""

    topic: str
    queue_id: Int = 0
    max_msg_nums: Int = 0
    consumer_group: str


class ChangeMessageInvisibleTimeReply(Reply, frozen=True, kw_only=True):
    """The message's new receipt. `ChangeInvisibleTimeResponseHeader`."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int


@request(200053, "CHANGE_MESSAGE_INVISIBLETIME", only_in=5)
class ChangeMessageInvisibleTime(Request[ChangeMessageInvisibleTimeReply], frozen=True, kw_only=True):
    """Hide a message for another time. `ChangeInvisibleTimeRequestHeader`.

    With `suspend` the next delivery does not count as another try.
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
    """Whether there is a message to pop. `NotificationResponseHeader`."""

    has_msg: bool
    polling_full: bool = False


@request(200054, only_in=5)
class Notification(Request[NotificationReply], frozen=True, kw_only=True):
    """Wait until there is a message to pop, without popping it. `NotificationRequestHeader`."""

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
    """The number of waiting pops. `PollingInfoResponseHeader`."""

    polling_num: Int


@request(200055, only_in=5)
class PollingInfo(Request[PollingInfoReply], frozen=True, kw_only=True):
    """How many pops wait for a queue? `PollingInfoRequestHeader`."""

    consumer_group: str
    topic: str
    queue_id: Int = 0


@request(400, only_in=5, body=QueryAssignmentRequestBody)
class QueryAssignment(Request[QueryAssignmentResponseBody], frozen=True, kw_only=True):
    """Which queues does a client read, and by pull or by pop?"""


@request(401, only_in=5, body=SetMessageRequestModeRequestBody)
class SetMessageRequestMode(Request[NoReply], frozen=True, kw_only=True):
    """Set whether a group pulls or pops a topic."""


@request(402, only_in=5)
class GetAllMessageRequestMode(Request[MessageRequestModeSerializeWrapper], frozen=True, kw_only=True):
    """All such settings, for slaves."""
