"""Batches: several messages in one request (320, or 310 with its batch flag), stored all or none.

Mirrors `SendMessageProcessor.sendBatchMessage`. A single message: `send_handlers.py`.
"""

from typing import Final

import msgspec
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import alike_elements, decode_batch, is_storable
from pocketmq.protocol.message.offset_id import encode_message_ids
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import MAX_TOPIC_LENGTH, is_retry_topic
from pocketmq.protocol.requests.send import AnySend
from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import AppendResult, NewMessage, PutStatus
from pocketmq.store.put_values import AlikeBatch, ElementBatch, Stored

from ..errors import Refusal
from ..network.dispatch import Answer, Call, Held
from ..state.refusals import refusal_of
from ..storing.stored_properties import stored_properties
from .durable_answers import STORED, answer_when_durable, send_answer
from .plain_sends import stored_sys_flag
from .send_checks import asks_for_delay, check_send, queue_of
from .sending import Sending

MAX_ODD: Final = 1000
"""A batch with more messages has properties in UTF-8: only then they are stored without taking them apart."""


def store_batch(sending: Sending, request: AnySend, call: Call) -> Answer | Held:
    """Store the messages of a batch under consecutive offsets; the reply names the first offset and every id."""
    topic_config = check_send(sending, request, call)
    request = as_stored(request, topic_config)
    topic = request.topic
    if len(topic) > MAX_TOPIC_LENGTH:
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(topic)}")
    if sending.is_5 and is_retry_topic(topic):
        raise Refusal(ResponseCode.MESSAGE_ILLEGAL, f"batch request does not support retry group {topic}")
    queue_id = queue_of(request, topic_config, sending.random)
    shared = decode_properties(request.properties or "")
    if (
        len(call.body) > sending.config.store.max_message_size
        or cannot_be_batched(request, shared)
        or not is_storable(call.body)
    ):
        raise refusal_of(sending.config, PutStatus.MESSAGE_ILLEGAL)
    added = _added(sending, shared)
    born_host = call.connection.packed_host
    stored = store_whole(sending, request, call.body, queue_id, request.born_timestamp, born_host, added)
    if stored is None:
        stored = _store_any(sending, _elements(sending, request, call, queue_id, added))
    positions, sizes = stored.positions, stored.sizes
    sending.statistics.message_put(topic, len(sizes), stored.end - positions[0])
    message_ids = encode_message_ids(sending.store_host, positions)
    answer = send_answer(sending, _result(stored, 0), message_ids, queue_id, shared.get(names.UNIQ_KEY))
    return answer_when_durable(sending, call, answer, _result(stored, -1), shared)


def as_stored(request: AnySend, topic_config: TopicConfig) -> AnySend:
    """The request with the flags that its messages are stored with."""
    sys_flag = stored_sys_flag(request, topic_config)
    return request if sys_flag == request.sys_flag else msgspec.structs.replace(request, sys_flag=sys_flag)


def _result(stored: Stored, number: int) -> AppendResult:
    """Where one message of a batch is."""
    return AppendResult(
        PutStatus.PUT_OK,
        stored.positions[number],
        stored.sizes[number],
        stored.queue_offsets[number],
        stored.store_timestamp,
    )


def _store_any(sending: Sending, messages: list[NewMessage]) -> Stored:
    """Store the messages of a batch one after the other. Raises `Refusal` if the store refuses it."""
    results = sending.store.append_batch(messages)
    if not results or results[0].status not in STORED:
        raise refusal_of(sending.config, results[0].status if results else PutStatus.MESSAGE_ILLEGAL)
    return Stored(
        [result.position for result in results],
        [result.size for result in results],
        [result.queue_offset for result in results],
        results[-1].position + results[-1].size,
        results[0].store_timestamp,
    )


def _added(sending: Sending, shared: dict[str, str]) -> bytes:
    """The 4.9 line adds the batch's own properties to each message, 5.x stores each message as it was sent."""
    if sending.is_5:
        return b""
    shared[names.CLUSTER] = sending.config.broker_cluster_name
    return stored_properties(shared, is_5=sending.is_5)


def store_whole(
    sending: Sending,
    request: AnySend,
    body: RawBody,
    queue_id: int,
    born_timestamp: int,
    born_host: bytes,
    added: bytes = b"",
) -> Stored | None:
    """Store a batch without taking it apart: any messages as they were sent, or, with properties added to each, those
    that differ in body and unique id only. None for any other batch, and if the store does not take it in this form."""
    if not added:
        batch = ElementBatch(
            request.topic,
            queue_id,
            body,
            request.sys_flag,
            born_timestamp,
            born_host,
            sending.store_host,
            request.reconsume_times or 0,
        )
        stored = sending.store.append_elements(batch)
        if stored is not None:
            return stored
    elements = alike_elements(bytes(body))
    if elements is None:
        return None
    behind_id = elements.behind_id
    if added:
        behind_id += added if behind_id.endswith(b"\x02") else b"\x02" + added
    template = sending.batch_templates.template(
        request, elements.flag, elements.before_id, behind_id, born_host
    )
    if template is None:
        return None
    alike = AlikeBatch(queue_id, born_timestamp, elements.bodies, elements.unique_ids)
    return sending.store.append_alike_batch(template, alike)


def _elements(
    sending: Sending, request: AnySend, call: Call, queue_id: int, added: bytes
) -> list[NewMessage]:
    topic, sys_flag, born_timestamp = request.topic, request.sys_flag, request.born_timestamp
    born_host, store_host = call.connection.packed_host, sending.store_host
    reconsume_times = request.reconsume_times or 0
    messages: list[NewMessage] = []
    for element in decode_batch(call.body):
        properties = bytes(element.properties)
        if len(messages) >= MAX_ODD and not _is_utf8(properties):
            raise refusal_of(sending.config, PutStatus.MESSAGE_ILLEGAL)
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


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def cannot_be_batched(request: AnySend, shared: dict[str, str]) -> bool:
    """Whether a batch with these properties asks for more than to be stored."""
    return flags.transaction_type(request.sys_flag) != flags.TRANSACTION_NONE or asks_for_delay(shared)
