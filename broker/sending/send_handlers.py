"""Stores what producers send: 10, 310 and the batch 320.

    send_checks.py        refuse, or find the topic
    here                  choose the queue, add the broker's properties
                          reroute: retry limit, priority, half message, delay level, time
                          append to the store
    durable_answers.py    answer once the message is durable

Batches are in `batches.py`. Mirrors `SendMessageProcessor`.
"""

from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.offset_id import encode_message_id
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import is_retry_topic
from pocketmq.protocol.requests.send import AnySend, SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import PutStatus

from ..delayed.timer_sends import asks_for_time, recall_handle
from ..errors import Refusal
from ..network.dispatch import Answer, Call, Held, handles
from ..state.refusals import refusal_of
from ..storing.numbers import INT_MAX, number_property
from ..transactions.half_messages import half_message
from .batches import store_batch
from .durable_answers import STORED, answer_when_durable, send_answer
from .plain_sends import complete, plain_message, stored_text
from .retry_handlers import redirect_if_exhausted
from .send_checks import asks_for_delay, check_send, queue_of
from .sending import Sending


@handles(SendMessage, SendMessageV2)
def send_message(sending: Sending, request: AnySend, call: Call) -> Answer | Held:
    """Store one message; the reply names its queue and offset."""
    if request.batch:
        return store_batch(sending, request, call)
    topic_config = check_send(sending, request, call)
    queue_id = queue_of(request, topic_config, sending.random)
    properties = decode_properties(request.properties or "")
    topic, is_5 = request.topic, sending.is_5
    if topic[0] == "%" and is_retry_topic(topic):
        topic, queue_id = redirect_if_exhausted(sending, request, call, properties, queue_id)
    is_half = names.TRAN_MSG in properties and _is_half(sending, request, properties)
    unique_id = complete(sending, properties)
    if is_5:
        if request.sys_flag & flags.INNER_BATCH or names.INNER_NUM in properties:
            raise refusal_of(sending.config, PutStatus.MESSAGE_ILLEGAL)  # no topic here has queues of batches
        if names.PRIORITY in properties:
            queue_id = _queue_of_priority(properties, queue_id, topic_config)
    # Rerouting a message encodes its properties, so 5.x does not encode them here. 4.9 must do so: see `stored_text`.
    has_time = is_5 and asks_for_time(properties)
    may_reroute = has_time or (is_5 and (is_half or names.DELAY in properties))
    text = b"" if may_reroute else stored_text(sending, properties)
    message = plain_message(
        sending,
        request,
        topic,
        queue_id,
        topic_config,
        call.body,
        call.connection.packed_host,
        properties,
        text,
    )
    if is_half:
        message = half_message(sending.config, message)
    if names.DELAY in properties:
        message = sending.delayed.delay_if_asked(message)
    if has_time:
        message = sending.delayed.time_if_asked(message)
    if may_reroute and message.topic == topic:
        message.properties = stored_text(sending, properties)
    result = sending.store.append(message)
    if result.status is not PutStatus.PUT_OK and result.status not in STORED:
        raise refusal_of(sending.config, result.status)
    sending.statistics.message_put(message.topic, 1, result.size, message.queue_id)
    answer = send_answer(
        sending, result, encode_message_id(sending.store_host, result.position), queue_id, unique_id
    )
    if is_5:
        if is_half:
            sending.transactions.open_count.add(properties[names.REAL_TOPIC], 1)
        if (
            names.TIMER_OUT_MS in properties
            and (handle := recall_handle(sending.config, message)) is not None
        ):
            answer.fields = {**(answer.fields or {}), "recallHandle": handle}
    return answer_when_durable(sending, call, answer, result, properties)


@handles(SendBatchMessage)
def send_batch_message(sending: Sending, request: SendBatchMessage, call: Call) -> Answer | Held:
    """Store the messages of one batch under consecutive offsets, all or none; the reply names the first offset."""
    return store_batch(sending, request, call)


def _is_half(sending: Sending, request: AnySend, properties: dict[str, str]) -> bool:
    """Whether this is a half message. Raises `Refusal` if the broker rejects transactions."""
    if properties[names.TRAN_MSG].lower() != "true":
        return False
    if sending.is_5 and (request.reconsume_times or 0) > 0 and asks_for_delay(properties):
        return False  # a consumer sends back a message that was a half message before
    if sending.config.reject_transaction_message:
        remark = f"the broker[{sending.config.broker_ip1}] sending transaction message is forbidden"
        raise Refusal(ResponseCode.NO_PERMISSION, remark)
    return True


def _queue_of_priority(properties: dict[str, str], queue_id: int, topic_config: TopicConfig) -> int:
    """The queue whose number is the priority of the message, or the last queue if the priority is higher (5.5)."""
    priority = number_property(properties, names.PRIORITY, 0, INT_MAX)
    steered = (
        names.DELAY,
        names.SHARDING_KEY,
        names.TIMER_DELAY_SEC,
        names.TIMER_DELAY_MS,
        names.TIMER_DELIVER_MS,
    )
    if priority is None or any(name in properties for name in steered):
        del properties[names.PRIORITY]
        return queue_id
    return min(priority, topic_config.write_queue_nums - 1)
