"""What was decided about the messages of one shape, so that the next one needs no decision.

A shape is all that an ordinary message has, less what differs from message to message: id, keys, the values of its own
properties, born time and body. Its plan is made by the ordinary steps, tried with two sets of values that no client
sends: if the stored texts are alike but for these values, then so are those of other values. The plan is right as long
as the topic and the broker's settings are the same. Messages that are rerouted, or wait for the disk, have no plan.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from pocketmq.broker.sending.durable_answers import answers_at_once
from pocketmq.broker.sending.plain_sends import complete, plain_message, stored_text
from pocketmq.broker.sending.send_plan import REROUTING, topic_of_plan
from pocketmq.broker.sending.sending import Sending
from pocketmq.broker.storing.text_shapes import TextForm, form_of
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.properties import decode_properties, encode_properties_text
from pocketmq.protocol.requests.send import SendMessage
from pocketmq.store import NewMessage
from pocketmq.store.lookup.message_template import MessageTemplate

from ..calls.rpc_call import RpcCall
from ..forms.sent_message import sent_properties, stored_flag
from ..messages import Encoding, Message, MessageType, ms_of, timestamp_of

MOST_TEMPLATES: Final = 64
"""Places of the id that one plan knows: it depends on the lengths of the fields before it."""
_PROBES: Final = (("\3id-g\3", 1_600_071_113_017, "\3g%d\3"), ("\3id-h\3", 1_700_060_007_019, "\3h%d\3"))
"""Id, born time, and form of the other values."""

_TRANSACTION, _GZIP = int(MessageType.TRANSACTION), int(Encoding.GZIP)

Shape = tuple[object, ...]


def shape_of(call: RpcCall, message: Message) -> Shape | None:
    """What messages with one plan have in common; `None` for a message that never has one."""
    topic, system = message.topic.name, message.system_properties
    kind = system.message_type
    if (
        kind == _TRANSACTION
        or system.message_group
        or system.lite_topic
        or system.trace_context
        or system.HasField("delivery_timestamp")
        or system.HasField("priority")
        or not topic
        or topic[0] == "%"
    ):
        return None
    return (
        topic,
        kind,
        call.packed_host,
        system.tag,
        system.born_host or call.peer,
        system.body_encoding == _GZIP,
        system.delivery_attempt,
        bool(system.keys),
        *[entry.key for entry in message.user_properties[:]],
    )


class SendPlan(msgspec.Struct, gc=False):
    """Without a `form`, messages of this shape are stored the ordinary way."""

    topic_config: TopicConfig
    settings: object
    """The version of the settings that it was made with."""
    queues: int = 0
    form: TextForm | None = None
    """Of the stored text. Its values are the id, the born time, the keys if there are some, and those of the message's
    own properties."""
    before_id: Sequence[int] = ()
    """The values before the id; how many bytes precede it depends on their lengths."""
    example: NewMessage | None = None
    templates: dict[int, MessageTemplate | None] = {}
    """By the bytes of those values."""

    def template(self, sending: Sending, text: bytes, before_bytes: int) -> MessageTemplate | None:
        """The store's template for this text and those with the id at the same place."""
        try:
            return self.templates[before_bytes]
        except KeyError:
            assert self.example is not None
            if len(self.templates) >= MOST_TEMPLATES:
                self.templates.clear()
            example = msgspec.structs.replace(
                self.example, properties=text, property_map=decode_properties(text)
            )
            template = self.templates[before_bytes] = sending.store.template(example, shares_text=False)
            return template


def make_plan(sending: Sending, settings: object, call: RpcCall, message: Message) -> SendPlan | None:
    """The plan for messages like this one, which passed all checks; `None` if its topic is gone."""
    topic = message.topic.name
    request = _request(message, topic)
    topic_config = topic_of_plan(sending, request)
    if topic_config is None:
        found = sending.topics.find(topic)
        return None if found is None else SendPlan(found, settings)
    plan = SendPlan(topic_config, settings, topic_config.write_queue_nums, templates={})
    texts = [_stored_text(sending, call, message, probe) for probe in _PROBES]
    forms = []
    for text, probe in zip(texts, _PROBES, strict=True):
        values = [value.encode() for value in _values(_with_values(message, probe))]
        form = None if text is None else form_of(text, values)
        if form is None or sorted(form.numbers) != list(range(len(values))):
            return plan
        forms.append(form)
    if forms[0] != forms[1]:
        return plan
    plan.form = forms[0]
    plan.before_id = plan.form.numbers[: plan.form.numbers.index(0)]
    plan.example = plain_message(sending, request, topic, 0, topic_config, b"", call.packed_host, {}, b"")
    return plan


def _values(message: Message) -> list[str]:
    system = message.system_properties
    keys = (" ".join(system.keys),) if system.keys else ()
    own = [entry.value for entry in message.user_properties]
    return [system.message_id, str(ms_of(system.born_timestamp)), *keys, *own]


def _with_values(message: Message, probe: tuple[str, int, str]) -> Message:
    message_id, born_ms, form = probe
    changed = Message()
    changed.CopyFrom(message)
    system = changed.system_properties
    system.message_id = message_id
    system.born_timestamp.CopyFrom(timestamp_of(born_ms))
    if system.keys:
        del system.keys[:]
        system.keys.extend([form % 0])
    for number, entry in enumerate(changed.user_properties, 1):
        entry.value = form % number
    return changed


def _request(message: Message, topic: str) -> SendMessage:
    return SendMessage(
        producer_group=topic,
        topic=topic,
        default_topic="",
        default_topic_queue_nums=0,
        queue_id=0,
        sys_flag=stored_flag(message),
        born_timestamp=0,
        flag=0,
        reconsume_times=0,
    )


def _stored_text(
    sending: Sending, call: RpcCall, message: Message, probe: tuple[str, int, str]
) -> bytes | None:
    """What the ordinary steps store of a message with these values; `None` if they do more than that."""
    sent = sent_properties(_with_values(message, probe), message.topic.name, call.peer)
    properties = decode_properties(encode_properties_text(sent))
    if not REROUTING.isdisjoint(properties) or not answers_at_once(sending, properties):
        return None
    complete(sending, properties)
    return stored_text(sending, properties)
