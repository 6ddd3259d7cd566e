"""Stores what producers send (10, 310 and the batch 320): the message of one send, with its queue, text and rerouting.

Mirrors `SendMessageProcessor`.
"""

from collections.abc import Sequence
from itertools import chain
from typing import Final

import msgspec
from pocketmq.core.properties import BUCKETS, Changes, read_properties, read_values, stored_text
from pocketmq.core.records import Message
from pocketmq.core.sends import QUEUE_ID, UNIQUE_ID, Send, messages_of_sends, send_of
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import BatchElement, decode_batch, encode_batch, is_storable
from pocketmq.protocol.message.offset_id import encode_message_ids
from pocketmq.protocol.message.topics import HALF_TOPIC, MAX_TOPIC_LENGTH, is_retry_topic
from pocketmq.protocol.requests.send import AnySend, SendBatchMessage, SendMessage, SendMessageV2
from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import NewMessage, PutStatus
from pocketmq.store.put_values import Placed, RefusedError

from ..delayed.delayed_sends import (
    ASKS,
    check_slot,
    delay_if_asked,
    handle_of,
    recall_handle,
    slot_asked,
    time_if_asked,
)
from ..errors import Refusal
from ..network.dispatch import Answer, Call, Held, Peer, handles
from ..state.part import refusal_of
from ..storing.messages import values_in
from ..storing.numbers import INT_MAX, parse_number
from ..transactions.half_messages import half_message
from .decision import SLOT, Decision, Route, decide
from .durable_answers import answer_when_durable, send_answer
from .retry_handlers import redirect_if_exhausted
from .send_checks import MAX_SENT_PROPERTIES, check_properties, is_delay, queue_of
from .sending import Sending

_TIMED: Final = frozenset((*ASKS, names.TIMER_OUT_MS))
_WAIT: Final = (names.WAIT,)
_DELAY: Final = (names.DELAY,)
_OF_HALF: Final = (names.TRAN_MSG, names.DELAY)
_OF_PRIORITY: Final = (names.PRIORITY, names.DELAY, names.SHARDING_KEY, *ASKS)
"""The first has no effect beside one of the others."""


class Prepared(msgspec.Struct, gc=False, eq=False):
    """Sends of one decision, ready to be stored."""

    decision: Decision
    sends: list[Send]
    """With the queue id and the unique id of their answers."""
    messages: list[Message]
    """Of each send; a batch is one."""
    real_topic: str | None = None
    """Of half messages."""
    handles: list[str | None] | None = None
    """Those that recall timed messages."""

    def part(self, start: int, end: int | None) -> "Prepared":
        """Those of the sends with numbers from `start` up to and without `end`."""
        handles = None if self.handles is None else self.handles[start:end]
        return Prepared(
            self.decision, self.sends[start:end], self.messages[start:end], self.real_topic, handles
        )

    def records_in(self, placed: Placed, start: int) -> int:
        """How many records these sends became; the first has this number among those that were placed."""
        if not self.decision.is_batch:
            return len(self.sends)
        return sum([count for _, _, count in placed.runs[start : start + len(self.sends)]])

    def join(self, other: "Prepared") -> bool:
        """Add the sends of `other`; False, and nothing is added, if they are counted or answered in another way."""
        if (
            other.decision is not self.decision
            or other.real_topic != self.real_topic
            or (other.handles is None) is not (self.handles is None)
        ):
            return False
        self.sends += other.sends
        self.messages += other.messages
        if self.handles is not None and other.handles is not None:
            self.handles += other.handles
        return True


@handles(SendMessage, SendMessageV2, SendBatchMessage)
def send_message(sending: Sending, request: AnySend, call: Call) -> Answer | Held:
    """Store a message, or the messages of a batch under consecutive offsets, all or none; the reply names its queue,
    its (first) offset and its id (every id). Most sends are `Sends.handle`'s; one with access keys or an unusual header
    comes here."""
    check_properties(sending, request.properties or "")
    text = (request.properties or "").encode("utf-8", "replace")
    properties = read_properties(text)
    decision = decide(sending, request, call, properties)
    unique_id = properties.get(names.UNIQ_KEY)
    sent = send_of(request.queue_id, request.born_timestamp, text, unique_id, call.body)
    prepared, placed = store_send(sending, decision, sent, call.connection)
    [send], ids = prepared.sends, encode_message_ids(sending.store_host, placed.positions)
    answer = send_answer(sending, placed.runs[0][1], ids, send.queue_id, send.unique_id)
    if prepared.handles is not None and prepared.handles[0] is not None:
        answer.fields = {**(answer.fields or {}), "recallHandle": prepared.handles[0]}
    return answer_when_durable(sending, call, answer, placed.end, send.properties)


def store_send(sending: Sending, decision: Decision, send: Send, connection: Peer) -> tuple[Prepared, Placed]:
    """Store the message or batch of a send. Raises `Refusal`, or BodyError for a batch that cannot be read."""
    prepared = prepare(sending, decision, [send], 0, 1, connection)
    placed = sending.store.append_all(prepared.messages)
    if placed.refusal is not None:
        raise find_refusal(sending, prepared, placed.refusal)
    count_stored(sending, prepared, placed.sizes)
    return prepared, placed


