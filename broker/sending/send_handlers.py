"""Stores what producers send: 10, 310 and the batch 320.

    decision.py           refuse, or what holds for all sends of this kind
    here                  the message of one send: queue, text, rerouting (retry limit, half, delay, time, priority)
    sends.py              the sends of a pass: stored together, answered together
    durable_answers.py    answer once the message is durable

Mirrors `SendMessageProcessor`.
"""

from typing import Final, NamedTuple

from pocketmq.core.properties import read_properties, stored_text
from pocketmq.core.records import Head, Message
from pocketmq.core.sends import Send, send_of
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import decode_batch
from pocketmq.protocol.message.offset_id import encode_message_ids
from pocketmq.protocol.message.topics import HALF_TOPIC, is_retry_topic
from pocketmq.protocol.requests.send import AnySend, SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import NewMessage, PutStatus
from pocketmq.store.put_values import RefusedError

from ..delayed.timer_sends import asks_for_time, recall_handle
from ..errors import Refusal
from ..network.dispatch import Answer, Call, Held, Peer, handles
from ..state.refusals import refusal_of
from ..storing.numbers import INT_MAX, number_property
from ..storing.stored_properties import BUCKETS, stored_properties
from ..transactions.half_messages import half_message
from .batches import batch_message
from .decision import Decision, decide
from .durable_answers import answer_when_durable, send_answer
from .retry_handlers import redirect_if_exhausted
from .send_checks import asks_for_delay, check_properties, queue_of
from .sending import Sending

_UNIQ_KEY: Final = names.UNIQ_KEY.encode()
_MAX_HEADS: Final = 64
"""Of one decision; a head has some 200 bytes."""


class Prepared(NamedTuple):
    """A send whose message is ready to be stored."""

    send: Send
    decision: Decision
    message: Message
    queue_id: int
    """Of the answer."""
    unique_id: bytes | None
    rerouted: NewMessage | None
    """The message again, if its properties say where it is stored."""


@handles(SendMessage, SendMessageV2, SendBatchMessage)
def send_message(sending: Sending, request: AnySend, call: Call) -> Answer | Held:
    """Store a message, or the messages of a batch under consecutive offsets, all or none; the reply names its queue,
    its (first) offset and its id (every id)."""
    check_properties(sending, request.properties or "")
    text = (request.properties or "").encode("utf-8", "replace")
    properties = read_properties(text)
    decision = decide(sending, request, call, properties)
    send = send_of(request, text, properties.get(names.UNIQ_KEY), call.body, call.command.opaque)
    prepared = prepare(sending, decision, send, call.connection)
    placed = sending.store.append_all([prepared.message])
    if placed.refusal is not None:
        raise refused(sending, prepared, placed.refusal)
    handle = count_stored(sending, prepared, len(placed.sizes), sum(placed.sizes))
    answer = send_answer(
        sending,
        placed.runs[0][1],
        encode_message_ids(sending.store_host, placed.positions),
        prepared.queue_id,
        prepared.unique_id,
    )
    if handle is not None:
        answer.fields = {**(answer.fields or {}), "recallHandle": handle}
    return answer_when_durable(sending, call, answer, placed.end, prepared.send.properties)


def prepare(sending: Sending, decision: Decision, send: Send, connection: Peer) -> Prepared:
    """The message of a send. Raises `Refusal`."""
    queue_id, born_host = send.queue_id, connection.packed_host
    if not 0 <= queue_id < decision.queues:
        queue_id = queue_of(sending, queue_id, decision.topic_config, connection.peer)
    if decision.is_batch:
        message = batch_message(sending, decision, send, queue_id, head_of(sending, decision, born_host))
        return Prepared(send, decision, message, queue_id, send.unique_id, None)
    if not decision.is_plain:
        return _prepare_rerouted(sending, decision, send, queue_id, born_host)
    unique_id, changes = send.unique_id, decision.changes
    if unique_id is None and sending.is_5:
        unique_id = sending.unique_ids.next().encode()
        changes = (*changes[:-2], _UNIQ_KEY, unique_id, *changes[-2:])
    is_5 = sending.is_5
    message = (
        decision.heads.get(born_host) or head_of(sending, decision, born_host),
        queue_id,
        send.body,
        stored_text(send.properties, changes, BUCKETS[is_5], is_5),
        send.born_timestamp,
        0,
        None,
    )
    return Prepared(send, decision, message, queue_id, unique_id, None)


