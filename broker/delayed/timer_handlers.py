"""Requests about the timer: 370 recalls a message, 60 and 61 answer the state of the timer to slaves and tools.

A recall is stored as a message for the same slot, with TIMER_DEL_UNIQKEY. Only when the slot is delivered, the timer
finds out whether the recalled message exists. Mirrors `RecallMessageProcessor` and `AdminBrokerProcessor`.
"""

from pocketmq.core.properties import stored_text
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import PERM_WRITE
from pocketmq.protocol.message.recall_handle import RecallHandle, decode_recall_handle
from pocketmq.protocol.requests.replication import GetTimerCheckPoint, GetTimerMetrics
from pocketmq.protocol.requests.send import RecallMessage, RecallMessageReply
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus, StoreError

from ..errors import Refusal
from ..network.dispatch import Answer, Call, handles
from ..state.part import UNSET_REMARK
from ..storing.messages import changes_of, own_message
from ..storing.numbers import parse_number
from .delayed import Delayed
from .delayed_sends import delay_until
from .timer_delivery import deletion_key

_UNAVAILABLE = "recall failed, broker service not available"
_RECALL_TAG = "_RECALL_TAG_"
_BUCKETS = 16
"""The official broker creates this map with fewer buckets than the map of a received message."""


@handles(RecallMessage)
def recall_message(delayed: Delayed, request: RecallMessage, call: Call) -> Answer:
    try:
        handle = _check_recall(delayed, request)
        _store_recall(delayed, request, call, handle)
    except Refusal as error:
        return Answer(code=error.code, remark=error.remark, fields=_region(delayed))
    return Answer(
        reply=RecallMessageReply(msg_id=handle.message_id), remark=UNSET_REMARK, fields=_region(delayed)
    )


def _region(delayed: Delayed) -> dict[str, str]:
    return {"MSG_REGION": delayed.config.region_id}


def _check_recall(delayed: Delayed, request: RecallMessage) -> RecallHandle:
    """Check the request in the official order, and read its handle. Raises `Refusal`."""
    config, now_ms = delayed.config, delayed.clock.now_ms()
    if not config.recall_message_enable:
        raise Refusal(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
    if config.is_slave:
        raise Refusal(ResponseCode.SLAVE_NOT_AVAILABLE, _UNAVAILABLE)
    if now_ms < config.start_accept_send_request_time_stamp:
        raise Refusal(ResponseCode.SERVICE_NOT_AVAILABLE, _UNAVAILABLE)
    if not config.broker_permission & PERM_WRITE and not config.allow_recall_when_broker_not_writeable:
        raise Refusal(ResponseCode.SERVICE_NOT_AVAILABLE, _UNAVAILABLE)
    if delayed.topics.find(request.topic) is None:
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


def _store_recall(delayed: Delayed, request: RecallMessage, call: Call, handle: RecallHandle) -> None:
    now_ms = delayed.clock.now_ms()
    properties = {
        names.TAGS: _RECALL_TAG,
        names.TIMER_DEL_UNIQKEY: deletion_key(delayed.config, handle.topic, handle.message_id),
        names.UNIQ_KEY: handle.message_id,
        names.TIMER_DELIVER_MS: handle.deliver_ms,
        names.BORN_TIMESTAMP: str(now_ms),
        names.TRACE_CONTEXT: "",
        names.PGROUP: request.producer_group,
    }
    kept = {name: value for name, value in properties.items() if value is not None}
    message = own_message(delayed.state, handle.topic, 0, b"0", changes_of(kept))
    message.born_host = call.connection.packed_host
    try:
        message = delay_until(delayed, message, int(handle.deliver_ms), is_recall=True)
    except Refusal:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "recall failed, execute error") from None
    message.properties = stored_text(b"", message.changes or (), _BUCKETS, delayed.is_5)
    message.changes = None
    result = delayed.store.append(message)
    if result.status is not PutStatus.PUT_OK:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "recall failed, execute error")
    delayed.statistics.count_put(message.topic, 1, result.size)


@handles(GetTimerCheckPoint)
def get_timer_check_point(delayed: Delayed, request: GetTimerCheckPoint) -> Answer:
    """The checkpoint of the timer, in the form of its file."""
    if not delayed.timer.is_served:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The checkpoint is null")
    try:
        return Answer(body=delayed.timer.checkpoint())
    except StoreError as error:
        raise Refusal(ResponseCode.SYSTEM_ERROR, str(error)) from error


@handles(GetTimerMetrics)
def get_timer_metrics(delayed: Delayed, request: GetTimerMetrics) -> Answer:
    """The number of waiting messages of each topic, in the form of the file."""
    if not delayed.timer.is_served:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "The timerMessageStore is null")
    return Answer(body=delayed.timer.metrics.to_json())
