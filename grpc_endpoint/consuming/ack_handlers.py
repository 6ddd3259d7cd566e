"""AckMessage and ChangeInvisibleDuration: what a client says about messages that it received.

Both take the message out of automatic renewal (`renewal.py`); after a change nothing renews it. Mirrors
`AckMessageActivity` and `ChangeInvisibleDurationActivity`.
"""

from ..calls.refusals import RpcRefused
from ..calls.registry import rpc
from ..calls.rpc_call import RpcCall
from ..forms.names import checked_group, checked_topic
from ..messages import (
    OK,
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    AckMessageResultEntry,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    Code,
    Status,
)
from .consuming import Consuming
from .delivered import Delivered
from .receipt_handle import parse_handle
from .receive_handlers import check_invisible_time

_NOT_ACKNOWLEDGED = Status(code=Code.INTERNAL_SERVER_ERROR, message="ack failed: status is abnormal")


@rpc(AckMessageRequest)
def ack_message(consuming: Consuming, request: AckMessageRequest, call: RpcCall) -> AckMessageResponse:
    """Each entry is acknowledged by itself, and has a status of its own."""
    consuming.clients.checked(call, request)
    topic = checked_topic(request.topic, consuming.broker.topics)
    group = checked_group(request.group)
    if not request.entries:
        raise RpcRefused(Code.INTERNAL_SERVER_ERROR, "ack message result is empty")
    entries = [
        AckMessageResultEntry(
            message_id=entry.message_id,
            receipt_handle=entry.receipt_handle,
            status=_ack(consuming, call, group, topic, entry),
        )
        for entry in request.entries
    ]
    codes = {entry.status.code for entry in entries}
    code = codes.pop() if len(codes) == 1 else Code.MULTIPLE_RESULTS
    return AckMessageResponse(status=Status(code=code, message=code.name), entries=entries)


def _ack(consuming: Consuming, call: RpcCall, group: str, topic: str, entry: AckMessageEntry) -> Status:
    try:
        sent = Delivered(consuming.broker, group, topic, parse_handle(entry.receipt_handle))
        delivered = consuming.renewal.take(call.client_id, entry.message_id, sent)
        delivered.refuse_expired()
    except RpcRefused as refused:
        return refused.status
    return OK if delivered.acknowledge() else _NOT_ACKNOWLEDGED


@rpc(ChangeInvisibleDurationRequest)
def change_invisible_duration(
    consuming: Consuming, request: ChangeInvisibleDurationRequest, call: RpcCall
) -> ChangeInvisibleDurationResponse:
    """Hide a message for a new time, which starts now. The reply has the handle to acknowledge it with."""
    consuming.clients.checked(call, request)
    topic = checked_topic(request.topic, consuming.broker.topics)
    group = checked_group(request.group)
    invisible_ms = request.invisible_duration.ms
    check_invisible_time(invisible_ms, 0, consuming.settings.max_invisible_time_ms)
    sent = Delivered(consuming.broker, group, topic, parse_handle(request.receipt_handle))
    delivered = consuming.renewal.take(call.client_id, request.message_id, sent)
    delivered.refuse_expired()
    handle = delivered.hide(
        invisible_ms, is_strict=consuming.settings.strict, is_suspended=bool(request.suspend)
    )
    if handle is None:
        text = "changeInvisibleDuration failed: status is abnormal"
        raise RpcRefused(Code.INTERNAL_SERVER_ERROR, text)
    return ChangeInvisibleDurationResponse(status=OK, receipt_handle=str(handle))
