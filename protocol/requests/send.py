"""Requests that store messages: send, batch, reply, send back, recall, and the end of a transaction.

Every send exists in two spellings: the long one (10, 324) and V2 (310, 320, 325), whose fields are single letters on
the wire. Both have the same attribute names here, so one handler serves both (`AnySend`). The first half of a
transactional send is an ordinary send with the property TRAN_MSG. The property text is described in
`message/properties.py`, the body of a batch in `message/batch.py`.
"""

from ..bodies.body import MessageBatch, MessageContent, Records
from ..wire.schema import Int, Long, NoReply, Reply, Request, field, request


class SendMessageReply(Reply, frozen=True, kw_only=True):
    """Where a message was stored; the reply to all five sends. `SendMessageResponseHeader`.

    `msg_id` is the offset message id (a batch has several, joined by commas), `queue_offset` the first of a batch.
    `batch_uniq_id` is present only for a batch that the broker keeps together. `msg_region` and `trace_on` are not
    part of the official header class. Clients read these fields unchecked, so they must be present.
    """

    msg_id: str
    queue_id: Int
    queue_offset: Long
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None
    msg_region: str | None = field(name="MSG_REGION", default=None)
    trace_on: bool | None = field(name="TRACE_ON", default=None)


@request(10, body=MessageContent)
class SendMessage(Request[SendMessageReply], frozen=True, kw_only=True):
    """Store the body as one message. `SendMessageRequestHeader`.

    `default_topic` is the template for a topic that does not exist yet. With `queue_id` -1 the broker picks a
    queue. `born_timestamp` is in ms, `properties` is the property text. `max_reconsume_times` counts only for
    `%RETRY%` topics.
    """

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    born_timestamp: Long
    flag: Int
    properties: str | None = None
    reconsume_times: Int | None = None
    unit_mode: bool = False
    batch: bool = False
    max_reconsume_times: Int | None = None
    broker_name: str | None = field(name="bname", default=None)


@request(310, body=MessageContent)
class SendMessageV2(Request[SendMessageReply], frozen=True, kw_only=True):
    """`SendMessage` with single letters; clients send this one by default. `SendMessageRequestHeaderV2`."""

    producer_group: str = field(name="a")
    topic: str = field(name="b")
    default_topic: str = field(name="c")
    default_topic_queue_nums: Int = field(name="d")
    queue_id: Int = field(name="e")
    sys_flag: Int = field(name="f")
    born_timestamp: Long = field(name="g")
    flag: Int = field(name="h")
    properties: str | None = field(name="i", default=None)
    reconsume_times: Int | None = field(name="j", default=None)
    unit_mode: bool = field(name="k", default=False)
    max_reconsume_times: Int | None = field(name="l", default=None)
    batch: bool = field(name="m", default=False)
    broker_name: str | None = field(name="n", default=None)


@request(320, body=MessageBatch)
class SendBatchMessage(SendMessageV2, frozen=True, kw_only=True):
    """Several messages for one queue, back to back in the body; `batch` is true."""


@request(324, body=MessageContent)
class SendReplyMessage(SendMessage, frozen=True, kw_only=True):
    """A consumer's answer to a requester, which the broker sends on as `PushReplyMessageToClient`. Stored only if
    configured.
    """


@request(325, body=MessageContent)
class SendReplyMessageV2(SendMessageV2, frozen=True, kw_only=True):
    """`SendReplyMessage` with single letters; clients send this one by default."""


AnySend = SendMessage | SendMessageV2
"""Any of the five sends: the subclasses are one of these two."""


@request(36)
class ConsumerSendMsgBack(Request[NoReply], frozen=True, kw_only=True):
    """A message that the consumer failed to process, to be delivered again later. `ConsumerSendMsgBackRequestHeader`.

    `offset` is its commit-log position. `delay_level` 0: the broker decides; -1: dead letter; n: that level.
    """

    offset: Long
    group: str
    delay_level: Int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int | None = None
    broker_name: str | None = field(name="bname", default=None)


class RecallMessageReply(Reply, frozen=True, kw_only=True):
    """The unique id of the cancelled message. `RecallMessageResponseHeader`."""

    msg_id: str


@request(370, only_in=5)
class RecallMessage(Request[RecallMessageReply], frozen=True, kw_only=True):
    """Cancel a delayed message before its time, by the handle that its send returned. `RecallMessageRequestHeader`."""

    producer_group: str | None = None
    topic: str
    recall_handle: str
    broker_name: str | None = field(name="bname", default=None)


@request(37)
class EndTransaction(Request[NoReply], frozen=True, kw_only=True):
    """Commit or roll back a half message; one-way from Java clients. `EndTransactionRequestHeader`.

    `tran_state_table_offset` is its offset in the half queue, `commit_log_offset` its position in the log,
    `commit_or_rollback` 8 commit, 12 rollback, 0 unknown. The remark carries the text of a local exception.
    """

    producer_group: str
    tran_state_table_offset: Long
    commit_log_offset: Long
    commit_or_rollback: Int
    from_transaction_check: bool = False
    msg_id: str
    transaction_id: str | None = None
    topic: str | None = None
    broker_name: str | None = field(name="bname", default=None)


@request(39, body=Records)
class CheckTransactionState(Request[NoReply], frozen=True, kw_only=True):
    """Broker to producer, one-way: was this transaction committed? `CheckTransactionStateRequestHeader`.

    The body is the half message as stored, with its real topic and queue. The producer answers with an
    `EndTransaction`.
    """

    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    topic: str | None = None
    broker_name: str | None = field(name="bname", default=None)


@request(323)
class ResumeCheckHalfMessage(Request[NoReply], frozen=True, kw_only=True):
    """Check a half message again that the broker had given up; it is named by its offset message id.
    `ResumeCheckHalfMessageRequestHeader`.
    """

    msg_id: str | None = None
    topic: str | None = None
