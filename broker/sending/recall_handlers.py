"""370 recalls a timed message, before it is due.

A recall is stored as a message for the same slot, with TIMER_DEL_UNIQKEY, and answered when that is as durable as
broker.conf asks. Only when the slot is delivered, the timer finds out whether the recalled message exists. Mirrors
`RecallMessageProcessor`.
"""

from pocketmq.core.properties import stored_text
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import PERM_WRITE
from pocketmq.protocol.message.recall_handle import RecallHandle, decode_recall_handle
from pocketmq.protocol.requests.send import RecallMessage, RecallMessageReply
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus

from ..delayed.delayed_sends import delay_until
from ..delayed.timer_delivery import deletion_key
from ..errors import Refusal
from ..network.dispatch import Answer, Call, Held, handles
from ..state.part import UNSET_REMARK
from ..storing.messages import changes_of, own_message
from ..storing.numbers import parse_number
from .sending import Sending

_UNAVAILABLE = "recall failed, broker service not available"
_RECALL_TAG = "_RECALL_TAG_"
_BUCKETS = 16
"""The official broker creates this map with fewer buckets than the map of a received message."""


@handles(RecallMessage)
def recall_message(sending: Sending, request: RecallMessage, call: Call) -> Answer | Held:
    """Recall a message before it is due. Like the official answer, this one is the same if the disk or the slaves are
    too slow."""
    try:
        handle = _check_recall(sending, request)
        sending.durable_log.check_room()
        _store_recall(sending, request, call, handle)
    except Refusal as error:
        return Answer(code=error.code, remark=error.remark, fields=_region(sending))
    reply = RecallMessageReply(msg_id=handle.message_id)
    answer = Answer(reply=reply, remark=UNSET_REMARK, fields=_region(sending))
    return sending.durable_log.answer_when_durable(call, answer)


def _region(sending: Sending) -> dict[str, str]:
    return {"MSG_REGION": sending.config.region_id}


def _check_recall(sending: Sending, request: RecallMessage) -> RecallHandle:
    """Check the request in the official order, and read its handle. Raises `Refusal`."""
    config, now_ms = sending.config, sending.clock.now_ms()
    if not config.recall_message_enable:
        raise Refusal(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
    if config.is_slave:
        raise Refusal(ResponseCode.SLAVE_NOT_AVAILABLE, _UNAVAILABLE)
    if now_ms < config.start_accept_send_request_time_stamp:
        raise Refusal(ResponseCode.SERVICE_NOT_AVAILABLE, _UNAVAILABLE)
    if not config.broker_permission & PERM_WRITE and not config.allow_recall_when_broker_not_writeable:
        raise Refusal(ResponseCode.SERVICE_NOT_AVAILABLE, _UNAVAILABLE)
    if sending.topics.find(request.topic) is None:
        remark = f"recall failed, the topic[{request.topic}] not exist"
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, remark)
    try:
        handle = decode_recall_handle(request.recall_handle)
    except BodyError as error:
        raise Refusal(ResponseCode.ILLEGAL_OPERATION, str(error)) from None
    if handle.topic != request.topic:
        raise Refusal(ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match")
    if handle.broker_name != config.broker_name:
        raise Refusal(ResponseCode.ILLEGAL_OPERATION, _UNAVAILABLE)
    deliver_ms = parse_number(handle.deliver_ms, 0)
    if deliver_ms is None or not 0 < deliver_ms - now_ms < config.store.timer_max_delay_sec * 1000:
        raise Refusal(ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid")
    return handle


def _store_recall(sending: Sending, request: RecallMessage, call: Call, handle: RecallHandle) -> None:
    now_ms = sending.clock.now_ms()
    properties = {
        names.TAGS: _RECALL_TAG,
        names.TIMER_DEL_UNIQKEY: deletion_key(sending.config, handle.topic, handle.message_id),
        names.UNIQ_KEY: handle.message_id,
        names.TIMER_DELIVER_MS: handle.deliver_ms,
        names.BORN_TIMESTAMP: str(now_ms),
        names.TRACE_CONTEXT: "",
        names.PGROUP: request.producer_group,
    }
    kept = {name: value for name, value in properties.items() if value is not None}
    message = own_message(sending.state, handle.topic, 0, b"0", changes_of(kept))
    message.born_host = call.connection.packed_host
    try:
        message = delay_until(sending.delayed, message, int(handle.deliver_ms), is_recall=True)
    except Refusal:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "recall failed, execute error") from None
    message.properties = stored_text(b"", message.changes or (), _BUCKETS, sending.config.is_5)
    message.changes = None
    result = sending.store.append(message)
    if result.status is not PutStatus.PUT_OK:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "recall failed, execute error")
    sending.statistics.count_put(message.topic, 1, result.size)
