"""EndTransaction: a producer commits or rolls back, by its own decision or as the answer to a check.
RecallMessage: it takes a timed message back before it is due.

The broker's answer to an end is not looked at, as in the official proxy: a client hears OK also for one that comes too
late. Mirrors `EndTransactionActivity`, `TransactionProcessor` and `RecallMessageActivity`.
"""

import logging
from typing import Final

from pocketmq.broker.network.dispatch import Answer
from pocketmq.broker.sending.recall_handlers import recall_message as recall_stored_message
from pocketmq.broker.transactions.transaction_handlers import end_transaction as end_half_message
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_NONE, TRANSACTION_ROLLBACK
from pocketmq.protocol.message.recall_handle import decode_recall_handle
from pocketmq.protocol.requests.send import EndTransaction, RecallMessage, RecallMessageReply
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..calls.broker_call import BrokerCall, HandlerAnswer
from ..calls.handler import ANSWERS_LATER, PROXY, Deferred, RpcRefused
from ..calls.rpc_call import RpcCall
from ..conversion.names import checked_topic
from ..messages import (
    OK,
    Code,
    EndTransactionRequest,
    EndTransactionResponse,
    RecallMessageRequest,
    RecallMessageResponse,
    TransactionResolution,
    TransactionSource,
)
from .producing import Producing
from .sent_message import check_type

_log = logging.getLogger("pocketmq.grpc")

_VERDICTS: Final[dict[int, int]] = {
    TransactionResolution.COMMIT: TRANSACTION_COMMIT,
    TransactionResolution.ROLLBACK: TRANSACTION_ROLLBACK,
}


def end_transaction(
    producing: Producing, request: EndTransactionRequest, call: RpcCall
) -> EndTransactionResponse:
    """End the half message that was sent, or asked about, under this topic and id less than half a minute ago."""
    peer = producing.clients.authorized_peer(call, request)
    topic = checked_topic(request.topic, producing.topics)
    transaction_id = request.transaction_id
    if not transaction_id or transaction_id.isspace():
        raise RpcRefused(Code.INVALID_TRANSACTION_ID, "transaction id cannot be empty")
    place = producing.clients.transactions.take(topic, transaction_id)
    if place is None:
        raise RpcRefused(Code.INTERNAL_SERVER_ERROR, PROXY + "cannot found transaction data")
    end = EndTransaction(
        producer_group=topic,
        tran_state_table_offset=place.queue_offset,
        commit_log_offset=place.position,
        commit_or_rollback=_VERDICTS.get(request.resolution, TRANSACTION_NONE),
        from_transaction_check=request.source == TransactionSource.SOURCE_SERVER_CHECK,
        msg_id=request.message_id,
        transaction_id=transaction_id,
        topic=topic,
    )

    def log_refusal(answer: HandlerAnswer) -> None:
        if isinstance(answer, Answer) and answer.code != ResponseCode.SUCCESS:
            remark = answer.remark
            _log.info("%r cannot end transaction %s of topic %s: %s", peer, transaction_id, topic, remark)

    end_half_message(
        producing.transactions, end, BrokerCall(peer, end.code, log_refusal, language=peer.language)
    )
    return EndTransactionResponse(status=OK)


def recall_message(
    producing: Producing, request: RecallMessageRequest, call: RpcCall
) -> RecallMessageResponse | Deferred:
    """The reply names the message. The broker recalls with `recallMessageEnable` only."""
    producing.clients.check(call, request)
    topic = checked_topic(request.topic, producing.topics)
    topic_config = producing.topics.find(topic)
    check_type(None if topic_config is None else topic_config.message_type, "DELAY", producing.config)
    try:
        decode_recall_handle(request.recall_handle)
    except BodyError as error:
        raise _failed(str(error)) from None
    recall = RecallMessage(producer_group=topic, topic=topic, recall_handle=request.recall_handle)
    peer = producing.clients.peer_with_address_of(call)

    def durable(answer: HandlerAnswer) -> None:
        assert isinstance(answer, Answer)
        call.answer(_recalled(answer))

    broker_call = BrokerCall(peer, recall.code, durable, language=peer.language)
    answer = recall_stored_message(producing.sending, recall, broker_call)
    return _recalled(answer) if isinstance(answer, Answer) else ANSWERS_LATER


def _recalled(answer: Answer) -> RecallMessageResponse:
    """Raises `RpcRefused`."""
    if answer.code != ResponseCode.SUCCESS or not isinstance(answer.reply, RecallMessageReply):
        raise _failed(answer.remark or "")
    return RecallMessageResponse(status=OK, message_id=answer.reply.msg_id)


def _failed(text: str) -> RpcRefused:
    return RpcRefused(Code.INTERNAL_SERVER_ERROR, PROXY + text)
