"""AckMessage and ChangeInvisibleDuration: what a client says about messages that it received.

Both take the message out of automatic renewal (`renewal.py`); after a change nothing renews it. Mirrors
`AckMessageActivity` and `ChangeInvisibleDurationActivity`.
"""

import logging

from pocketmq.broker.errors import Refusal

from ..calls.handler import ANSWERS_WITH_PASS, Deferred, RpcRefused
from ..calls.rpc_call import RpcCall
from ..conversion.names import checked_group, checked_topic
from ..messages import (
    OK,
    AckMessageEntry,
    AckMessageRequest,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    Code,
    ms_of,
)
from .ack_batch import NOT_ACKNOWLEDGED, Outcome
from .consuming import Consuming
from .delivery import Delivery
from .receipt_handle import parse_handle
from .receive_handlers import check_invisible_time

_log = logging.getLogger("pocketmq.grpc")


def ack_message(consuming: Consuming, request: AckMessageRequest, call: RpcCall) -> Deferred:
    """Each entry is acknowledged by itself, and has a status of its own."""
    consuming.clients.check(call, request)
    topic = checked_topic(request.topic, consuming.broker.topics)
    group = checked_group(request.group)
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
        sent = Delivery(consuming.broker, group, topic, parse_handle(entry.receipt_handle))
        delivered = consuming.renewal.take(call.client_id, entry.message_id, sent)
        delivered.refuse_expired()
    except RpcRefused as refused:
        return refused.status
    try:
        return delivered.acknowledged() or OK
    except Refusal as error:
        refusals.append(f"{delivered.handle}: {error}")
        return NOT_ACKNOWLEDGED


def change_invisible_duration(
    consuming: Consuming, request: ChangeInvisibleDurationRequest, call: RpcCall
) -> ChangeInvisibleDurationResponse:
    """Hide a message for a new time, which starts now. The reply has the handle to acknowledge it with."""
    consuming.clients.check(call, request)
    topic = checked_topic(request.topic, consuming.broker.topics)
    group = checked_group(request.group)
    invisible_ms = ms_of(request.invisible_duration)
    check_invisible_time(invisible_ms, 0, consuming.config.max_invisible_time_mills)
    sent = Delivery(consuming.broker, group, topic, parse_handle(request.receipt_handle))
    delivered = consuming.renewal.take(call.client_id, request.message_id, sent)
    delivered.refuse_expired()
    handle = delivered.hide(
        invisible_ms, is_strict=consuming.config.grpc_strict, is_suspended=request.suspend
    )
    if handle is None:
        text = "changeInvisibleDuration failed: status is abnormal"
        raise RpcRefused(Code.INTERNAL_SERVER_ERROR, text)
    return ChangeInvisibleDurationResponse(status=OK, receipt_handle=str(handle))
