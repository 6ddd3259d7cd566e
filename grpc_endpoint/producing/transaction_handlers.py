"""EndTransaction: a producer commits or rolls back, by its own decision or as the answer to a check.

The broker's answer is not looked at, as in the official proxy: a client hears OK also for an end that comes too late.
Mirrors `EndTransactionActivity` and `TransactionProcessor`.
"""

import logging
from typing import Final

from pocketmq.broker.errors import Refusal
from pocketmq.broker.transactions.transaction_handlers import end_transaction as end_half_message
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_NONE, TRANSACTION_ROLLBACK
from pocketmq.protocol.requests.send import EndTransaction

from ..calls.broker_call import BrokerCall
from ..calls.handler import PROXY, RpcRefused
from ..calls.rpc_call import RpcCall
from ..conversion.names import checked_topic
from ..messages import (
    OK,
    Code,
    EndTransactionRequest,
    EndTransactionResponse,
    TransactionResolution,
    TransactionSource,
)
from .producing import Producing

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
    try:
        end_half_message(producing.transactions, end, BrokerCall(peer, end.code, language=peer.language))
    except (Refusal, BodyError) as error:
        _log.info("%r cannot end transaction %s of topic %s: %s", peer, transaction_id, topic, error)
    return EndTransactionResponse(status=OK)
