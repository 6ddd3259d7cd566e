"""What delivering a timed message stores, read from its record without decoding its properties.

    text of a waiting message  ->  shape and values: id, keys, real queue, moment     (`storing/text_shapes.py`)
    shape                      ->  DeliveryPlan: real topic, and the text of the delivered message, which has two more
                                   values: when the message was enqueued, and now

Only messages that are delivered to their real topic have a plan: none that rolls or recalls. No official class.
"""

from typing import Final

import msgspec
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.store import MessageStore
from pocketmq.store.log.record_template import whole_text
from pocketmq.store.lookup.message_template import MessageTemplate
from pocketmq.store.put_values import AlikeMessage

from ..storing.numbers import INT_MAX, number_property
from ..storing.record_parts import Templates, parts_of, topic_bytes
from ..storing.stored_properties import stored_properties
from ..storing.text_shapes import (
    Shape,
    ShapePlans,
    TextCutter,
    TextForm,
    form_of,
    probes_of,
    same_plan,
    text_of,
    values_of,
)

_TIMER_TOPIC: Final = topic_bytes(TIMER_TOPIC)
_NUMBERS: Final = (names.REAL_QID, names.TIMER_OUT_MS)
_CUT: Final = TextCutter(names.UNIQ_KEY, names.KEYS, *_NUMBERS)
_DETOURS: Final = frozenset((names.TIMER_DEL_UNIQKEY, names.TIMER_ENQUEUE_MS, names.TIMER_DEQUEUE_MS))
_MOST_QUEUE_DIGITS: Final = 9
_TIME_DIGITS: Final = 13
"""Of milliseconds since 1970, from 2001 to 2286."""


class DeliveryPlan(msgspec.Struct, frozen=True, gc=False):
    """What the waiting messages of one shape have in common."""

    topic: str
    delivered: TextForm
    """The text of the delivered message, from the values of the waiting one, the time it was enqueued, and now."""
    queue_number: int
    """Which value is the real queue."""
    out_number: int | None
    """Which value is the moment."""
    templates: Templates


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """A message to deliver; those with the same template are stored together."""

    plan: DeliveryPlan
    template: MessageTemplate
    message: AlikeMessage


class DeliveryPlans:
    """The plans of one broker. Owned by the event loop."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self.shapes: ShapePlans[DeliveryPlan] = ShapePlans(self._plan)

    def find(self, record: memoryview, due: bytes, enqueued: bytes, now: bytes) -> Delivery | None:
        """The delivery of a message that waits for the moment `due`; `None` if it must be decoded. Times are the digits
        of milliseconds."""
        parts = parts_of(record, _TIMER_TOPIC)
        cut = None if parts is None else _CUT.cut(parts.text)
        plan = None if cut is None else self.shapes.find(cut[0])
        if parts is None or cut is None or plan is None:
            return None
        values = cut[1]
        queue_text = values[plan.queue_number]
        if not queue_text.isdigit() or len(queue_text) > _MOST_QUEUE_DIGITS:
            return None
        values += (enqueued, now)
        out_number = plan.out_number
        if out_number is None or values[out_number] != due:
            return None
        if len(enqueued) != _TIME_DIGITS or len(due) != _TIME_DIGITS:
            return None  # the id would be at another place
        text = plan.delivered.fill(values)
        template = plan.templates.find(self._store, parts, plan.topic, parts.sys_flag, text)
        if template is None:
            return None
        message = (int(queue_text), parts.body, whole_text(text), parts.born_timestamp, 0)
        return Delivery(plan, template, message)

    def _plan(self, shape: Shape) -> DeliveryPlan | None:
        if names.REAL_QID not in values_of(shape):
            return None
        plans = [self._plan_with(shape, values) for values in probes_of(shape, numbers=_NUMBERS)]
        return same_plan(plans)

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
        return DeliveryPlan(topic, form, queue_number, out_number, Templates())


def delivered_text(properties: dict[str, str], enqueued: str, now: str) -> tuple[bytes, str, int | None]:
    """The property text of a delivered message, its topic and its queue; empty or `None` if the waiting one does not
    name them. Changes `properties` to those of the delivered message."""
    properties[names.TIMER_ENQUEUE_MS] = enqueued
    properties[names.TIMER_DEQUEUE_MS] = now
    text = stored_properties(properties, is_5=True)
    queue_id = number_property(properties, names.REAL_QID, 0, INT_MAX)
    properties.pop(names.REAL_QID, None)
    return text, properties.pop(names.REAL_TOPIC, ""), queue_id
