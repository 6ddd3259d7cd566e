"""What ending a half message needs of its record, read without decoding its properties.

    text of a half message   -> shape and values: its id, its keys, its real queue     (`storing/text_shapes.py`)
    shape                    -> EndPlan: producer group, real topic, the text of the committed message

Most half messages of a producer have one shape. A shape has no plan if its commit takes a detour (a delay, a time, an
immunity time) or if the half message does not name its real topic and queue; such messages are ended from their decoded
record. No official class: the official broker decodes each record.
"""

from typing import Final

import msgspec
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, with_transaction_type
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.topics import HALF_TOPIC
from pocketmq.store import MessageStore, NewMessage
from pocketmq.store.log.record_template import whole_text
from pocketmq.store.lookup.message_template import MessageTemplate
from pocketmq.store.put_values import AlikeMessage

from ..storing.numbers import INT_MAX, parse_number
from ..storing.record_parts import RecordParts, Templates, parts_of, topic_bytes
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

_HALF_TOPIC: Final = topic_bytes(HALF_TOPIC)
_CUT: Final = TextCutter(names.UNIQ_KEY, names.TRANSACTION_ID, names.KEYS, names.REAL_QID)
_MOST_QUEUE_DIGITS: Final = 9
_DETOURS: Final = frozenset(
    (
        names.DELAY,
        names.TIMER_DELAY_SEC,
        names.TIMER_DELAY_MS,
        names.TIMER_DELIVER_MS,
        names.CHECK_IMMUNITY_TIME_IN_SECONDS,
    )
)


class EndPlan(msgspec.Struct, frozen=True, gc=False):
    """What all half messages of one shape have in common."""

    group: str
    """The producer group."""
    topic: str
    committed: TextForm
    """The text of the committed message."""
    queue_number: int
    """Which value is the real queue."""
    templates: Templates | None
    """`None` if the store would not find the id of the committed message at one place."""


class PlannedHalf(msgspec.Struct, frozen=True, gc=False):
    """A half message whose shape has a plan, and the text of the message that its commit stores."""

    plan: EndPlan
    parts: RecordParts
    real_queue_id: int
    text: bytes

    @property
    def sys_flag(self) -> int:
        """Of the committed message."""
        return with_transaction_type(self.parts.sys_flag, TRANSACTION_COMMIT)

    def template(self, store: MessageStore) -> MessageTemplate | None:
        """The template for the committed message."""
        plan = self.plan
        if plan.templates is None:
            return None
        return plan.templates.find(store, self.parts, plan.topic, self.sys_flag, self.text)

    def alike(self) -> AlikeMessage:
        """The committed message beside its template."""
        parts = self.parts
        return self.real_queue_id, parts.body, whole_text(self.text), parts.born_timestamp, parts.position

    def message(self) -> NewMessage:
        """The whole committed message."""
        parts, properties = self.parts, decode_properties(self.text)
        for name in (names.REAL_TOPIC, names.REAL_QID, names.TRAN_MSG):
            properties.pop(name, None)
        return NewMessage(
            self.plan.topic,
            self.real_queue_id,
            parts.body,
            self.text,
            properties,
            parts.flag,
            self.sys_flag,
            parts.born_timestamp,
            parts.born_host,
            parts.store_host,
            parts.reconsume_times,
            parts.position,
        )


class EndPlans:
    """The plans of one broker. Owned by the event loop."""

    def __init__(self, *, is_5: bool) -> None:
        self._is_5 = is_5
        self.shapes: ShapePlans[EndPlan] = ShapePlans(self._plan)

    def find(self, record: memoryview) -> PlannedHalf | None:
        """The half message of a record; `None` if it must be decoded, or is none."""
        if self.shapes.skips():
            return None
        parts = parts_of(record, _HALF_TOPIC)
        cut = None if parts is None else _CUT.cut(parts.text)
        plan = None if cut is None else self.shapes.find(cut[0])
        if parts is None or cut is None or plan is None:
            return None
        values = cut[1]
        queue_text = values[plan.queue_number]
        if not queue_text.isdigit() or len(queue_text) > _MOST_QUEUE_DIGITS:
            return None
        return PlannedHalf(plan, parts, int(queue_text), plan.committed.fill(values))

    def _plan(self, shape: Shape) -> EndPlan | None:
        if names.REAL_QID not in values_of(shape):
            return None
        plans = [self._plan_with(shape, values) for values in probes_of(shape, numbers=(names.REAL_QID,))]
        return same_plan(plans)

    def _plan_with(self, shape: Shape, values: list[bytes]) -> EndPlan | None:
        properties, of_values = decode_properties(text_of(shape, values)), values_of(shape)
        group, queue_number = properties.get(names.PGROUP), of_values.index(names.REAL_QID)
        if group is None or not _DETOURS.isdisjoint(properties):
            return None
        try:
            text, topic, queue_id = committed_text(properties, is_5=self._is_5)
        except (KeyError, ValueError):
            return None
        if queue_id != int(values[queue_number]):
            return None
        form = form_of(text, values)
        id_number = of_values.index(names.UNIQ_KEY) if names.UNIQ_KEY in of_values else None
        has_place = id_number is None or form.numbers[:1] == (id_number,)
        return EndPlan(group, topic, form, queue_number, Templates() if has_place else None)


def committed_text(properties: dict[str, str], *, is_5: bool) -> tuple[bytes, str, int]:
    """The property text of a committed message, its topic and its queue, from the properties of the half message.

    5.x removes REAL_TOPIC and REAL_QID from the text, 4.9 does not; from the map both are removed, and TRAN_MSG. Raises
    KeyError or ValueError if the properties do not name the real topic and queue.
    """
    kept = b"" if is_5 else stored_properties(properties, is_5=is_5)
    topic, queue_text = properties.pop(names.REAL_TOPIC), properties.pop(names.REAL_QID)
    queue_id = parse_number(queue_text, 0, INT_MAX)
    if queue_id is None:
        raise ValueError(f"the queue is {queue_text[:40]!r}")
    text = kept or stored_properties(properties, is_5=is_5)
    properties.pop(names.TRAN_MSG, None)
    return text, topic, queue_id
