"""Delivers the messages of one timer slot, once it is over.

Recalls of a slot are read first, then its messages are delivered in the order in which they were enqueued. As in the
official broker, the stored text keeps TIMER_OUT_MS, REAL_TOPIC, REAL_QID and the requested time, and gets
TIMER_ENQUEUE_MS (when the message was enqueued) and TIMER_DEQUEUE_MS (now). A message due later than the wheel reaches
is stored in the timer topic once more (TIMER_ROLL_TIMES) and enqueued again. After a kill in the middle of a slot, the
rest of it is delivered; only the messages of the step that was interrupted (ALIKE_AT_ONCE) may be delivered twice.
Mirrors `TimerDequeueGetMessageService` and `TimerDequeuePutMessageService`.
"""

import logging
from array import array
from collections.abc import Generator
from typing import Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.store import PutStatus
from pocketmq.store.put_values import AlikeMessage, AppendResult
from pocketmq.store.timer.timer_log import MAGIC_DELETE, MAGIC_ROLL, NO_POSITION, TimerUnit
from pocketmq.store.timer.timer_store import TimerStore

from ..state.broker_state import BrokerState
from ..storing.deliveries import Budget, deliver, is_done
from ..storing.message_copies import copy_of
from ..storing.numbers import INT_MAX, number_property
from ..storing.records import record_of_unit
from ..tables.metric_table import MetricTable
from .delivery_plans import DeliveryPlans, delivered_text
from .timer_sends import deletion_key

_log = logging.getLogger("pocketmq.delayed")

UNITS_IN_AN_ITERATION: Final = 2000
"""Units looked at in one loop iteration, about a millisecond of work."""
ALIKE_AT_ONCE: Final = 64
"""Messages stored in one step."""
BYTES_AT_ONCE: Final = 1 << 20
"""A step ends with the message that exceeds this."""
RETRY_MS: Final = 500
"""Wait after an append that failed."""


