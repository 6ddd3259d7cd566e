"""Plans for sends that are stored in another topic than they name: half messages, and messages with a time.

    half     RMQ_SYS_TRANS_HALF_TOPIC queue 0      the text names the real topic and queue
    timed    rmq_sys_wheel_timer queue 0           and the moment, too, which depends on the time of the send

A `ReroutedPlan` is a `SendPlan` whose stored text has more values than the id. The text is made by the ordinary steps,
tried with two sets of values (`storing/text_shapes.py`).
"""

from typing import Final

import msgspec
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message import flags
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.requests.send import AnySend
from pocketmq.protocol.wire.command import JSON, ONEWAY_FLAG, Command
from pocketmq.store import AppendResult, NewMessage, PutStatus

from ..delayed.timer_sends import asked_time, asks_for_time, recall_handle
from ..errors import Refusal
from ..network.connection import Connection
from ..storing.text_shapes import TextForm, form_of
from ..transactions.half_messages import half_message
from .durable_answers import answers_at_once, send_answer
from .plain_sends import complete, plain_message, stored_text
from .reply_template import reply_template
from .send_plan import SendPlan, plannable
from .sending import Sending

_NO_LIMIT: Final = 2_147_483_647
"""timerCongestNumEachSlot unless it is set: no slot is ever full."""
_DETOURS: Final = frozenset(
    (
        names.KEYS,
        names.DELAY,
        names.TIMER_OUT_MS,
        names.TIMER_DEL_UNIQKEY,
        names.PRIORITY,
        names.INNER_NUM,
        names.INNER_MULTI_DISPATCH,
        names.POP_CK,
    )
)
_PROBES: Final = ((b"G" * 32, 60007), (b"H" * 32, 71113))
"""Two ids and queues that no producer sends."""
ID, QUEUE, MOMENT = range(3)
"""The values of a text."""
_MOMENT_DIGITS: Final = 13


class AskedTime(msgspec.Struct, frozen=True, gc=False):
    """When messages are due: in `ms` from now, or at `ms`; and what stands for the recall handle in their reply."""

    ms: int
    is_from_now: bool
    handle_place: bytes


class ReroutedPlan(SendPlan, gc=False):
    """`topic` is the topic that the requests name; `message` and `template` are of what is stored."""

    stored_text: TextForm
    time: AskedTime | None
    """`None` for half messages."""


def make_rerouted_plan(
    sending: Sending, connection: Connection, command: Command, settings: object
) -> ReroutedPlan | None:
    """The plan for half messages or messages with a time like this one; None if they must go the ordinary way."""
    found, config = plannable(sending, command), sending.config
    if found is None:
        return None
    request, topic_config = found
    properties = decode_properties(request.properties or "")
    is_timed = sending.is_5 and asks_for_time(properties)
    is_half = properties.get(names.TRAN_MSG, "").lower() == "true"
    if (
        is_half is is_timed
        or not _DETOURS.isdisjoint(properties)
        or not answers_at_once(sending, properties)
        or (is_half and config.reject_transaction_message)
        or (is_timed and config.store.timer_congest_num_each_slot != _NO_LIMIT)
        or (is_timed and request.sys_flag & flags.TRANSACTION_MASK)
    ):
        return None
    try:
        made = [
            _stored(sending, connection, request, topic_config, unique_id.decode(), queue_id)
            for unique_id, queue_id in _PROBES
        ]
    except Refusal:
        return None
    if any(message.topic == request.topic for message in made):
        return None
    forms = [
        _form(message, unique_id, queue_id)
        for message, (unique_id, queue_id) in zip(made, _PROBES, strict=True)
    ]
    template = sending.store.template(made[0], shares_text=False)
    if forms[0] is None or forms[0] != forms[1] or template is None:
        return None
    answer = send_answer(
        sending,
        AppendResult(PutStatus.PUT_OK, 0, 0, 0, 0),
        "",
        request.queue_id,
        properties.get(names.UNIQ_KEY),
    )
    fields, time = answer.fields or {}, None
    if is_timed:
        asked, handle = asked_time(properties), recall_handle(config, made[0])
        if asked is None or handle is None:
            return None
        place = "~" * len(handle)
        time = AskedTime(*asked, place.encode())
        fields["recallHandle"] = place
    reply = connection.reply_to(command, 0, None, fields)
    return ReroutedPlan(
        topic=request.topic,
        topic_config=topic_config,
        settings=settings,
        queues=max(topic_config.write_queue_nums, topic_config.read_queue_nums),
        most_body_bytes=config.store.max_message_size,
        is_json=command.header_type == JSON,
        is_oneway=bool(command.flag & ONEWAY_FLAG),
        message=made[0],
        text=(),
        keys_first=False,
        template=template,
        reply=reply_template(reply, sending.store_host, opaque_is_text=command.header_type == JSON),
        stored_text=forms[0],
        time=time,
    )


def _stored(
    sending: Sending,
    connection: Connection,
    request: AnySend,
    topic_config: TopicConfig,
    unique_id: str,
    queue_id: int,
) -> NewMessage:
    """What the ordinary steps store of a send with this id and queue. Raises `Refusal`."""
    properties = decode_properties(request.properties or "")
    properties[names.UNIQ_KEY] = unique_id
    complete(sending, properties)
    message = plain_message(
        sending,
        request,
        request.topic,
        queue_id,
        topic_config,
        b"",
        connection.packed_host,
        properties,
        stored_text(sending, properties),
    )
    if names.TRAN_MSG in properties:
        return half_message(sending.config, message)
    return sending.delayed.time_if_asked(message)


def _form(message: NewMessage, unique_id: bytes, queue_id: int) -> TextForm | None:
    """The form of a stored text; None if its values are not all there, or the id may be at different places."""
    values = [unique_id, b"%d" % queue_id]
    if (moment := message.property_map.get(names.TIMER_OUT_MS)) is not None:
        values.append(moment.encode())
    form = form_of(message.properties, values)
    counts = [form.numbers.count(number) for number in range(len(values))]
    is_whole = counts[ID] > 0 and counts[QUEUE:] == [1] * (len(values) - 1)
    if not is_whole or QUEUE in form.numbers[: form.numbers.index(ID)]:
        return None
    return form if moment is None or len(moment) == _MOMENT_DIGITS else None