def prepare(
    sending: Sending, decision: Decision, sends: list[Send], start: int, end: int, connection: Peer
) -> Prepared:
    """The message of send number `start`, of which the decision is, and perhaps of those behind it, before number
    `end`. Raises `Refusal`."""
    send, changes, born_host, is_5 = sends[start], decision.changes, connection.packed_host, sending.is_5
    if not 0 <= send.queue_id < decision.queues:
        queue_id = queue_of(sending, send.queue_id, decision.topic_config, connection.peer)
        sends, start, end = [send := send._replace(queue_id=queue_id)], 0, 1
    if decision.is_batch:
        return Prepared(decision, [send], [_batch_message(sending, decision, send, born_host)])
    if send.unique_id is None and is_5:
        unique_id = sending.unique_ids.next()
        send = send._replace(unique_id=unique_id.encode())
        changes = (*changes[:-2], names.UNIQ_KEY, unique_id, *changes[-2:])
        return _prepare_one(sending, decision, send, changes, born_host)[0]
    deciding, slot_ms = decision.deciding, None
    if deciding is None:
        return _prepare_one(sending, decision, send, changes, born_host)[0]
    values = read_values(send.properties, (), deciding) if deciding else ()
    if decision.is_timed:
        slot_ms = slot_asked(sending.delayed, decision.sys_flag, dict(zip(deciding, values, strict=True)))
        values = (None if slot_ms is None else names.TIMER_OUT_MS,)
    route = decision.routes.get((born_host, values))
    if route is None:
        prepared, changes = _prepare_one(sending, decision, send, changes, born_host)
        if (prepared.handles is None) is (slot_ms is None):  # the clock moves on meanwhile
            decision.keep_route(born_host, values, _route_of(prepared, changes))
        return prepared
    if slot_ms is not None and sending.delayed.timer.has_slot_limit:
        check_slot(sending.delayed, slot_ms)
        end = start + 1
    messages = messages_of_sends(
        *(sends, start, end, decision.queues, MAX_SENT_PROPERTIES, deciding),
        *(route.head, route.queue_id, route.changes_in(slot_ms), BUCKETS[is_5], is_5),
    )
    sends = sends[start : start + len(messages)]
    handles: list[str | None] | None = None
    if slot_ms is not None:
        unique_ids = [(send.unique_id or b"").decode("utf-8", "replace") for send in sends]
        topic = decision.request.topic
        handles = [handle_of(sending.config, topic, slot_ms, unique_id) for unique_id in unique_ids]
    return Prepared(decision, sends, messages, route.real_topic, handles)


def _batch_message(sending: Sending, decision: Decision, send: Send, born_host: bytes) -> Message:
    """The messages of a batch as one to append: several in one request (320, or 310 with its batch flag), stored all or
    none. Raises `Refusal`, in the 4.9 line BodyError for one that cannot be read.

    Mirrors `SendMessageProcessor.sendBatchMessage`.
    """
    request, topic, body = decision.request, decision.request.topic, send.body
    try:
        head = sending.store.head(
            topic,
            request.flag,
            decision.sys_flag,
            born_host,
            sending.store_host,
            request.reconsume_times or 0,
        )
    except RefusedError as error:
        raise refusal_of(sending.config, error.status) from error
    if len(topic) > MAX_TOPIC_LENGTH:
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(topic)}")
    if sending.is_5 and is_retry_topic(topic):
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, f"batch request does not support retry group {topic}")
    if (
        len(body) > sending.config.store.max_message_size
        or flags.transaction_type(request.sys_flag) != flags.TRANSACTION_NONE
        or (names.DELAY in decision.special and is_delay(read_values(send.properties, (), _DELAY)[0]))
        or not is_storable(body)
    ):
        raise refusal_of(sending.config, PutStatus.MESSAGE_ILLEGAL)
    elements: RawBody = body if sending.is_5 else _add_shared(sending, body, send.properties)
    return head, send.queue_id, elements, None, send.born_timestamp, 0, None


def _add_shared(sending: Sending, body: RawBody, text: bytes) -> bytes:
    """The 4.9 line adds the batch's own properties to each message, 5.x stores each message as it was sent."""
    changes = (names.CLUSTER, sending.config.broker_cluster_name)
    added = stored_text(text, changes, BUCKETS[False], False)
    elements = []
    for element in decode_batch(body):
        own = bytes(element.properties)
        separator = b"" if not own or own.endswith(b"\x02") else b"\x02"
        elements.append(BatchElement(element.flag, element.body, own + separator + added))
    return encode_batch(elements)


