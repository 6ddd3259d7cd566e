"""POP: the broker hands out messages for a time and the consumer acknowledges each; assignments; lite topics.

Lite topics (5.5) are many small topics inside one, each with a light queue of its own; their messages are acknowledged
by `AckMessage` with `lite_topic`. Codes from 200050 on travel with a JSON header only. Numbers that are Java
primitives in the official classes count as 0 when absent. Times are in ms.
"""

from ..bodies.body import Records
from ..bodies.client import (
    MessageRequestModeSerializeWrapper,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from ..bodies.pop import (
    BatchAckMessageRequestBody,
    GetBrokerLiteInfoResponseBody,
    GetLiteClientInfoResponseBody,
    GetLiteGroupInfoResponseBody,
    GetLiteTopicInfoResponseBody,
    GetParentTopicInfoResponseBody,
    LiteSubscriptionCtlRequestBody,
)
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


@request(200050, only_in=5, reply_body=Records)
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


@request(200051, only_in=5)
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


@request(200151, only_in=5, body=BatchAckMessageRequestBody)
class BatchAckMessage(Request[NoReply], frozen=True, kw_only=True):
    """Many messages are done. Body BatchAckMessageRequestBody."""


@request(200052, only_in=5, reply_body=Records)
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


@request(200053, "CHANGE_MESSAGE_INVISIBLETIME", only_in=5)
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


@request(200054, only_in=5)
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


@request(200055, only_in=5)
class PollingInfo(Request[PollingInfoReply], frozen=True, kw_only=True):
    """How many pops wait for a queue? `PollingInfoRequestHeader`."""

    consumer_group: str
    topic: str
    queue_id: Int = 0


@request(200056, only_in=5)
class PopRollback(Request[NoReply], frozen=True, kw_only=True):
    """Write the records of a RocksDB pop store back as messages (the tool's exportPopRecord)."""


@request(400, only_in=5, body=QueryAssignmentRequestBody)
class QueryAssignment(Request[QueryAssignmentResponseBody], frozen=True, kw_only=True):
    """Which queues are mine, and pull or pop? Bodies QueryAssignmentRequestBody and QueryAssignmentResponseBody."""


@request(401, only_in=5, body=SetMessageRequestModeRequestBody)
class SetMessageRequestMode(Request[NoReply], frozen=True, kw_only=True):
    """A group pulls or pops a topic. Body SetMessageRequestModeRequestBody."""


@request(402, only_in=5)
class GetAllMessageRequestMode(Request[MessageRequestModeSerializeWrapper], frozen=True, kw_only=True):
    """All such settings, for slaves; the reply's body is MessageRequestModeSerializeWrapper."""


class PopLiteMessageReply(Reply, frozen=True, kw_only=True):
    """What was handed out; `revive_qid` is always 999. `PopLiteMessageResponseHeader`."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


@request(200070, only_in=5, reply_body=Records)
class PopLiteMessage(Request[PopLiteMessageReply], frozen=True, kw_only=True):
    """Messages of the lite topics a client subscribed to under `topic`. `PopLiteMessageRequestHeader`.

    Times in ms, `born_time` 0 means now.
    """

    client_id: str
    consumer_group: str
    topic: str
    max_msg_num: Int = 0
    invisible_time: Long = 0
    poll_time: Long = 0
    born_time: Long = 0
    attempt_id: str | None = None


@request(200071, only_in=5, body=LiteSubscriptionCtlRequestBody)
class LiteSubscriptionCtl(Request[NoReply], frozen=True, kw_only=True):
    """Subscribe to lite topics or leave them.

    `LiteSubscriptionCtlRequestHeader`; body the same name without Header.
    """


@request(200072, only_in=5)
class AckLiteMessage(Request[NoReply], frozen=True, kw_only=True):
    """A number nobody uses: official brokers answer REQUEST_CODE_NOT_SUPPORTED."""


@request(200073, only_in=5)
class NotifyUnsubscribeLite(Request[NoReply], frozen=True, kw_only=True):
    """Broker to client, one-way: you lost this lite topic. `NotifyUnsubscribeLiteRequestHeader`."""

    lite_topic: str
    consumer_group: str
    client_id: str


@request(200074, only_in=5)
class GetBrokerLiteInfo(Request[GetBrokerLiteInfoResponseBody], frozen=True, kw_only=True):
    """Lite topics of a broker in figures; the reply's body is GetBrokerLiteInfoResponseBody."""


@request(200075, only_in=5)
class GetParentTopicInfo(Request[GetParentTopicInfoResponseBody], frozen=True, kw_only=True):
    """A topic that holds lite topics; the reply's body is GetParentTopicInfoResponseBody.

    `GetParentTopicInfoRequestHeader`.
    """

    topic: str


@request(200076, only_in=5)
class GetLiteTopicInfo(Request[GetLiteTopicInfoResponseBody], frozen=True, kw_only=True):
    """One lite topic; the reply's body is GetLiteTopicInfoResponseBody. `GetLiteTopicInfoRequestHeader`."""

    parent_topic: str | None = None
    lite_topic: str | None = None


@request(200077, only_in=5)
class GetLiteClientInfo(Request[GetLiteClientInfoResponseBody], frozen=True, kw_only=True):
    """One client's lite topics;

    the reply's body is GetLiteClientInfoResponseBody. `GetLiteClientInfoRequestHeader`.
    """

    parent_topic: str | None = None
    group: str | None = None
    client_id: str | None = None
    max_count: Int = 1000


@request(200078, only_in=5)
class GetLiteGroupInfo(Request[GetLiteGroupInfoResponseBody], frozen=True, kw_only=True):
    """A group's lag in lite topics, the `top_k` worst; the reply's body is GetLiteGroupInfoResponseBody.

    `GetLiteGroupInfoRequestHeader`.
    """

    group: str
    lite_topic: str | None = None
    top_k: Int = 0


@request(200079, only_in=5)
class TriggerLiteDispatch(Request[NoReply], frozen=True, kw_only=True):
    """Look again for messages of a group, of one client if named. `TriggerLiteDispatchRequestHeader`."""

    group: str
    client_id: str | None = None