def head_of(sending: Sending, decision: Decision, born_host: bytes) -> Head:
    """What the records of such messages share. Raises `Refusal` for a topic that no record can hold."""
    head = decision.heads.get(born_host)
    if head is None:
        request = decision.request
        head = _head(
            sending, request.topic, request.flag, decision.sys_flag, born_host, request.reconsume_times or 0
        )
        if len(decision.heads) >= _MAX_HEADS:
            decision.heads.clear()
        decision.heads[born_host] = head
    return head


def _head(
    sending: Sending, topic: str, flag: int, sys_flag: int, born_host: bytes, reconsume_times: int
) -> Head:
    try:
        return sending.store.head(topic, flag, sys_flag, born_host, sending.store_host, reconsume_times)
    except RefusedError as error:
        raise refusal_of(sending.config, error.status) from error


def _prepare_rerouted(
    sending: Sending, decision: Decision, send: Send, queue_id: int, born_host: bytes
) -> Prepared:
    """The message of a send that its properties or its topic may store elsewhere."""
    request, is_5 = decision.request, sending.is_5
    properties = read_properties(send.properties)
    topic = request.topic
    if topic[0] == "%" and is_retry_topic(topic):
        topic, queue_id = redirect_if_exhausted(sending, request, decision.version, properties, queue_id)
    is_half = names.TRAN_MSG in properties and _is_half(sending, request, properties)
    unique_id = _complete(sending, properties)
    if is_5:
        if request.sys_flag & flags.INNER_BATCH or names.INNER_NUM in properties:
            raise refusal_of(sending.config, PutStatus.MESSAGE_ILLEGAL)  # no topic here has queues of batches
        if names.PRIORITY in properties:
            queue_id = _queue_of_priority(properties, queue_id, decision.topic_config)
    message = NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=send.body,
        properties=b"" if is_5 else _text_without_wait(properties),
        property_map=properties,
        flag=request.flag,
        sys_flag=decision.sys_flag,
        born_timestamp=send.born_timestamp,
        born_host=born_host,
        store_host=sending.store_host,
        reconsume_times=request.reconsume_times or 0,
    )
    if is_half:
        message = half_message(sending.config, message)
    if names.DELAY in properties:
        message = sending.delayed.delay_if_asked(message)
    if is_5 and asks_for_time(properties):
        message = sending.delayed.time_if_asked(message)
    if is_5 and message.topic == topic:  # rerouting has encoded the properties of any other
        message.properties = stored_properties(properties, is_5=True)
    head = _head(sending, message.topic, message.flag, message.sys_flag, born_host, message.reconsume_times)
    packed = (head, message.queue_id, message.body, message.properties, message.born_timestamp, 0, None)
    return Prepared(
        send, decision, packed, queue_id, None if unique_id is None else unique_id.encode(), message
    )


def _text_without_wait(properties: dict[str, str]) -> bytes:
    """The property text of the 4.9 line: without WAIT, which becomes the last in its hash bucket. A delayed message is
    encoded a second time: its text has WAIT, at that place."""
    wait = properties.pop(names.WAIT, None)
    text = stored_properties(properties, is_5=False)
    if wait is not None:
        properties[names.WAIT] = wait
    return text


def _complete(sending: Sending, properties: dict[str, str]) -> str | None:
    """Add the broker's properties to a map, in the order of `Sending.added`; returns the unique id."""
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


def refused(sending: Sending, prepared: Prepared, status: PutStatus) -> Exception:
    """Why a message was not stored: a `Refusal`, or BodyError for a batch that cannot be read."""
    if prepared.decision.is_batch:
        try:
            decode_batch(prepared.send.body)
        except BodyError as error:
            return error
    return refusal_of(sending.config, status)


def count_stored(sending: Sending, prepared: Prepared, count: int, size: int) -> str | None:
    """Count the messages of a send that are stored; returns the handle that recalls a timed one."""
    topic, message = prepared.message[0].topic, prepared.rerouted
    sending.statistics.message_put(topic, count, size, prepared.message[1])
    if message is None or not sending.is_5:
        return None
    properties = message.property_map
    if topic == HALF_TOPIC:
        sending.transactions.open_count.add(properties[names.REAL_TOPIC], 1)
    return recall_handle(sending.config, message) if names.TIMER_OUT_MS in properties else None


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
