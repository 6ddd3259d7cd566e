"""What ending a half message needs of its record, read without decoding its properties.

    text of a half message   -> shape and values: its id, its keys, its real queue     (`storing/text_shapes.py`)
    shape                    -> EndPlan: producer group, real topic, the text of the committed message

Most half messages of a producer have one shape. A shape has no plan if its commit takes a detour (a delay, a time, an
immunity time) or if the half message does not name its real topic and queue; such messages are ended from their decoded
record. No official class: the official broker decodes each record.
"""

import struct
from typing import Final

import msgspec
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import HOSTS_IPV6, TRANSACTION_COMMIT, with_transaction_type
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import HEADS, MAGIC_V1
from pocketmq.protocol.message.topics import HALF_TOPIC
from pocketmq.store import NewMessage

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

_HALF_TOPIC: Final = bytes((len(HALF_TOPIC),)) + HALF_TOPIC.encode()
_TEXT_AT: Final = len(_HALF_TOPIC) + 2
_SHORT: Final = struct.Struct(">h")
_HEAD: Final = HEADS[0]
_HEAD_BYTES: Final = HEADS[0].size
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
    properties: dict[str, str]
    """The properties of the committed message that repeat."""
    varying: tuple[tuple[int, str], ...]
    """Which value is which other property of it."""

    def property_map(self, values: list[bytes]) -> dict[str, str]:
        """The properties of the committed message."""
        properties = self.properties.copy()
        for number, name in self.varying:
            properties[name] = values[number].decode()
        return properties


class PlannedHalf(msgspec.Struct, frozen=True, gc=False):
    """A half message whose shape has a plan."""

    plan: EndPlan
    queue_id: int
    queue_offset: int
    position: int
    message: NewMessage
    """The message that its commit stores."""


class EndPlans:
    """The plans of one broker. Owned by the event loop."""

    def __init__(self, *, is_5: bool) -> None:
        self._is_5 = is_5
        self.shapes: ShapePlans[EndPlan] = ShapePlans(self._plan)

    def find(self, record: memoryview) -> PlannedHalf | None:
        """The half message of a record; `None` if it must be decoded, or is none."""
        if self.shapes.skips():
            return None
        (
            size,
            magic,
            _,
            queue_id,
            flag,
            queue_offset,
            position,
            sys_flag,
            born_timestamp,
            born_host,
            _,
            store_host,
            reconsume_times,
            _,
            body_bytes,
        ) = _HEAD.unpack_from(record)
        if magic != MAGIC_V1 or sys_flag & HOSTS_IPV6 or not 0 <= body_bytes < size:
            return None
        topic_at = _HEAD_BYTES + body_bytes
        rest = bytes(record[topic_at:])
        text_bytes = len(rest) - _TEXT_AT
        if not rest.startswith(_HALF_TOPIC) or _SHORT.unpack_from(rest, _TEXT_AT - 2)[0] != text_bytes:
            return None
        cut = _CUT.cut(rest[_TEXT_AT:])
        plan = None if cut is None else self.shapes.find(cut[0])
        if cut is None or plan is None:
            return None
        values = cut[1]
        queue_text = values[plan.queue_number]
        if not queue_text.isdigit() or len(queue_text) > _MOST_QUEUE_DIGITS:
            return None
        message = NewMessage(
            plan.topic,
            int(queue_text),
            record[_HEAD_BYTES:topic_at],
            plan.committed.fill(values),
            plan.property_map(values),
            flag,
            with_transaction_type(sys_flag, TRANSACTION_COMMIT),
            born_timestamp,
            born_host,
            store_host,
            reconsume_times,
            position,
        )
        return PlannedHalf(plan, queue_id, queue_offset, position, message)

    def _plan(self, shape: Shape) -> EndPlan | None:
        if names.REAL_QID not in values_of(shape):
            return None
        plans = [self._plan_with(shape, values) for values in probes_of(shape, numbers=(names.REAL_QID,))]
        return plans[0] if len(plans) == 2 and plans[0] == plans[1] else None

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
        varying = tuple((number, name) for number, name in enumerate(of_values) if name in properties)
        for number, name in varying:
            if properties.pop(name).encode() != values[number]:
                return None
        return EndPlan(group, topic, form_of(text, values), queue_number, properties, varying)


def committed_text(properties: dict[str, str], *, is_5: bool) -> tuple[bytes, str, int]:
    """The property text of a committed message, its topic and its queue, from the properties of the half message.

    5.x removes REAL_TOPIC and REAL_QID from the text, 4.9 does not; from the map both are removed, and TRAN_MSG. Raises
    KeyError or ValueError if the properties do not name the real topic and queue.
    """
    kept = b"" if is_5 else stored_properties(properties, is_5=is_5)
    topic, queue_id = properties.pop(names.REAL_TOPIC), int(properties.pop(names.REAL_QID))
    text = kept or stored_properties(properties, is_5=is_5)
    properties.pop(names.TRAN_MSG, None)
    return text, topic, queue_id
