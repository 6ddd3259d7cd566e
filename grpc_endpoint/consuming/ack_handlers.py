"""AckMessage, ChangeInvisibleDuration, ForwardMessageToDeadLetterQueue: what becomes of messages that were received.

Each takes the message out of automatic renewal (`renewal.py`); after a change nothing renews it. A message that a
client gives up, after the last try of a FIFO group, is copied to `%DLQ%group` and acknowledged. Answers wait until what
was stored is durable. Mirrors `AckMessageActivity`, `ChangeInvisibleDurationActivity` and
`ForwardMessageToDLQActivity`.
"""

import logging
from typing import Final

from pocketmq.broker.errors import Refusal

from ..calls.handler import ANSWERS_LATER, ANSWERS_WITH_PASS, PROXY, Deferred, RpcRefused, code_of
from ..calls.rpc_call import RpcCall
from ..messages import (
    OK,
    AckMessageEntry,
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    Code,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
    Status,
    ms_of,
)
from .consuming import NOT_ACKNOWLEDGED, Consuming, Outcome
from .receive_handlers import check_invisible_time

_log = logging.getLogger("pocketmq.grpc")
_SUCCESS_TEXT: Final = "0"
"""The official proxy writes the response code where the broker's reply has no remark."""


def ack_message(consuming: Consuming, request: AckMessageRequest, call: RpcCall) -> Deferred:
    """Each entry is acknowledged by itself, and has a status of its own."""
    topic, group = consuming.checked_names(call, request)
    entries = request.entries[:]
    if not entries:
        raise RpcRefused(Code.INTERNAL_SERVER_ERROR, "ack message result is empty")
    refusals: list[str] = []
    outcomes = [_ack(consuming, call, group, topic, entry, refusals) for entry in entries]
    if refusals:
        _log.info("%d messages are not acknowledged for %s, the first: %s", len(refusals), group, refusals[0])
    consuming.acks.add(call, entries, outcomes)
    return ANSWERS_WITH_PASS


def _ack(
    consuming: Consuming, call: RpcCall, group: str, topic: str, entry: AckMessageEntry, refusals: list[str]
) -> Outcome:
    """The outcome of one entry; what the broker refuses is added to `refusals`."""
    try:
        delivered = consuming.take(call, group, topic, entry)
        delivered.refuse_expired()
    except RpcRefused as refused:
        return refused.status
    try:
        return delivered.prepare_ack() or OK
    except Refusal as error:
        refusals.append(f"{delivered.handle}: {error}")
        return NOT_ACKNOWLEDGED


def change_invisible_duration(
    consuming: Consuming, request: ChangeInvisibleDurationRequest, call: RpcCall
) -> Deferred:
    """Hide a message for a new time, which starts now. The reply has the handle to acknowledge it with."""
    topic, group = consuming.checked_names(call, request)
    invisible_ms = ms_of(request.invisible_duration)
    check_invisible_time(invisible_ms, 0, consuming.config.max_invisible_time_mills)
    delivered = consuming.take(call, group, topic, request)
    delivered.refuse_expired()
    handle = delivered.hide(
        invisible_ms, is_strict=consuming.config.grpc_strict, is_suspended=request.suspend
    )
    if handle is None:
        text = "changeInvisibleDuration failed: status is abnormal"
        raise RpcRefused(Code.INTERNAL_SERVER_ERROR, text)
    reply = ChangeInvisibleDurationResponse(status=OK, receipt_handle=str(handle))
    consuming.durable_log.run_when_durable(lambda: call.answer(reply))
    return ANSWERS_LATER


def forward_message_to_dead_letter_queue(
    consuming: Consuming, request: ForwardMessageToDeadLetterQueueRequest, call: RpcCall
) -> ForwardMessageToDeadLetterQueueResponse | Deferred:
    """Copy the message to the dead letters of its group, and acknowledge it. Its handle may have expired."""
    topic, group = consuming.checked_names(call, request)
    delivered = consuming.take(call, group, topic, request)
    if delivered.handle.position < 0:
        raise RpcRefused(Code.INVALID_RECEIPT_HANDLE, f"{PROXY}commit log offset is empty")
    if not consuming.config.grpc_strict and not delivered.is_at_its_position():
        # A forged position would copy a message that the client may have no right to read.
        text = f"the message at position {delivered.handle.position} is not the one of the receipt handle"
        raise RpcRefused(Code.INVALID_RECEIPT_HANDLE, text)
    try:
        delivered.make_dead_letter(request.message_id)
    except Refusal as refusal:
        status = Status(code=code_of(refusal.code), message=refusal.remark or str(refusal.code))
        return ForwardMessageToDeadLetterQueueResponse(status=status)
    delivered.acknowledge()
    reply = ForwardMessageToDeadLetterQueueResponse(status=Status(code=Code.OK, message=_SUCCESS_TEXT))
    consuming.durable_log.run_when_durable(lambda: call.answer(reply))
    return ANSWERS_LATER
