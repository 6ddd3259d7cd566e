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
from pocketmq.store.tables.metric_table import MetricTable
from pocketmq.store.timer.timer_log import MAGIC_DELETE, MAGIC_ROLL, NO_POSITION, TimerUnit
from pocketmq.store.timer.timer_store import TimerStore

from ..state.broker_state import BrokerState
from ..storing.message_copies import copy_of
from ..storing.numbers import INT_MAX, number_property
from ..storing.records import record_of_unit
from ..storing.stored_properties import stored_properties
from .timer_sends import deletion_key

_log = logging.getLogger("pocketmq.delayed")

DELIVERIES_IN_AN_ITERATION: Final = 200
"""Messages delivered in one loop iteration, some milliseconds of work."""
UNITS_IN_AN_ITERATION: Final = 5000
RETRY_MS: Final = 500
"""Wait after an append that failed."""

_NEVER: Final = (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED)


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
        for is_for_deletion in (True, False):
            done = 0
            for index in range(len(positions) - 1, -1, -1):
                unit = timers.log.read(positions[index])
                if unit is None or _only_deletes(unit) is not is_for_deletion:
                    continue
                while not self._attempt(unit, recalled):
                    yield RETRY_MS
                done += 1
                if done % DELIVERIES_IN_AN_ITERATION == 0:
                    yield 0

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
        properties[names.TIMER_ENQUEUE_MS] = str(noted_at)
        if rolls:
            times = number_property(properties, names.TIMER_ROLL_TIMES, 0, INT_MAX - 1) or 0
            properties[names.TIMER_ROLL_TIMES] = str(times + 1)
        properties[names.TIMER_DEQUEUE_MS] = str(state.clock.now_ms())
        text = stored_properties(properties, is_5=state.config.is_5)
        topic, queue_id = TIMER_TOPIC, record.queue_id
        stored = dict(properties)
        if not rolls:
            real_queue = number_property(stored, names.REAL_QID, 0, INT_MAX)
            topic = stored.pop(names.REAL_TOPIC, "")
            stored.pop(names.REAL_QID, None)
            if not topic or real_queue is None:
                _log.error("timed message at %d does not name its real topic and queue", record.position)
                return True
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
