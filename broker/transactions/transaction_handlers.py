"""Requests about transactions: producers end one with 37, administrators resume the check of a given-up one with 323.

Both name a half message by its log position. In 37 queue offset and producer group must also match, so that only the
producer group of a message can end it. Mirrors `EndTransactionProcessor` and
`AdminBrokerProcessor.resumeCheckHalfMessage`.
"""

import logging
from typing import Final

from pocketmq.core.properties import read_values
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_NONE, TRANSACTION_ROLLBACK
from pocketmq.protocol.message.offset_id import decode_message_id
from pocketmq.protocol.message.record import Record, RecordError, decode_record
from pocketmq.protocol.message.topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC
from pocketmq.protocol.requests.send import EndTransaction, ResumeCheckHalfMessage
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus
from pocketmq.store.put_values import RefusedError

from ..delayed.delayed_sends import ASKS
from ..errors import Refusal
from ..network.dispatch import HELD, Answer, Call, Held, handles
from ..state.refusals import UNSET_REMARK
from ..storing.messages import copy_of
from ..storing.numbers import INT_MAX, INT_MIN, parse_number
from ..storing.records import record_at
from .half_messages import End, refused_commit
from .transactions import Transactions

_log = logging.getLogger("pocketmq.transactions")

_VALUES: Final = (
    names.CHECK_IMMUNITY_TIME_IN_SECONDS,
    names.PGROUP,
    names.REAL_TOPIC,
    names.REAL_QID,
    names.DELAY,
    *ASKS,
)
_NO_TIMES: Final = [None] * (1 + len(ASKS))


@handles(EndTransaction)
def end_transaction(transactions: Transactions, request: EndTransaction, call: Call) -> Answer | Held:
    """Commit or roll back. "Not known yet" gets no answer, as in the official broker: the broker checks again later."""
    if transactions.config.is_slave:
        return Answer(code=ResponseCode.SLAVE_NOT_AVAILABLE, remark=UNSET_REMARK)
    verdict = request.commit_or_rollback
    if verdict == TRANSACTION_NONE:
        return HELD
    if verdict not in (TRANSACTION_COMMIT, TRANSACTION_ROLLBACK):
        raise Refusal(ResponseCode.SYSTEM_ERROR, "RemotingCommandException: commitOrRollback field wrong")
    half = _half_record(transactions, request.commit_log_offset)
    immunity, group, real_topic, queue_text, *times = read_values(half.properties, (), _VALUES)
    if transactions.is_5 and _is_too_late(transactions, request, half, immunity):
        return Answer(code=ResponseCode.ILLEGAL_OPERATION, remark=UNSET_REMARK)
    _check_match(request, half, group)
    if verdict == TRANSACTION_ROLLBACK:
        return transactions.half_messages.end(End(call, half, real_topic, None))
    may_wait = times != _NO_TIMES
    try:
        message = transactions.half_messages.committed_message(
            half, real_topic, queue_text, may_wait=may_wait
        )
        return transactions.half_messages.end(End(call, half, real_topic, transactions.store.packed(message)))
    except RefusedError as error:
        raise refused_commit(transactions.config, error.status) from error
    except ValueError as error:
        raise Refusal(
            ResponseCode.SYSTEM_ERROR, f"the half message does not name its real topic and queue: {error!r}"
        ) from error


def _half_record(transactions: Transactions, position: int) -> Record:
    record = record_at(transactions.store, position)
    if record is None:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
    return record


def _is_too_late(
    transactions: Transactions, request: EndTransaction, half: Record, immunity: str | None
) -> bool:
    """Whether this end arrives too late. A message with a time of its own until the first check must end within that
    time, or by the answer to a check."""
    if request.from_transaction_check or immunity is None:
        return False
    immunity_ms = max(
        (parse_number(immunity, INT_MIN, INT_MAX) or 0) * 1000, transactions.config.transaction_time_out
    )
    clock = transactions.clock
    sent_ms = half.store_timestamp if clock.is_virtual else half.born_timestamp
    return clock.now_ms() - sent_ms > immunity_ms


def _check_match(request: EndTransaction, half: Record, group: str | None) -> None:
    if group != request.producer_group:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
    if half.queue_offset != request.tran_state_table_offset:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
    if half.position != request.commit_log_offset:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The commit log offset wrong")
    if half.topic != HALF_TOPIC:
        # The official broker stores a committed message again, in the topic that its properties name.
        raise Refusal(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")


@handles(ResumeCheckHalfMessage)
def resume_check_half_message(transactions: Transactions, request: ResumeCheckHalfMessage) -> None:
    """Move a given-up message back to the half topic, with its count of checks reset to zero."""
    try:
        message_id = decode_message_id(request.msg_id or "")
        data = transactions.store.read_record(message_id.position)
        if data is None:
            raise RecordError(f"no message at log position {message_id.position}")
        record = decode_record(data)
        [real_topic] = read_values(record.properties, (), (names.REAL_TOPIC,))
        if real_topic is not None and record.topic not in (CHECK_MAX_TIME_TOPIC, HALF_TOPIC):
            # In the official broker a commit then stores it in whatever topic its sender wrote into it.
            raise RecordError(f"the message at {message_id.position} is no half message")
    except BodyError as error:
        _log.warning("cannot resume %.80s: %s", request.msg_id, error)
        remark = "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark) from error
    result = transactions.store.append(copy_of(record, HALF_TOPIC, 0, (names.TRANSACTION_CHECK_TIMES, "0")))
    if result.status is not PutStatus.PUT_OK:
        remark = "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed."
        raise Refusal(ResponseCode.SYSTEM_ERROR, remark)
