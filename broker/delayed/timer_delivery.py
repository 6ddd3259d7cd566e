"""Delivers the messages of one timer slot, once it is over.

Recalls of a slot are read first, then its messages are delivered in the order in which they were enqueued. As in the
official broker, the stored text keeps TIMER_OUT_MS, REAL_TOPIC, REAL_QID and the requested time, and gets
TIMER_ENQUEUE_MS (when the message was enqueued) and TIMER_DEQUEUE_MS (now). A message due later than the wheel reaches
is stored in the timer topic once more (TIMER_ROLL_TIMES) and enqueued again. After a kill in the middle of a slot, the
whole slot is delivered again. Mirrors `TimerDequeueGetMessageService` and `TimerDequeuePutMessageService`.
"""

import logging
from array import array
from collections.abc import Generator
from typing import Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.store import PutStatus, StoreError
from pocketmq.store.put_values import AlikeMessage
from pocketmq.store.tables.metric_table import MetricTable
from pocketmq.store.timer.timer_log import MAGIC_DELETE, MAGIC_ROLL, NO_POSITION, TimerUnit
from pocketmq.store.timer.timer_store import TimerStore

from ..state.broker_state import BrokerState
from ..storing.message_copies import copy_of
from ..storing.numbers import INT_MAX, number_property
from ..storing.records import record_of_unit
from .delivery_plans import DeliveryPlans, delivered_text
from .timer_sends import deletion_key

_log = logging.getLogger("pocketmq.delayed")

DELIVERIES_IN_AN_ITERATION: Final = 200
"""Messages delivered in one loop iteration, some milliseconds of work."""
UNITS_IN_AN_ITERATION: Final = 2000
"""Units looked at in one loop iteration, about a millisecond of work."""
ALIKE_AT_ONCE: Final = 64
"""Messages stored in one step."""
RETRY_MS: Final = 500
"""Wait after an append that failed."""

_NEVER: Final = (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED)


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
        first = done = 0
        while first < len(positions):
            count = 0 if recalled else self._attempt_alike(timers, positions, first)
            if not count:
                count = 1
                unit = timers.log.read(positions[first])
                while unit is not None and not _only_deletes(unit) and not self._attempt(unit, recalled):
                    yield RETRY_MS
            first += count
            done += count
            if done >= DELIVERIES_IN_AN_ITERATION:
                done = 0
                yield 0

    def _recall(self, timers: TimerStore, positions: "array[int]", recalled: set[str]) -> Generator[int]:
        """Find out which messages of a slot are recalled; `positions` are those of its units, the newest first."""
        for number, position in enumerate(reversed(positions), 1):
            unit = timers.log.read(position)
            while unit is not None and _only_deletes(unit) and not self._attempt(unit, recalled):
                yield RETRY_MS
            if number % UNITS_IN_AN_ITERATION == 0:
                yield 0

    def _attempt_alike(self, timers: TimerStore, positions: "array[int]", first: int) -> int:
        """`_deliver_alike`; if that fails, the messages are decoded, and only the one that fails again is skipped."""
        try:
            return self._deliver_alike(timers, positions, first)
        except Exception:
            _log.exception("timed messages are delivered one by one")
            return 0

    def _deliver_alike(self, timers: TimerStore, positions: "array[int]", first: int) -> int:
        """Deliver messages that are alike in one step, from the unit `first` on; returns how many. 0: the first of them
        must be decoded."""
        if self._plans.shapes.skips():
            return 0
        state, find = self._state, self._plans.find
        now = b"%d" % state.clock.now_ms()
        plan, template, messages = None, None, list[AlikeMessage]()
        for position in positions[first : first + ALIKE_AT_ONCE]:
            unit = timers.log.read(position)
            if unit is None or unit.magic & (MAGIC_DELETE | MAGIC_ROLL):
                break
            record = state.store.read_record(unit.position, unit.size)
            delivery = None if record is None else find(record, b"%d" % unit.noted_at, now)
            if delivery is None or (template is not None and delivery.template is not template):
                break
            plan, template = delivery.plan, delivery.template
            messages.append(delivery.message)
        if plan is None or template is None:
            return 0
        stored = state.store.append_alike(template, messages)
        if stored is None:
            return 0
        count = len(stored.positions)
        self.count += count
        state.statistics.messages_put(plan.topic, count, stored.end - stored.positions[0])
        self._metrics.add(plan.topic, -count, changes=count)
        return count

    def _attempt(self, unit: TimerUnit, recalled: set[str]) -> bool:
        """Deliver one message; False if the store refuses it now.

        A message that fails in any other way is skipped: starting the slot again would deliver the messages before it
        twice.
        """
        try:
            return self._deliver_unit(unit, recalled)
        except (StoreError, OSError) as error:
            _log.error("timed message at log position %d waits: %s", unit.position, error)
            return False
        except Exception:
            _log.exception("skipped the timed message at log position %d", unit.position)
            return True

    def _deliver_unit(self, unit: TimerUnit, recalled: set[str]) -> bool:
        """Deliver one message unless it was recalled; False if the store refuses it now."""
        record = record_of_unit(self._state.store, unit.position, unit.size)
        if record is None:
            return True
        properties = decode_properties(record.properties)
        if _only_deletes(unit):
            if (key := properties.get(names.TIMER_DEL_UNIQKEY)) is not None:
                recalled.add(key)
                self._count(properties, 1)
            return True
        if recalled and self._key(properties) in recalled:
            self._count(properties, -1)
            return True
        if not self.deliver(record, properties, unit.noted_at, rolls=bool(unit.magic & MAGIC_ROLL)):
            return False
        self._count(properties, -1)
        return True

    def deliver(self, record: Record, properties: dict[str, str], noted_at: int, *, rolls: bool) -> bool:
        """Store a message in its real topic, or if it `rolls`, once more in the timer topic. False if the store refuses
        it now; a message that can never be stored is skipped."""
        if names.TIMER_DEL_UNIQKEY in properties and not rolls:
            return True
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
            return True
        else:
            queue_id = real_queue
        result = state.store.append(copy_of(record, topic, queue_id, stored, text))
        if result.status in _NEVER:
            _log.error("timed message at %d is lost: %s", record.position, result.status.name)
            return True
        if result.status is not PutStatus.PUT_OK:
            _log.warning("cannot store a timed message for %s: %s", topic, result.status.name)
            return False
        self.count += 1
        state.statistics.message_put(topic, 1, result.size)
        return True

    def _key(self, properties: dict[str, str]) -> str:
        topic, unique_id = properties.get(names.REAL_TOPIC, ""), properties.get(names.UNIQ_KEY, "")
        return deletion_key(self._state.config, topic, unique_id)

    def _count(self, properties: dict[str, str], change: int) -> None:
        topic = properties.get(names.REAL_TOPIC)
        if topic is not None:
            self._metrics.add(topic, change)


def _only_deletes(unit: TimerUnit) -> bool:
    return bool(unit.magic & MAGIC_DELETE) and not unit.magic & MAGIC_ROLL
