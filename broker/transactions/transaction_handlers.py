"""Requests about transactions: producers end one with 37, administrators resume the check of a given-up one with 323.

Mirrors `EndTransactionProcessor` and `AdminBrokerProcessor.resumeCheckHalfMessage`.
"""

import logging

from pocketmq.core.properties import read_values
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.offset_id import decode_message_id
from pocketmq.protocol.message.record import RecordError, decode_record
from pocketmq.protocol.message.topics import CHECK_MAX_TIME_TOPIC, HALF_TOPIC
from pocketmq.protocol.requests.send import EndTransaction, ResumeCheckHalfMessage
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus

from ..errors import Refusal
from ..network.dispatch import Call, Held, handles
from ..storing.messages import copy_of
from .transactions import Transactions

_log = logging.getLogger("pocketmq.transactions")


@handles(EndTransaction)
def end_transaction(transactions: Transactions, request: EndTransaction, call: Call) -> Held:
    """Commit or roll back. "Not known yet" gets no answer, as in the official broker: the broker checks again later."""
    return transactions.ends.handle_decoded(request, call)


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
