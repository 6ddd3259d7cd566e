"""Delivers the messages of one timer slot, once it is over.

Recalls of a slot are read first, then its messages are delivered in the order in which they were enqueued. As in the
official broker, the stored text keeps TIMER_OUT_MS, REAL_TOPIC, REAL_QID and the requested time, and gets
TIMER_ENQUEUE_MS (when the message was enqueued) and TIMER_DEQUEUE_MS (now). A message due later than the wheel reaches
is stored in the timer topic once more (TIMER_ROLL_TIMES) and enqueued again. After a kill in the middle of a slot, the
rest of it is delivered; only the message that was interrupted may be delivered twice.
Mirrors `TimerDequeueGetMessageService` and `TimerDequeuePutMessageService`.
"""

import logging
from array import array
from collections.abc import Generator
from typing import Final

from pocketmq.core.properties import Changes, read_properties
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.store import PutStatus
from pocketmq.store.put_values import AppendResult
from pocketmq.store.timer.timer_log import MAGIC_DELETE, MAGIC_ROLL, NO_POSITION, TimerUnit
from pocketmq.store.timer.timer_store import TimerStore

from ..config.broker_config import BrokerConfig
from ..state.broker_state import BrokerState
from ..storing.deliveries import deliver, is_done
from ..storing.messages import copy_of, real_place, record_of_entry
from ..storing.numbers import INT_MAX, number_property
from ..tables.metric_table import MetricTable
from ..time.slices import Budget

_log = logging.getLogger("pocketmq.delayed")

UNITS_IN_AN_ITERATION: Final = 2000
"""Units looked at in one loop iteration, about a millisecond of work."""
NEVER_ENQUEUED: Final = (1 << 63) - 1
"""TIMER_ENQUEUE_MS of a message that was already due when the timer read it."""
RETRY_MS: Final = 500
"""Wait after an append that failed."""


class TimerDelivery:
    """Delivers the messages of one broker; `count` is their number since the start."""

    def __init__(self, state: BrokerState, metrics: MetricTable) -> None:
        self._state = state
        self._metrics = metrics
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
        first, end_ms = timers.delivered, timers.read_ms + timers.precision_ms
        budget = Budget(self._state.clock.now_ms() - end_ms)
        while first < len(positions):
            unit = timers.log.read(positions[first])
            budget.spend(size_bytes=0 if unit is None else unit.size)
            while unit is not None and not _only_deletes(unit) and not self._attempt(unit, recalled):
                yield RETRY_MS
            first += 1
            timers.save_progress(first)
            if budget.is_spent:
                yield 0
                budget = Budget(self._state.clock.now_ms() - end_ms)

    def _recall(self, timers: TimerStore, positions: "array[int]", recalled: set[str]) -> Generator[int]:
        """Find out which messages of a slot are recalled; `positions` are those of its units, the newest first."""
        for number, position in enumerate(reversed(positions), 1):
            unit = timers.log.read(position)
            while unit is not None and _only_deletes(unit) and not self._attempt(unit, recalled):
                yield RETRY_MS
            if number % UNITS_IN_AN_ITERATION == 0:
                yield 0

    def _attempt(self, unit: TimerUnit, recalled: set[str]) -> bool:
        """Deliver one message; False if the store refuses it now."""
        return deliver("timed", unit.position, lambda: self._deliver_unit(unit, recalled))

    def _deliver_unit(self, unit: TimerUnit, recalled: set[str]) -> AppendResult | None:
        record = record_of_entry(self._state.store, unit.position, unit.size)
        if record is None:
            return None
        properties = read_properties(record.properties)
        if not unit.is_for(number_property(properties, names.TIMER_OUT_MS)):
            _log.error("log position %d has another timed message than the one due now", unit.position)
            return None
        if _only_deletes(unit):
            if (key := properties.get(names.TIMER_DEL_UNIQKEY)) is not None:
                recalled.add(key)
                self._count(properties, 1)
            return None
        topic, unique_id = properties.get(names.REAL_TOPIC, ""), properties.get(names.UNIQ_KEY, "")
        result = None
        if not recalled or deletion_key(self._state.config, topic, unique_id) not in recalled:
            enqueued_at = NEVER_ENQUEUED if unit.delay < 0 else unit.enqueued_at
            rolls = bool(unit.magic & MAGIC_ROLL)
            result = self.store_copy(record, properties, enqueued_at, rolls=rolls)
        if is_done(result):
            self._count(properties, -1)
        return result

    def store_copy(
        self, record: Record, properties: dict[str, str], enqueued_at: int, *, rolls: bool
    ) -> AppendResult | None:
        """Store a message in its real topic, or if it `rolls`, once more in the timer topic; `None` if it names no
        topic, or is a recall."""
        if names.TIMER_DEL_UNIQKEY in properties and not rolls:
            return None
        state = self._state
        changes: Changes = (names.TIMER_ENQUEUE_MS, str(enqueued_at))
        place = real_place(properties.get(names.REAL_TOPIC), properties.get(names.REAL_QID))
        if rolls:
            times = number_property(properties, names.TIMER_ROLL_TIMES, 0, INT_MAX - 1) or 0
            changes = (*changes, names.TIMER_ROLL_TIMES, str(times + 1))
            place = TIMER_TOPIC, record.queue_id
        elif place is None:
            _log.error("timed message at %d does not name its real topic and queue", record.position)
            return None
        changes = (*changes, names.TIMER_DEQUEUE_MS, str(state.clock.now_ms()))
        result = state.store.append(copy_of(record, *place, changes))
        if result.status is PutStatus.PUT_OK:
            self.count += 1
            state.statistics.count_put(place[0], 1, result.size)
        return result

    def _count(self, properties: dict[str, str], change: int) -> None:
        topic = properties.get(names.REAL_TOPIC)
        if topic is not None:
            self._metrics.add(topic, change)


def _only_deletes(unit: TimerUnit) -> bool:
    return bool(unit.magic & MAGIC_DELETE) and not unit.magic & MAGIC_ROLL


def deletion_key(config: BrokerConfig, topic: str, unique_id: str) -> str:
    """The value of TIMER_DEL_UNIQKEY that recalls this message."""
    is_long = config.store.append_topic_for_timer_delete_key
    return f"{topic}+{unique_id}" if is_long else unique_id
