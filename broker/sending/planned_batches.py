"""Batches whose headers repeat: stored by a plan, without a request object, a property map or an answer object each.

Only 5.x batches have plans: the 4.9 line adds the unique id of the batch to each of its messages, so no two batches
are alike. The ordinary way is in `batches.py`; what is stored and answered is the same. Owned by the event loop.
"""

from typing import Final

import msgspec
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import is_storable
from pocketmq.protocol.message.offset_id import encode_message_ids
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import MAX_TOPIC_LENGTH
from pocketmq.protocol.requests.send import AnySend
from pocketmq.protocol.wire.command import JSON, ONEWAY_FLAG, Command
from pocketmq.protocol.wire.repeated_header import Recognised, as_command
from pocketmq.store import AppendResult, PutStatus
from pocketmq.store.put_values import Stored

from ..network.connection import Connection
from .batches import as_stored, cannot_be_batched, store_whole
from .durable_answers import answers_at_once, send_answer, when_durable, with_status
from .reply_template import BatchReplyTemplate, batch_reply_template
from .send_plan import QUEUE_IDS, plannable
from .sending import Sending

_ZERO: Final = 0x30


class BatchPlan(msgspec.Struct, gc=False):
    """What was decided about the batches of one header, which owns it."""

    topic: str
    topic_config: TopicConfig
    settings: object
    """The version of the settings that it was made with."""
    queues: int
    """Requests name a queue below this."""
    is_json: bool
    """Whether requests have JSON headers: then opaque is text."""
    is_oneway: bool
    waits: bool
    """Whether the answers wait for disk or slaves."""
    request: AnySend
    """A request with this header."""
    reply: BatchReplyTemplate


def make_batch_plan(
    sending: Sending, connection: Connection, command: Command, settings: object
) -> BatchPlan | None:
    """The plan for batches like this one; None if they must go the ordinary way."""
    found = plannable(sending, command, batches=True) if sending.is_5 else None
    if found is None:
        return None
    request, topic_config = found
    shared = decode_properties(request.properties or "")
    if len(request.topic) > MAX_TOPIC_LENGTH or cannot_be_batched(request, shared):
        return None
    stored, unique_id = AppendResult(PutStatus.PUT_OK, 0, 0, 0, 0), shared[names.UNIQ_KEY]
    answer = send_answer(sending, stored, "", request.queue_id, unique_id)
    reply = connection.reply_to(command, 0, None, answer.fields or {})
    if reply.header_type != JSON:
        return None
    is_json = command.header_type == JSON
    return BatchPlan(
        topic=request.topic,
        topic_config=topic_config,
        settings=settings,
        queues=max(topic_config.write_queue_nums, topic_config.read_queue_nums),
        is_json=is_json,
        is_oneway=bool(command.flag & ONEWAY_FLAG),
        waits=not answers_at_once(sending, shared),
        request=as_stored(request, topic_config),
        reply=batch_reply_template(reply, sending.store_host, opaque_is_text=is_json),
    )


def store_planned_batch(sending: Sending, connection: Connection, plan: BatchPlan, frame: Recognised) -> int:
    """Store and answer a batch; returns 1, or 0 if it must go the ordinary way."""
    opaque, queue_text, born_text, unique_id = frame[1][:4]
    queue_id = QUEUE_IDS.get(queue_text, plan.queues)
    body = frame[2]
    if (
        queue_id >= plan.queues
        or not born_text.isdigit()
        or born_text[0] == _ZERO
        or not unique_id.isalnum()
        or (plan.is_json and not (opaque.isdigit() and (opaque[0] != _ZERO or opaque == b"0")))
        or len(body) > sending.config.store.max_message_size
        or not is_storable(body)
    ):
        return 0
    stored = store_whole(sending, plan.request, body, queue_id, int(born_text), connection.packed_host)
    if stored is None:
        return 0
    positions = stored.positions
    sending.statistics.message_put(plan.topic, len(positions), stored.end - positions[0])
    if plan.waits:
        _answer_when_durable(sending, connection, plan, frame, stored)
    elif not plan.is_oneway:
        reply = plan.reply(positions, queue_text, stored.queue_offsets[0], unique_id, opaque)
        connection.write_replies((frame,), (reply,))
    return 1


def _answer_when_durable(
    sending: Sending, connection: Connection, plan: BatchPlan, frame: Recognised, stored: Stored
) -> None:
    opaque, queue_text, _, unique_id = frame[1][:4]
    positions, queue_offset = stored.positions, stored.queue_offsets[0]
    sending.waiting_sends += 1

    def ended(failure: PutStatus | None) -> None:
        def saved() -> None:
            sending.waiting_sends -= 1
            if failure is not None:
                result = AppendResult(PutStatus.PUT_OK, positions[0], 0, queue_offset, 0)
                message_ids = encode_message_ids(sending.store_host, positions)
                answer = send_answer(sending, result, message_ids, int(queue_text), unique_id.decode())
                connection.answer(as_command(frame), with_status(answer, failure))
            elif not plan.is_oneway:
                reply = plan.reply(positions, queue_text, queue_offset, unique_id, opaque)
                connection.write_replies((frame,), (reply,))

        sending.tables.when_saved(sending.topics, saved)

    when_durable(sending, stored.end, ended)
