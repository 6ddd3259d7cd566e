"""Storing what producers send: 10, 310 and the batch 320.

Checks first (`send_checks.py`); then the broker adds its properties, reroutes the message if a property asks for it
(retry limit, priority, delay), and the store appends it. The answer leaves when the message is durable
(`durable_answers.py`). Mirrors `SendMessageProcessor`.
"""

import random

from pocketmq.protocol.bodies.topic_config import MULTI_TAG, TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import decode_batch
from pocketmq.protocol.message.offset_id import encode_message_id, encode_message_ids
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import MAX_TOPIC_LENGTH, is_retry_topic
from pocketmq.protocol.requests.send import AnySend, SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import AppendResult, NewMessage, PutStatus

from ..delayed.timer_sends import asks_for_time, recall_handle
from ..errors import Refusal
from ..network.dispatch import Answer, Call, Held, handles
from ..state.refusals import refusal_of
from ..storing.numbers import INT_MAX, number_property
from ..storing.stored_properties import stored_properties
from ..transactions.half_messages import half_message
from .durable_answers import answer_when_durable
from .retry_handlers import redirect_if_exhausted
from .send_checks import check_send
from .sending import Sending


@handles(SendMessage, SendMessageV2)
def send_message(sending: Sending, request: AnySend, call: Call) -> Answer | Held:
    """Store one message; the reply names its queue and offset."""
    if request.batch:
        return _store_batch(sending, request, call)
    topic_config = check_send(sending, request, call)
    queue_id = queue_of(request, topic_config)
    properties = decode_properties(request.properties or "")
    topic, is_5 = request.topic, sending.is_5
    if topic[0] == "%" and is_retry_topic(topic):
        topic, queue_id = redirect_if_exhausted(sending, request, call, properties, queue_id)
    is_half = names.TRAN_MSG in properties and _is_half(sending, request, properties)
    unique_id = _complete(sending, properties)
    if is_5:
        if request.sys_flag & flags.INNER_BATCH or names.INNER_NUM in properties:
            raise refusal_of(sending.config, PutStatus.MESSAGE_ILLEGAL)  # no topic here has queues of batches
        if names.PRIORITY in properties:
            queue_id = _queue_of_priority(properties, queue_id, topic_config)
    # The text of a message that takes a detour is made there; 4.9 has to make it here too, see `_stored`.
    has_time = is_5 and asks_for_time(properties)
    may_wait = has_time or (is_5 and (is_half or names.DELAY in properties))
    message = NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=call.body,
        properties=b"" if may_wait else _stored(sending, properties),
        property_map=properties,
        flag=request.flag,
        sys_flag=request.sys_flag | (flags.MULTI_TAGS if topic_config.topic_filter_type == MULTI_TAG else 0),
        born_timestamp=request.born_timestamp,
        born_host=call.connection.packed_host,
        store_host=sending.store_host,
        reconsume_times=request.reconsume_times or 0,
    )
    if is_half:
        message = half_message(sending.config, message)
    if names.DELAY in properties:
        message = sending.delayed.delay_if_asked(message)
    if has_time:
        message = sending.delayed.time_if_asked(message)
    if may_wait and message.topic == topic:
        message.properties = _stored(sending, properties)
    result = sending.store.append(message)
    if result.status is not PutStatus.PUT_OK and result.status not in STORED:
        raise refusal_of(sending.config, result.status)
    sending.statistics.message_put(message.topic, 1, result.size, message.queue_id)
    answer = _answer(
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
    return _store_batch(sending, request, call)


STORED = frozenset(
    (
        PutStatus.PUT_OK,
        PutStatus.FLUSH_DISK_TIMEOUT,
        PutStatus.FLUSH_SLAVE_TIMEOUT,
        PutStatus.SLAVE_NOT_AVAILABLE,
    )
)
"""Statuses that mean the message is in the log."""


def _store_batch(sending: Sending, request: AnySend, call: Call) -> Answer | Held:
    topic_config = check_send(sending, request, call)
    topic = request.topic
    if len(topic) > MAX_TOPIC_LENGTH:
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(topic)}")
    if sending.is_5 and is_retry_topic(topic):
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, f"batch request does not support retry group {topic}")
    queue_id = queue_of(request, topic_config)
    shared = decode_properties(request.properties or "")
    if len(call.body) > sending.config.store.max_message_size or _cannot_be_batched(request, shared):
        raise refusal_of(sending.config, PutStatus.MESSAGE_ILLEGAL)
    messages = _elements(sending, request, call, queue_id, shared)
    results = sending.store.append_batch(messages)
    if not results or results[0].status not in STORED:
        raise refusal_of(sending.config, results[0].status if results else PutStatus.MESSAGE_ILLEGAL)
    sending.statistics.message_put(topic, len(results), sum([result.size for result in results]))
    message_ids = encode_message_ids(sending.store_host, [result.position for result in results])
    answer = _answer(sending, results[0], message_ids, queue_id, shared.get(names.UNIQ_KEY))
    return answer_when_durable(sending, call, answer, results[-1], shared)


