"""ForwardMessageToDeadLetterQueue: a client gives a message up, after the last try of a FIFO group.

The message is copied to `%DLQ%group` and acknowledged. Mirrors `ForwardMessageToDLQActivity`.
"""

import logging

from pocketmq.broker.errors import Refusal

from ..calls.handler import PROXY, RpcRefused, code_of
from ..calls.rpc_call import RpcCall
from ..conversion.names import checked_group, checked_topic
from ..messages import (
    Code,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
    Status,
)
from .consuming import Consuming
from .delivery import Delivery
from .receipt_handle import parse_handle

_log = logging.getLogger("pocketmq.grpc")
_SUCCESS_TEXT = "0"
"""The official proxy writes the response code where the broker's reply has no remark."""


def forward_message_to_dead_letter_queue(
    consuming: Consuming, request: ForwardMessageToDeadLetterQueueRequest, call: RpcCall
) -> ForwardMessageToDeadLetterQueueResponse:
    """Copy the message to the dead letters of its group, and acknowledge it. Its handle may have expired."""
    consuming.clients.check(call, request)
    topic = checked_topic(request.topic, consuming.broker.topics)
    group = checked_group(request.group)
    sent = Delivery(consuming.broker, group, topic, parse_handle(request.receipt_handle))
    delivered = consuming.renewal.take(call.client_id, request.message_id, sent)
    if delivered.handle.position < 0:
        raise RpcRefused(Code.INVALID_RECEIPT_HANDLE, f"{PROXY}commit log offset is empty")
    if not consuming.config.grpc_strict:
        _refuse_other_record(delivered)
    try:
        delivered.make_dead_letter(request.message_id)
    except Refusal as refusal:
        status = Status(code=code_of(refusal.code), message=refusal.remark or str(refusal.code))
        return ForwardMessageToDeadLetterQueueResponse(status=status)
    delivered.acknowledge()
    return ForwardMessageToDeadLetterQueueResponse(status=Status(code=Code.OK, message=_SUCCESS_TEXT))


def _refuse_other_record(delivered: Delivery) -> None:
    """A forged position would copy a message that the client may have no right to read."""
    if not delivered.is_at_its_position():
        text = f"the message at position {delivered.handle.position} is not the one of the receipt handle"
        raise RpcRefused(Code.INVALID_RECEIPT_HANDLE, text)


def give_up(consuming: Consuming, delivered: Delivery, message_id: str) -> bool:
    """A message was delivered as often as its group allows. False if it cannot be copied: it is delivered once more."""
    try:
        delivered.make_dead_letter(message_id)
    except Refusal as refusal:
        _log.warning("%s of %s is no dead letter: %s", message_id, delivered.group, refusal.remark)
        return False
    return delivered.acknowledge()
