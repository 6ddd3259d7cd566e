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
        names.DELAY,
        names.TIMER_OUT_MS,
        names.TIMER_DEL_UNIQKEY,
        names.PRIORITY,
        names.INNER_NUM,
        names.INNER_MULTI_DISPATCH,
        names.POP_CK,
    )
)
_PROBES: Final = ((b"G" * 32, 60007, b"\3g\3"), (b"H" * 32, 71113, b"\3h\3"))
"""Two ids, queues and keys that no producer sends."""
_MOMENT_DIGITS: Final = 13


class AskedTime(msgspec.Struct, frozen=True, gc=False):
    """When messages are due: in `ms` from now, or at `ms`; and what stands for the recall handle in their reply."""

    ms: int
    is_from_now: bool
    handle_place: bytes


class ReroutedPlan(SendPlan, gc=False):
    """`topic` is the topic that the requests name, `template` is of what is stored."""

    stored_topic: str
    stored_text: TextForm
    """Its values are id and queue, then the keys of sends that have some, then the moment of timed ones."""
    time: AskedTime | None
    """`None` for half messages."""


def make_rerouted_plan(
    sending: Sending, connection: Connection, command: Command, settings: object, *, has_keys: bool
) -> ReroutedPlan | None:
    """The plan for half messages or messages with a time like this one; None if they must go the ordinary way."""
    found = plannable(sending, command)
    if found is None:
        return None
    request, topic_config = found
    properties = decode_properties(request.properties or "")
    if not _has_plan(sending, request, properties):
        return None
    try:
        example = _stored(sending, connection, request, topic_config, {}, request.queue_id)
        form = _proven_form(sending, connection, request, topic_config, has_keys=has_keys)
    except Refusal:
        return None
    # An example, because id and KEYS of all sends with this header have the same places in the stored text.
    template = sending.store.template(example, shares_text=False)
    if form is None or template is None or example.topic == request.topic:
        return None
    unique_id, stored = properties.get(names.UNIQ_KEY), AppendResult(PutStatus.PUT_OK, 0, 0, 0, 0)
    fields = send_answer(sending, stored, "", request.queue_id, unique_id).fields or {}
    time, handle = None, recall_handle(sending.config, example)
    if handle is not None and (asked := asked_time(properties)) is not None:
        fields["recallHandle"] = place = "~" * len(handle)
        time = AskedTime(*asked, place.encode())
    reply = connection.reply_to(command, 0, None, fields)
    is_json = command.header_type == JSON
    return ReroutedPlan(
        topic=request.topic,
        topic_config=topic_config,
        settings=settings,
        queues=max(topic_config.write_queue_nums, topic_config.read_queue_nums),
        is_json=is_json,
        is_oneway=bool(command.flag & ONEWAY_FLAG),
        waits=False,
        template=template,
        text_with_keys=_id_alone if has_keys else None,
        reply=reply_template(reply, sending.store_host, opaque_is_text=is_json),
        stored_topic=example.topic,
        stored_text=form,
        time=time,
    )


def _id_alone(unique_id: bytes, keys: bytes) -> bytes:
    return unique_id


def _has_plan(sending: Sending, request: AnySend, properties: dict[str, str]) -> bool:
    config = sending.config
    if not _DETOURS.isdisjoint(properties) or not answers_at_once(sending, properties):
        return False
    is_timed = sending.is_5 and asks_for_time(properties)
    if names.TRAN_MSG in properties:
        is_half = properties[names.TRAN_MSG].lower() == "true"
        return is_half and not is_timed and not config.reject_transaction_message
    is_limited = config.store.timer_congest_num_each_slot != _NO_LIMIT
    return is_timed and not is_limited and not request.sys_flag & flags.TRANSACTION_MASK


def _stored(
    sending: Sending,
    connection: Connection,
    request: AnySend,
    topic_config: TopicConfig,
    changes: dict[str, str],
    queue_id: int,
) -> NewMessage:
    """What the ordinary steps store of a send with this queue and these properties changed. Raises `Refusal`."""
    properties = decode_properties(request.properties or "")
    properties.update(changes)
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


def _proven_form(
    sending: Sending,
    connection: Connection,
    request: AnySend,
    topic_config: TopicConfig,
    *,
    has_keys: bool,
) -> TextForm | None:
    """The form of the stored texts; None if its values are not all in the text, or something else depends on them."""
    forms = []
    for unique_id, queue_id, keys in _PROBES:
        values = [unique_id, b"%d" % queue_id]
        changes = {names.UNIQ_KEY: unique_id.decode()}
        if has_keys:
            values.append(keys)
            changes[names.KEYS] = keys.decode()
        message = _stored(sending, connection, request, topic_config, changes, queue_id)
        moment = message.property_map.get(names.TIMER_OUT_MS)
        if moment is not None:
            values.append(moment.encode())
        form = form_of(message.properties, values)
        counts = [form.numbers.count(number) for number in range(len(values))]
        if not counts[0] or any(count != 1 for count in counts[1:]):
            return None
        if moment is not None and len(moment) != _MOMENT_DIGITS:
            return None
        forms.append(form)
    return forms[0] if forms[0] == forms[1] else None
