"""Messages with a delay level: stored in the schedule topic, delivered from it when they are due.

    SCHEDULE_TOPIC_XXXX queue 2     tags code of the entry: its due time; REAL_TOPIC, REAL_QID: its real topic and queue
    due: real topic and queue       same bytes except queue, offsets and store time

Each level (1 to 18 by default) is one queue. All messages of a queue wait equally long, so the first one is always due
next. delayOffset.json keeps the delivered offset of each level; after a crash, messages delivered since its last save
are delivered again. One timer is set to the earliest due time; without waiting messages nothing runs. The official
broker checks every 100 ms instead, and so delivers up to 100 ms late.

Mirrors `ScheduleMessageService`; owned by the event loop. Messages for an exact time are in `timer.py`.
"""

import logging
from functools import partial
from typing import Final

from pocketmq.core.properties import read_values
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.record import decode_record
from pocketmq.protocol.message.topics import HALF_TOPIC, SCHEDULE_TOPIC
from pocketmq.store import PutStatus
from pocketmq.store.put_values import AppendResult

from ..state.broker_state import BrokerState
from ..storing.deliveries import deliver
from ..storing.messages import copy_of, real_place
from ..time.slices import Budget
from ..time.timers import Timer

_log = logging.getLogger("pocketmq.delayed")

RETRY_MS: Final = 100
"""Wait after an append that failed."""
FAILURE_PAUSE_MS: Final = 10_000
"""How long a level pauses after an unexpected error."""


class DelayLevels:
    """Delivery of all levels. `start` and `stop` mirror each other; a slave delivers nothing."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._due_ms: dict[int, int] = {}
        """When to check a level again. Levels without waiting messages are missing."""
        self._timer: Timer | None = None
        self._wake_ms = 0
        self._late_ms = 0
        """How late the last message of the last iteration was, if that has left some."""
        self._pauses: dict[int, Timer] = {}
        """Levels that are tried again after a failure, by the wall's time: they wait for the disk."""
        self._is_running = False

    def start(self) -> None:
        """Correct stored offsets to the range of their queues and start to deliver. Late messages are delivered in the
        next loop iteration; the official broker waits a second first."""
        state = self._state
        if self._is_running or state.config.is_slave:
            return
        self._is_running = True
        now_ms = state.clock.now_ms()
        for level in state.delays.levels:
            queue = state.store.consume_queue(SCHEDULE_TOPIC, level - 1)
            if queue is not None:
                state.delays.correct(level, queue.min_offset, queue.max_offset)
                self._due_ms[level] = now_ms
        self._set_timer()

    def stop(self) -> None:
        """Stop delivering; the remaining messages keep waiting."""
        self._is_running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for pause in self._pauses.values():
            pause.cancel()
        self._pauses.clear()
        self._due_ms.clear()

    def awaits(self, queue_id: int) -> bool:
        """Whether the next message of this queue of the schedule topic decides when its level is checked."""
        level = queue_id + 1
        return self._is_running and level not in self._due_ms and level not in self._pauses

    def arrived(self, queue_id: int, due_ms: int) -> None:
        """A message became visible in a queue of the schedule topic; `due_ms` is its tags code."""
        level = queue_id + 1
        if self.awaits(queue_id) and level in self._state.delays.levels:
            self._due_ms[level] = due_ms
            self._record_offset(level, self._state.delays.offset(level))
            if self._timer is None or due_ms < self._wake_ms:
                self._set_timer()

    def deliver_due(self, now_ms: int) -> None:
        """Deliver due messages, level by level, as many as fit into one loop iteration."""
        budget, self._late_ms = Budget(self._late_ms), 0
        for level in [level for level in self._due_ms if self._is_due(level, now_ms)]:
            if budget.is_spent:
                break
            del self._due_ms[level]  # and added at the end: the next iteration begins with the other levels
            try:
                next_ms = self._deliver_level(level, now_ms, budget)
            except Exception:
                _log.exception("delivery of delay level %d failed", level)
                self._pause(level, FAILURE_PAUSE_MS)
                continue
            if next_ms is not None:
                self._due_ms[level] = next_ms

    def _pause(self, level: int, ms: int) -> None:
        def go_on() -> None:
            del self._pauses[level]
            self._due_ms[level] = self._state.clock.now_ms()
            self._set_timer()

        self._pauses[level] = self._state.timers.call_by_wall(ms / 1000, go_on)

    def _is_due(self, level: int, now_ms: int) -> bool:
        # No level waits longer than its delay. If one seems to, the clock was set back.
        due_ms = self._due_ms[level]
        return due_ms <= now_ms or due_ms > now_ms + self._state.delays.levels[level]

    def _tick(self) -> None:
        self._timer = None
        if self._is_running:
            self.deliver_due(self._state.clock.now_ms())
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._due_ms:
            return
        self._wake_ms = min(self._due_ms.values())
        self._timer = self._state.timers.call_at(self._wake_ms, self._tick)

    def _deliver_level(self, level: int, now_ms: int, budget: Budget) -> int | None:
        """Deliver the due messages of one level; returns when to check again, `None` if no message waits."""
        state, delays = self._state, self._state.delays
        queue = state.store.consume_queue(SCHEDULE_TOPIC, level - 1)
        if queue is None:
            return None
        offset = min(max(delays.offset(level), queue.min_offset), queue.max_offset)
        while offset < queue.max_offset and not budget.is_spent:
            unit = queue.unit(offset)
            if unit is None:
                _log.error("unit %d of %s queue %d cannot be read", offset, SCHEDULE_TOPIC, level - 1)
                offset = min(queue.next_file_offset(offset), queue.max_offset)
                budget.spend()
                continue
            position, size, due_ms = unit
            # A due time further ahead than the level's delay means that the clock has been set back since.
            if now_ms < due_ms <= delays.deliver_timestamp(level, now_ms):
                self._record_offset(level, offset)
                return due_ms
            budget.spend(size_bytes=size)
            if budget.is_spent:
                self._late_ms = now_ms - due_ms
            if not deliver("delayed", position, partial(self._store, level, position, size)):
                self._record_offset(level, offset)
                self._pause(level, RETRY_MS)
                return None
            offset += 1
            delays.update(level, offset)
        return now_ms if offset < queue.max_offset else None

    def _record_offset(self, level: int, offset: int) -> None:
        """Record the offset of a level before its first delivery: only in 5.x, 4.9 records it with the delivery."""
        if self._state.config.is_5:
            self._state.delays.update(level, offset)

    def _store(self, level: int, position: int, size: int) -> AppendResult | None:
        """Store one waiting message in its real topic. `None` if its record was deleted or names no other topic."""
        state = self._state
        data = state.store.read_record(position, size)
        if data is None:
            return None
        record = decode_record(data)
        place = real_place(*read_values(record.properties, (), (names.REAL_TOPIC, names.REAL_QID)))
        if place is None or place[0] == HALF_TOPIC:
            _log.error("delayed message at log position %d is lost: it names no topic of a client", position)
            return None
        # The text keeps DELAY, REAL_TOPIC and REAL_QID, as in the official broker.
        result = state.store.append(copy_of(record, *place))
        if result.status is PutStatus.PUT_OK:
            state.statistics.count_delayed_delivery(place[0], level - 1, result.size)
        return result