class TimerDelivery:
    """Delivers the messages of one broker; `count` is their number since the start."""

    def __init__(self, state: BrokerState, metrics: MetricTable) -> None:
        self._state = state
        self._metrics = metrics
        self._plans = DeliveryPlans(state.store)
        self.count = 0

    def slot(self, timers: TimerStore, position: int) -> Generator[int]:
        """Deliver all messages of the slot `read_ms`, in the order in which they were enqueued; yields the milliseconds
        until it continues."""
        positions = array("q")
        while position != NO_POSITION:
            position = timers.collect(position, positions, UNITS_IN_AN_ITERATION)
            if position != NO_POSITION:
                yield 0
        recalled: set[str] = set()
        # A unit that deletes counts as -1, so equal numbers mean that there is none.
        if timers.count_at(timers.read_ms) != len(positions):
            yield from self._recall(timers, positions, recalled)
        positions.reverse()
        first, budget = timers.delivered, Budget()
        while first < len(positions):
            count = 0 if recalled else self._attempt_alike(timers, positions, first, budget)
            if not count:
                count = 1
                unit = timers.log.read(positions[first])
                budget.spend(size_bytes=0 if unit is None else unit.size)
                while unit is not None and not _only_deletes(unit) and not self._attempt(unit, recalled):
                    yield RETRY_MS
            first += count
            timers.note_progress(first)
            if budget.is_spent:
                yield 0
                budget = Budget()

    def _recall(self, timers: TimerStore, positions: "array[int]", recalled: set[str]) -> Generator[int]:
        """Find out which messages of a slot are recalled; `positions` are those of its units, the newest first."""
        for number, position in enumerate(reversed(positions), 1):
            unit = timers.log.read(position)
            while unit is not None and _only_deletes(unit) and not self._attempt(unit, recalled):
                yield RETRY_MS
            if number % UNITS_IN_AN_ITERATION == 0:
                yield 0

    def _attempt_alike(self, timers: TimerStore, positions: "array[int]", first: int, budget: Budget) -> int:
        """`_deliver_alike`; if that fails, the messages are decoded, and only the one that fails again is skipped."""
        try:
            return self._deliver_alike(timers, positions, first, budget)
        except Exception:
            _log.exception("timed messages are delivered one by one")
            return 0

    def _deliver_alike(self, timers: TimerStore, positions: "array[int]", first: int, budget: Budget) -> int:
        """Deliver messages that are alike in one step, from the unit `first` on; returns how many. 0: the first of them
        must be decoded."""
        if self._plans.shapes.skips():
            return 0
        state, find = self._state, self._plans.find
        now = b"%d" % state.clock.now_ms()
        plan, template, messages = None, None, list[AlikeMessage]()
        size_bytes = 0
        for position in positions[first : first + ALIKE_AT_ONCE]:
            unit = timers.log.read(position)
            if unit is None or unit.magic & (MAGIC_DELETE | MAGIC_ROLL):
                break
            record = state.store.read_record(unit.position, unit.size)
            delivery = (
                None if record is None else find(record, b"%d" % unit.due_ms, b"%d" % unit.noted_at, now)
            )
            if delivery is None or (template is not None and delivery.template is not template):
                break
            plan, template = delivery.plan, delivery.template
            messages.append(delivery.message)
            size_bytes += unit.size
            if size_bytes > BYTES_AT_ONCE:
                break
        if plan is None or template is None:
            return 0
        stored = state.store.append_alike(template, messages)
        if stored is None:
            return 0
        count = len(stored.positions)
        budget.spend(count, size_bytes)
        self.count += count
        state.statistics.messages_put(plan.topic, count, stored.end - stored.positions[0])
        self._metrics.add(plan.topic, -count, changes=count)
        return count

    def _attempt(self, unit: TimerUnit, recalled: set[str]) -> bool:
        """Deliver one message; False if the store refuses it now."""
        return deliver("timed", unit.position, lambda: self._deliver_unit(unit, recalled))

    def _deliver_unit(self, unit: TimerUnit, recalled: set[str]) -> AppendResult | None:
        """Deliver one message unless it was recalled."""
        record = record_of_unit(self._state.store, unit.position, unit.size)
        if record is None:
            return None
        properties = decode_properties(record.properties)
        if not unit.is_for(number_property(properties, names.TIMER_OUT_MS)):
            _log.error("log position %d has another timed message than the one due now", unit.position)
            return None
        if _only_deletes(unit):
            if (key := properties.get(names.TIMER_DEL_UNIQKEY)) is not None:
                recalled.add(key)
                self._count(properties, 1)
            return None
        result = None
        if not recalled or self._key(properties) not in recalled:
            result = self.store_copy(record, properties, unit.noted_at, rolls=bool(unit.magic & MAGIC_ROLL))
        if is_done(result):
            self._count(properties, -1)
        return result

    def store_copy(
        self, record: Record, properties: dict[str, str], noted_at: int, *, rolls: bool
    ) -> AppendResult | None:
        """Store a message in its real topic, or if it `rolls`, once more in the timer topic; `None` if it names no
        topic, or is a recall."""
        if names.TIMER_DEL_UNIQKEY in properties and not rolls:
            return None
        state = self._state
        properties[names.TIMER_ENQUEUE_MS] = str(
            noted_at
        )  # before the next one: the order decides within a hash bucket
        if rolls:
            times = number_property(properties, names.TIMER_ROLL_TIMES, 0, INT_MAX - 1) or 0
            properties[names.TIMER_ROLL_TIMES] = str(times + 1)
        stored = dict(properties)
        text, topic, real_queue = delivered_text(stored, str(noted_at), str(state.clock.now_ms()))
        queue_id = record.queue_id
        if rolls:
            topic, stored = TIMER_TOPIC, decode_properties(text)
        elif not topic or real_queue is None:
            _log.error("timed message at %d does not name its real topic and queue", record.position)
            return None
        else:
            queue_id = real_queue
        result = state.store.append(copy_of(record, topic, queue_id, stored, text))
        if result.status is PutStatus.PUT_OK:
            self.count += 1
            state.statistics.message_put(topic, 1, result.size)
        return result

    def _key(self, properties: dict[str, str]) -> str:
        topic, unique_id = properties.get(names.REAL_TOPIC, ""), properties.get(names.UNIQ_KEY, "")
        return deletion_key(self._state.config, topic, unique_id)

    def _count(self, properties: dict[str, str], change: int) -> None:
        topic = properties.get(names.REAL_TOPIC)
        if topic is not None:
            self._metrics.add(topic, change)


def _only_deletes(unit: TimerUnit) -> bool:
    return bool(unit.magic & MAGIC_DELETE) and not unit.magic & MAGIC_ROLL
