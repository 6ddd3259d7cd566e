"""The second half of a transactional send, and the broker's question when it does not come.

The first half is an ordinary send with property TRAN_MSG.
"""

from ..wire.schema import Int, Long, NoReply, Request, field, request


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


@request(39)
class CheckTransactionState(Request[NoReply], frozen=True, kw_only=True):
    """Broker to producer, one-way: what became of this? `CheckTransactionStateRequestHeader`.

    The body is the half message as stored, with its real topic and queue; the answer is an `EndTransaction`.
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
    """Ask again about a half message that was given up, named by its offset message id.

    `ResumeCheckHalfMessageRequestHeader`.
    """

    msg_id: str | None = None
    topic: str | None = None