def _elements(
    sending: Sending, request: AnySend, call: Call, queue_id: int, shared: dict[str, str]
) -> list[NewMessage]:
    # The 4.9 line adds the batch's own properties to each message, 5.x stores each message as it came.
    added = b""
    if not sending.is_5:
        shared[names.CLUSTER] = sending.config.broker_cluster_name
        added = stored_properties(shared, is_5=sending.is_5)
    topic, sys_flag, born_timestamp = request.topic, request.sys_flag, request.born_timestamp
    born_host, store_host = call.connection.packed_host, sending.store_host
    reconsume_times = request.reconsume_times or 0
    messages = []
    for element in decode_batch(call.body):
        properties = bytes(element.properties)
        if added:
            separator = b"" if not properties or properties.endswith(b"\x02") else b"\x02"
            properties = properties + separator + added
        messages.append(
            NewMessage(
                topic,
                queue_id,
                element.body,
                properties,
                decode_properties(properties),
                element.flag,
                sys_flag,
                born_timestamp,
                born_host,
                store_host,
                reconsume_times,
            )
        )
    return messages


def _cannot_be_batched(request: AnySend, shared: dict[str, str]) -> bool:
    return flags.transaction_type(request.sys_flag) != flags.TRANSACTION_NONE or _asks_for_delay(shared)


def _asks_for_delay(properties: dict[str, str]) -> bool:
    return number_property(properties, names.DELAY, 1, INT_MAX) is not None


def _is_half(sending: Sending, request: AnySend, properties: dict[str, str]) -> bool:
    """Whether this is the first half of a transaction; refused where the broker takes none."""
    if properties[names.TRAN_MSG].lower() != "true":
        return False
    if sending.is_5 and (request.reconsume_times or 0) > 0 and _asks_for_delay(properties):
        return False  # a consumer gives back what once was a half message
    if sending.config.reject_transaction_message:
        remark = f"the broker[{sending.config.broker_ip1}] sending transaction message is forbidden"
        raise Refusal(ResponseCode.NO_PERMISSION, remark)
    return True


def _complete(sending: Sending, properties: dict[str, str]) -> str | None:
    """Add what the broker adds to every single message; returns its unique id."""
    config = sending.config
    unique_id = properties.get(names.UNIQ_KEY)
    if sending.is_5:
        properties[names.MSG_REGION] = config.region_id
        properties[names.TRACE_ON] = "true" if config.trace_on else "false"
        properties.pop(names.POP_CK, None)
        if unique_id is None:
            unique_id = properties[names.UNIQ_KEY] = sending.unique_ids.next()
    properties[names.CLUSTER] = config.broker_cluster_name
    return unique_id


def _stored(sending: Sending, properties: dict[str, str]) -> bytes:
    is_5 = sending.is_5
    if is_5 or names.WAIT not in properties:
        return stored_properties(properties, is_5=is_5)
    # The 4.9 line does not store it, then puts it back, which makes it the youngest of its bucket: a message that is
    # stored anew because it is delayed keeps it, at that place.
    wait = properties.pop(names.WAIT)
    stored = stored_properties(properties, is_5=is_5)
    properties[names.WAIT] = wait
    return stored


def queue_of(request: AnySend, topic_config: TopicConfig) -> int:
    """The queue asked for; a negative one leaves the choice to the broker."""
    if request.queue_id >= 0:
        return request.queue_id
    return random.randrange(max(topic_config.write_queue_nums, 1))


def _queue_of_priority(properties: dict[str, str], queue_id: int, topic_config: TopicConfig) -> int:
    """A message with a priority goes to the queue of that number, the highest for all above (5.5)."""
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


def _answer(
    sending: Sending, result: AppendResult, message_id: str, queue_id: int, unique_id: str | None
) -> Answer:
    # A plain dict instead of a SendMessageReply: this is the hottest answer there is.
    fields = {
        "msgId": message_id,
        "queueId": str(queue_id),
        "queueOffset": str(result.queue_offset),
        "MSG_REGION": sending.config.region_id,
        "TRACE_ON": "true" if sending.config.trace_on else "false",
    }
    if unique_id is not None and sending.is_5:
        fields["transactionId"] = unique_id
    return Answer(fields=fields)