def _prepare_one(
    sending: Sending, decision: Decision, send: Send, changes: Changes, born_host: bytes
) -> tuple[Prepared, Changes]:
    """The message of a send, which its properties or its topic may store elsewhere, and how its text is changed."""
    request, special, is_5 = decision.request, decision.special, sending.is_5
    topic, queue_id = request.topic, send.queue_id
    if topic[0] == "%" and is_retry_topic(topic):
        topic, queue_id, redirected = redirect_if_exhausted(sending, request, decision.version, queue_id)
        changes = redirected + changes
    message = NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=send.body,
        properties=send.properties,
        changes=changes,
        flag=request.flag,
        sys_flag=decision.sys_flag,
        born_timestamp=send.born_timestamp,
        born_host=born_host,
        store_host=sending.store_host,
        reconsume_times=request.reconsume_times or 0,
    )
    if not is_5 and names.WAIT in special:
        # Of a message that it stores elsewhere first, the 4.9 line encodes the properties again, with WAIT as the last.
        message.further_changes = (names.WAIT, *read_values(send.properties, (), _WAIT))
    is_half = names.TRAN_MSG in special and _is_half(sending, request, message)
    if is_5:
        if request.sys_flag & flags.INNER_BATCH or names.INNER_NUM in special:
            raise refusal_of(sending.config, PutStatus.MESSAGE_ILLEGAL)  # no topic here has queues of batches
        if names.PRIORITY in special:
            _choose_queue(message, decision.topic_config)
    queue_id = message.queue_id
    if is_half:
        half_message(message, send.unique_id.decode() if send.unique_id and is_5 else None)
    if names.DELAY in special:
        delay_if_asked(sending.delayed, message)
    handle = None
    if is_5 and not special.isdisjoint(_TIMED):
        time_if_asked(sending.delayed, message)
        handle = recall_handle(sending.config, message)
    try:
        packed = sending.store.pack_message(message)
    except RefusedError as error:
        raise refusal_of(sending.config, error.status) from error
    if queue_id != send.queue_id:
        send = send._replace(queue_id=queue_id)
    real_topic = topic if message.topic == HALF_TOPIC else None
    prepared = Prepared(decision, [send], [packed], real_topic, None if handle is None else [handle])
    return prepared, message.changes or ()


def _route_of(prepared: Prepared, changes: Changes) -> Route:
    """Where such messages are stored; the changes get the queue id, unique id and slot of whichever send it is."""
    of_send = {names.REAL_QID: QUEUE_ID, names.TRANSACTION_ID: UNIQUE_ID, names.TIMER_OUT_MS: SLOT}
    pairs = zip(changes[0::2], changes[1::2], strict=True)
    of_any = tuple(chain.from_iterable((name, of_send.get(name or "", value)) for name, value in pairs))
    head, queue_id, *_ = prepared.messages[0]
    is_rerouted = head.topic != prepared.decision.request.topic
    return Route(head, queue_id if is_rerouted else None, of_any, prepared.real_topic)


def find_refusal(sending: Sending, prepared: Prepared, status: PutStatus) -> Exception:
    """Why the first of these messages was not stored: a `Refusal`, or BodyError for a batch that cannot be read."""
    if prepared.decision.is_batch:
        try:
            decode_batch(prepared.sends[0].body)
        except BodyError as error:
            return error
    return refusal_of(sending.config, status)


def count_stored(sending: Sending, stored: Prepared, sizes: Sequence[int]) -> None:
    """Count what is stored; `sizes` are those of all records."""
    count_put, decision, sends = sending.statistics.count_put, stored.decision, len(stored.sends)
    if decision.is_batch or decision.is_plain:
        count_put(decision.request.topic, len(sizes), sum(sizes), sends=sends)
        return
    sizes_at: dict[tuple[str, int], list[int]] = {}
    for message, size in zip(stored.messages, sizes, strict=True):
        sizes_at.setdefault((message[0].topic, message[1]), []).append(size)
    for (topic, queue_id), of_place in sizes_at.items():
        count_put(topic, len(of_place), sum(of_place), queue_id, sends=len(of_place))
    if stored.real_topic is not None and sending.is_5:
        sending.transactions.open_count.add(stored.real_topic, sends, changes=sends)


def _is_half(sending: Sending, request: AnySend, message: NewMessage) -> bool:
    """Whether this is a half message. Raises `Refusal` if the broker rejects transactions."""
    mark, delay = values_in(message, _OF_HALF)
    if mark is None or mark.lower() != "true":
        return False
    if sending.is_5 and message.reconsume_times > 0 and is_delay(delay):
        return False  # a consumer sends back a message that was a half message before
    if sending.config.reject_transaction_message:
        remark = f"the broker[{sending.config.broker_ip1}] sending transaction message is forbidden"
        raise Refusal(ResponseCode.NO_PERMISSION, remark)
    return True


def _choose_queue(message: NewMessage, topic_config: TopicConfig) -> None:
    """Choose the queue whose number is the priority of the message, or the last one if the priority is higher (5.5).

    A priority that is no such number changes nothing; that of a message whose queue or time is chosen otherwise is
    removed."""
    text, *steered = values_in(message, _OF_PRIORITY)
    if any(value is not None for value in steered):
        message.changes = (*(message.changes or ()), names.PRIORITY, None)
        return
    priority = parse_number(text or "", 0, INT_MAX)
    if priority is not None:
        message.queue_id = min(priority, topic_config.write_queue_nums - 1)
