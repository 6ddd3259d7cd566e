"""What ending a half message needs of its record, read without decoding its properties.

    text of a half message   ...\2UNIQ_KEY\1<id>\2 ... __transactionId__\1<id>\2 ... KEYS\1<keys>\2 ...
    its shape                the same text in pieces, without <id> and <keys>
    shape -> EndPlan         producer group, real topic and queue, and the text of the committed message in pieces

Most half messages of a producer have one shape. Each shape is decoded once, when it is seen for the second time: texts
with other values that differ, such as an order number, then cost little. A shape has no plan if anything in it depends
on the values cut out, or if its commit takes a detour (a delay, a time, an immunity time); those messages are ended
from their decoded record. No official class: the official broker decodes each record.
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

MAX_SHAPES: Final = 1024
"""Shapes remembered; a full memory is emptied and fills again."""
_ID_BYTES: Final = 32
_LONGEST_SHAPE: Final = 4096
_ID_NAME: Final = f"\2{names.UNIQ_KEY}\1".encode()
_KEYS_NAME: Final = f"\2{names.KEYS}\1".encode()
_HALF_TOPIC: Final = bytes((len(HALF_TOPIC),)) + HALF_TOPIC.encode()
_TEXT_AT: Final = len(_HALF_TOPIC) + 2
_SHORT: Final = struct.Struct(">h")
_HEAD: Final = HEADS[0]
_HEAD_BYTES: Final = HEADS[0].size
_DETOURS: Final = frozenset(
    (
        names.DELAY,
        names.TIMER_DELAY_SEC,
        names.TIMER_DELAY_MS,
        names.TIMER_DELIVER_MS,
        names.CHECK_IMMUNITY_TIME_IN_SECONDS,
    )
)

Shape = tuple[tuple[bytes, ...], tuple[bytes, ...]]
"""The text before and behind the value of KEYS, each split at the id. Without KEYS the second is empty."""
_NO_TEXT: Final[tuple[bytes, ...]] = ()
_PROBES: Final = ((b"G" * _ID_BYTES, b"\3g\3"), (b"H" * _ID_BYTES, b"\3hh\3"))
"""Ids and keys that no producer sends, to see what a plan makes of two messages of one shape."""


class EndPlan(msgspec.Struct, frozen=True, gc=False):
    """What all half messages of one shape have in common."""

    group: str
    """The producer group."""
    topic: str
    queue_id: int
    committed: Shape
    """The text of the committed message."""
    properties: dict[str, str]
    """The properties of the committed message without those that hold the id or the keys."""
    id_names: tuple[str, ...]
    """The properties whose value is the id."""

    def property_map(self, unique_id: bytes, keys: bytes) -> dict[str, str]:
        """The properties of the committed message."""
        properties = self.properties.copy()
        text = unique_id.decode()
        for name in self.id_names:
            properties[name] = text
        if keys:
            properties[names.KEYS] = keys.decode()
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
    """The plans of one broker, by shape. Owned by the event loop."""

    def __init__(self, *, is_5: bool) -> None:
        self._is_5 = is_5
        self._plans: dict[Shape, EndPlan | bool] = {}
        """False: the shape has no plan. True: it was seen once."""

    def __len__(self) -> int:
        """How many shapes are remembered."""
        return len(self._plans)

    def find(self, record: memoryview) -> PlannedHalf | None:
        """The half message of a record; `None` if it must be decoded, or is none."""
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
        if (
            not rest.startswith(_HALF_TOPIC)
            or _SHORT.unpack_from(rest, _TEXT_AT - 2)[0] != len(rest) - _TEXT_AT
        ):
            return None
        cut = _cut(rest[_TEXT_AT:])
        if cut is None:
            return None
        shape, unique_id, keys = cut
        plan = self._plans.get(shape)
        if plan is None or plan is True:
            plan = self._learn(shape, is_known=plan is True)
        if plan is False or plan is True:
            return None
        message = NewMessage(
            plan.topic,
            plan.queue_id,
            record[_HEAD_BYTES:topic_at],
            _join(plan.committed, unique_id, keys),
            plan.property_map(unique_id, keys),
            flag,
            with_transaction_type(sys_flag, TRANSACTION_COMMIT),
            born_timestamp,
            born_host,
            store_host,
            reconsume_times,
            position,
        )
        return PlannedHalf(plan, queue_id, queue_offset, position, message)

    def _learn(self, shape: Shape, *, is_known: bool) -> EndPlan | bool:
        if len(self._plans) >= MAX_SHAPES:
            self._plans.clear()
        plan: EndPlan | bool = True
        if is_known:
            plan = self._plan(shape) or False
        elif sum(map(len, shape[0])) + sum(map(len, shape[1])) > _LONGEST_SHAPE:
            return False
        self._plans[shape] = plan
        return plan

    def _plan(self, shape: Shape) -> EndPlan | None:
        """The plan of a shape, tried with two texts of it; `None` if it can have none."""
        plans = [self._plan_of(shape, unique_id, keys) for unique_id, keys in _PROBES]
        return plans[0] if plans[0] == plans[1] else None

    def _plan_of(self, shape: Shape, unique_id: bytes, keys: bytes) -> EndPlan | None:
        if any(unique_id in piece or keys in piece for piece in (*shape[0], *shape[1])):
            return None
        properties = decode_properties(_join(shape, unique_id, keys))
        id_text = unique_id.decode()
        id_names = tuple(name for name, value in properties.items() if value == id_text)
        has_id = sum(id_text in name or id_text in value for name, value in properties.items())
        if (
            names.UNIQ_KEY not in id_names
            or has_id != len(id_names)
            or not _DETOURS.isdisjoint(properties)
            or properties.get(names.KEYS) != (keys.decode() if shape[1] else None)
        ):
            return None
        group = properties.get(names.PGROUP)
        try:
            text, topic, queue_id = committed_text(properties, is_5=self._is_5)
        except (KeyError, ValueError):
            return None
        if group is None or group in id_names:
            return None
        before, behind = text, b""
        if shape[1]:
            before, _, behind = text.partition(keys)
        for name in (*id_names, names.KEYS):
            properties.pop(name, None)
        pieces = tuple(before.split(unique_id)), tuple(behind.split(unique_id)) if shape[1] else _NO_TEXT
        return EndPlan(group, topic, queue_id, pieces, properties, id_names)


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


def _cut(text: bytes) -> tuple[Shape, bytes, bytes] | None:
    """Shape, id and keys of a text; `None` if it has no id such as producers make, or keys that are not ASCII."""
    at = text.find(_ID_NAME) + len(_ID_NAME)
    unique_id = text[at : at + _ID_BYTES]
    if at < len(_ID_NAME) or not unique_id.isalnum() or len(unique_id) != _ID_BYTES:
        return None
    at = text.find(_KEYS_NAME)
    if at < 0:
        return (tuple(text.split(unique_id)), _NO_TEXT), unique_id, b""
    at += len(_KEYS_NAME)
    end = text.find(b"\2", at)
    keys = text[at:] if end < 0 else text[at:end]
    if not keys or not keys.isascii():
        return None
    behind = b"" if end < 0 else text[end:]
    return (tuple(text[:at].split(unique_id)), tuple(behind.split(unique_id))), unique_id, keys


def _join(shape: Shape, unique_id: bytes, keys: bytes) -> bytes:
    before, behind = shape
    if not behind:
        return unique_id.join(before)
    return b"".join((unique_id.join(before), keys, unique_id.join(behind)))
