"""Stores the records of pops: checkpoints (messages in flight) and acks, as timed messages.

    checkpoint   due a second before its messages are delivered again
    ack          due when its checkpoint's time is over

The timer delivers both to the revive topic; their queue is the revive queue of the receipt. So a checkpoint is in its
revive queue before its acks, and `revive.py` finds both in time. Mirrors `PopMessageProcessor.buildCkMsg` and the
storing half of `AckMessageProcessor`. The official buffer that merges acks in memory (`enablePopBufferMerge`, off by
default) has no counterpart here.

Records of one tag have texts that differ in id, times and queue only: they are filled into a form, which is made by the
ordinary steps, tried with two sets of values. The ordinary steps store what is due already or cannot be filled in.
"""

from typing import Final, NamedTuple

from pocketmq.protocol.bodies.revive import ACK_TAG, BATCH_ACK_TAG, CHECKPOINT_TAG, Ack, CheckPoint
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.topics import revive_topic
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import NewMessage, PutStatus
from pocketmq.store.log.record_template import whole_text
from pocketmq.store.lookup.message_template import MessageTemplate

from ..delayed.delayed import Delayed
from ..errors import Refusal
from ..state.broker_state import BrokerState
from ..storing.message_copies import own_message
from ..storing.text_shapes import TextForm, form_of

CHECKPOINT_LEAD_MS: Final = 1000
"""How long before its own time a checkpoint is due in the revive topic."""
_NO_LIMIT: Final = 2_147_483_647
"""timerCongestNumEachSlot unless it is set: no slot is ever full."""
_PROBES: Final = (("probe@0@id-g@g@1@b@ck", 60_007), ("probe@0@id-h@h@2@b@ck", 71_113))
"""Two ids and queues that no record has."""
_PROBE_AHEAD_MS: Final = 3_600_123
_LEAST_MS: Final = 1_000_000_000_000
_LAST_MS: Final = 9_999_999_999_999
"""Times of 13 digits: the id behind them has the same place in all texts."""
_LAST_QUEUE: Final = 9


class _Form(NamedTuple):
    """What the records of one tag share."""

    text: TextForm
    """Its values are id, due time, slot and revive queue."""
    template: MessageTemplate


class ReviveLog:
    """Writes checkpoints and acks."""

    def __init__(self, state: BrokerState, delayed: Delayed) -> None:
        self._state = state
        self._delayed = delayed
        self._topic = revive_topic(state.config.broker_cluster_name)
        self._forms: dict[str, _Form | None] = {}
        """By tag."""

    def put_checkpoint(self, point: CheckPoint, revive_queue_id: int) -> None:
        """Store a checkpoint. Raises `Refusal` if the store or the timer refuses it."""
        key = _unique_key(point, point.start_offset, CHECKPOINT_TAG)
        self._put(point.encode(), CHECKPOINT_TAG, key, revive_queue_id, point.due_ms - CHECKPOINT_LEAD_MS)

    def put_ack(self, ack: Ack, revive_queue_id: int, due_ms: int) -> None:
        """Store an ack. Raises `Refusal` like `put_checkpoint`."""
        tag = ACK_TAG if ack.ack_offsets is None else BATCH_ACK_TAG
        key = _unique_key(ack, ack.ack_offset, ACK_TAG)
        self._put(ack.encode(), tag, key, revive_queue_id, due_ms)

    def _put(self, body: bytes, tag: str, key: str, queue_id: int, due_ms: int) -> None:
        if self._put_filled(body, tag, key, queue_id, due_ms):
            return
        result = self._state.store.append(self._message(body, tag, key, queue_id, due_ms))
        if result.status is not PutStatus.PUT_OK:
            raise Refusal(ResponseCode.SYSTEM_ERROR, result.status.name)

    def _message(self, body: bytes, tag: str, key: str, queue_id: int, due_ms: int) -> NewMessage:
        """The record as the ordinary steps make it. Raises `Refusal`."""
        state = self._state
        properties = {names.TIMER_DELIVER_MS: str(due_ms), names.UNIQ_KEY: key, names.TAGS: tag}
        message = own_message(
            self._topic,
            queue_id,
            body,
            properties,
            is_5=state.config.is_5,
            now_ms=state.clock.now_ms(),
            store_host=state.identity.store_host,
        )
        return self._delayed.time_if_asked(message, is_own=True)

    def _put_filled(self, body: bytes, tag: str, key: str, queue_id: int, due_ms: int) -> bool:
        """Store a record by its form; False if the ordinary steps must do it."""
        config, now_ms = self._state.config.store, self._state.clock.now_ms()
        if (
            not now_ms < due_ms <= now_ms + config.timer_max_delay_sec * 1000
            or not _LEAST_MS + config.timer_precision_ms <= due_ms <= _LAST_MS
            or not 0 <= queue_id <= _LAST_QUEUE
            or not config.timer_wheel_enable
            or config.timer_congest_num_each_slot != _NO_LIMIT
            or config.flush_disk_type == "SYNC_FLUSH"
            or not key.isascii()
        ):
            return False
        form = self._forms.get(tag)
        if form is None and tag not in self._forms:
            form = self._forms[tag] = self._made_form(tag)
        if form is None:
            return False
        precision_ms, timer = config.timer_precision_ms, self._delayed.timer
        moment_ms = (due_ms - 1) // precision_ms * precision_ms
        text = form.text.fill((key.encode(), b"%d" % due_ms, b"%d" % moment_ms, b"%d" % queue_id))
        timer.is_told_later = True
        try:
            stored = self._state.store.append_alike(form.template, [(0, body, whole_text(text), now_ms, 0)])
        finally:
            timer.is_told_later = False
        if stored is None:
            return False
        timer.arrived_alike(stored, moment_ms, self._topic)
        return True

    def _made_form(self, tag: str) -> _Form | None:
        """`None` if the texts differ in more than their values."""
        forms = []
        due_ms = self._state.clock.now_ms() + _PROBE_AHEAD_MS
        for key, queue_id in _PROBES:
            message = self._message(b"", tag, key, queue_id, due_ms)
            moment = message.property_map.get(names.TIMER_OUT_MS, "")
            values = [key.encode(), b"%d" % due_ms, moment.encode(), b"%d" % queue_id]
            if not moment or len(set(values)) < len(values):
                return None
            forms.append(form_of(message.properties, values))
        if forms[0] != forms[1] or sorted(forms[0].numbers) != [0, 1, 2, 3]:
            return None
        example = self._message(b"", tag, _PROBES[0][0], 0, due_ms)
        template = self._state.store.template(example, shares_text=False)
        return None if template is None else _Form(forms[0], template)


def _unique_key(record: CheckPoint | Ack, offset: int, tag: str) -> str:
    return f"{record.topic}@{record.queue_id}@{offset}@{record.group}@{record.pop_time}@{record.broker_name}@{tag}"
