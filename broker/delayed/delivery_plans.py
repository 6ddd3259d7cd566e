"""What delivering a timed message stores, read from its record without decoding its properties.

    text of a waiting message  ->  shape and values: id, keys, real queue, moment     (`storing/text_shapes.py`)
    shape                      ->  DeliveryPlan: real topic, and the text of the delivered message, which has two more
                                   values: when the message was enqueued, and now

Only messages that are delivered to their real topic have a plan: none that rolls or recalls. No official class.
"""

import struct
from collections.abc import Callable
from typing import Final

import msgspec
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import HOSTS_IPV6
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import HEADS, MAGIC_V1
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.store import NewMessage
from pocketmq.store.log.record_template import whole_text
from pocketmq.store.lookup.message_template import MessageTemplate
from pocketmq.store.put_values import AlikeMessage

from ..storing.numbers import INT_MAX, number_property
from ..storing.stored_properties import stored_properties
from ..storing.text_shapes import (
    Shape,
    ShapePlans,
    TextCutter,
    TextForm,
    form_of,
    probes_of,
    text_of,
    values_of,
)

_TIMER_TOPIC: Final = bytes((len(TIMER_TOPIC),)) + TIMER_TOPIC.encode()
_TEXT_AT: Final = len(_TIMER_TOPIC) + 2
_SHORT: Final = struct.Struct(">h")
_HEAD: Final = HEADS[0]
_HEAD_BYTES: Final = HEADS[0].size
_NUMBERS: Final = (names.REAL_QID, names.TIMER_OUT_MS)
_CUT: Final = TextCutter(names.UNIQ_KEY, names.KEYS, *_NUMBERS)
_DETOURS: Final = frozenset((names.TIMER_DEL_UNIQKEY, names.TIMER_ENQUEUE_MS, names.TIMER_DEQUEUE_MS))
_MOST_QUEUE_DIGITS: Final = 9
_TIME_DIGITS: Final = 13
"""Of milliseconds since 1970, from 2001 to 2286."""
_MOST_TEMPLATES: Final = 64
"""Of one shape: one for each address of a producer, most often."""


class DeliveryPlan(msgspec.Struct, frozen=True, gc=False):
    """What the waiting messages of one shape have in common."""

    topic: str
    delivered: TextForm
    """The text of the delivered message, from the values of the waiting one, the time it was enqueued, and now."""
    queue_number: int
    """Which value is the real queue."""
    out_number: int | None
    """Which value is the moment."""
    templates: dict[tuple[object, ...], MessageTemplate | None]
    """Templates of the store by flag, sysFlag, hosts and reconsume times."""


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A message to deliver; those with the same template are stored together."""

    plan: DeliveryPlan
    template: MessageTemplate
    message: AlikeMessage


class DeliveryPlans:
    """The plans of one broker. Owned by the event loop."""

    def __init__(self, template: Callable[..., MessageTemplate | None]) -> None:
        """`template` is that of the store."""
        self._template = template
        self.shapes: ShapePlans[DeliveryPlan] = ShapePlans(self._plan)

    def find(self, record: memoryview, enqueued: bytes, now: bytes) -> Delivery | None:
        """The delivery of a waiting message; `None` if it must be decoded. Times are the digits of milliseconds."""
        data = bytes(record)
        (
            _,
            magic,
            _,
            _,
            flag,
            _,
            _,
            sys_flag,
            born_timestamp,
            born_host,
            _,
            store_host,
            reconsume_times,
            _,
            body_bytes,
        ) = _HEAD.unpack_from(data)
        topic_at = _HEAD_BYTES + body_bytes
        text_at = topic_at + _TEXT_AT
        if magic != MAGIC_V1 or sys_flag & HOSTS_IPV6 or not data.startswith(_TIMER_TOPIC, topic_at):
            return None
        if body_bytes < 0 or _SHORT.unpack_from(data, text_at - 2)[0] != len(data) - text_at:
            return None
        cut = _CUT.cut(data[text_at:])
        plan = None if cut is None else self.shapes.find(cut[0])
        if cut is None or plan is None:
            return None
        values = cut[1]
        queue_text = values[plan.queue_number]
        if not queue_text.isdigit() or len(queue_text) > _MOST_QUEUE_DIGITS:
            return None
        values += (enqueued, now)
        out_number = plan.out_number
        if len(enqueued) != _TIME_DIGITS or (
            out_number is not None and len(values[out_number]) != _TIME_DIGITS
        ):
            return None  # the id would be at another place
        text = plan.delivered.fill(values)
        queue_id, body = int(queue_text), data[_HEAD_BYTES:topic_at]
        shared = (flag, sys_flag, born_host, store_host, reconsume_times)
        template = plan.templates.get(shared)
        if template is None:
            if shared in plan.templates:
                return None
            if len(plan.templates) >= _MOST_TEMPLATES:
                plan.templates.clear()
            properties = decode_properties(text)
            message = NewMessage(
                plan.topic,
                queue_id,
                body,
                text,
                properties,
                flag,
                sys_flag,
                0,
                born_host,
                store_host,
                reconsume_times,
            )
            template = plan.templates[shared] = self._template(message, shares_text=False)
            if template is None:
                return None
        return Delivery(plan, template, (queue_id, body, whole_text(text), born_timestamp, 0))

    def _plan(self, shape: Shape) -> DeliveryPlan | None:
        if names.REAL_QID not in values_of(shape):
            return None
        plans = [self._plan_with(shape, values) for values in probes_of(shape, numbers=_NUMBERS)]
        return plans[0] if len(plans) == 2 and plans[0] == plans[1] else None

    def _plan_with(self, shape: Shape, values: list[bytes]) -> DeliveryPlan | None:
        properties, of_values = decode_properties(text_of(shape, values)), values_of(shape)
        if not _DETOURS.isdisjoint(properties):
            return None
        queue_number = of_values.index(names.REAL_QID)
        times = [b"\3enqueued\3", b"\3now\3"]
        text, topic, queue_id = delivered_text(properties, times[0].decode(), times[1].decode())
        if topic in ("", TIMER_TOPIC) or queue_id != int(values[queue_number]):
            return None
        form = form_of(text, [*values, *times])
        # The store hashes the id, which it finds at the same place in all texts of a template.
        if names.UNIQ_KEY in of_values:
            before_id = form.numbers[: form.numbers.index(of_values.index(names.UNIQ_KEY))]
            if any(
                of_values[number] in (names.KEYS, names.REAL_QID)
                for number in before_id
                if number < len(values)
            ):
                return None
        out_number = of_values.index(names.TIMER_OUT_MS) if names.TIMER_OUT_MS in of_values else None
        return DeliveryPlan(topic, form, queue_number, out_number, {})


def delivered_text(properties: dict[str, str], enqueued: str, now: str) -> tuple[bytes, str, int | None]:
    """The property text of a delivered message, its topic and its queue; empty or `None` if the waiting one does not
    name them. Changes `properties` to those of the delivered message."""
    properties[names.TIMER_ENQUEUE_MS] = enqueued
    properties[names.TIMER_DEQUEUE_MS] = now
    text = stored_properties(properties, is_5=True)
    queue_id = number_property(properties, names.REAL_QID, 0, INT_MAX)
    properties.pop(names.REAL_QID, None)
    return text, properties.pop(names.REAL_TOPIC, ""), queue_id
