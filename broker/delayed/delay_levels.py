"""Messages with a delay level: into the schedule topic when stored, out of it when they are due.

    send, property DELAY=3  ->  SCHEDULE_TOPIC_XXXX queue 2     REAL_TOPIC, REAL_QID remember where it belongs,
                                                                the unit's tags code is the time it is due
    time is up              ->  real topic and queue            same bytes but queue, offsets and store time

Each level (1 to 18 by default) is one queue, and all its messages wait equally long, so the first is always the next.
delayOffset.json keeps how far each level has been delivered; after a crash what was delivered since its last save
is delivered again. One timer is set to the earliest due time; nothing runs while nothing waits. The official broker
looks every 100 ms instead, and so delivers up to 100 ms late.

Mirrors `ScheduleMessageService` and `HookUtils.transformDelayLevelMessage`; owned by the event loop. Not here:
messages timed to the second (TIMER_ properties).
"""

import logging
from typing import Final

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_NONE, transaction_type
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import RecordError, decode_record
from pocketmq.protocol.message.topics import HALF_TOPIC, SCHEDULE_TOPIC
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import NewMessage, PutStatus

from ..errors import Refusal
from ..state.broker_state import BrokerState
from ..state.call_later import Timer
from ..storing.message_copies import copy_of
from ..storing.numbers import INT_MAX, INT_MIN, parse_number
from ..storing.stored_properties import stored_properties

_log = logging.getLogger("pocketmq.delayed")

RETRY_MS: Final = 100
"""After an append that failed."""
FAILURE_PAUSE_MS: Final = 10_000
"""A level that failed in an unforeseen way rests so long."""
LONGEST_SLEEP_MS: Final = 1000
"""The timer runs on a clock that is never corrected, due times do not: look again at least this often."""
MAX_DELIVERIES: Final = 200
"""Messages of one level moved in one loop iteration, some milliseconds of work."""

_NEVER: Final = (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED)
"""What time does not mend, a topic name no file system takes for example."""
_TIMER_PROPERTIES: Final = (names.TIMER_DELIVER_MS, names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS)


def delay_level(properties: dict[str, str]) -> int:
    """The level a message asks for, 0 for none. Raises `Refusal` where it is no number."""
    text = properties.get(names.DELAY)
    if text is None:
        return 0
    level = parse_number(text, INT_MIN, INT_MAX)
    if level is None:
        raise Refusal(ResponseCode.SYSTEM_ERROR, f'the property DELAY is not a number: "{text}"')
    return level


def delay_if_asked(state: BrokerState, message: NewMessage) -> NewMessage:
    """Send a message with a delay level to where it waits; any other is returned unchanged.

    The message is changed in place: topic, queue and properties. Only plain and committed messages can wait. A level
    wins over the TIMER_ properties of 5.x, which are dropped.
    """
    properties = message.property_map
    level = delay_level(properties)
    if level <= 0 or transaction_type(message.sys_flag) not in (TRANSACTION_NONE, TRANSACTION_COMMIT):
        return message
    if level > state.delays.max_level:
        level = state.delays.max_level
        properties[names.DELAY] = str(level)
    if state.config.is_5:
        for name in _TIMER_PROPERTIES:
            properties.pop(name, None)
    properties[names.REAL_TOPIC] = message.topic
    properties[names.REAL_QID] = str(message.queue_id)
    message.topic, message.queue_id = SCHEDULE_TOPIC, level - 1
    message.properties = stored_properties(properties, is_5=state.config.is_5)
    return message


class DelayLevels:
    """Delivery of all levels. `start` and `stop` mirror each other; a slave delivers nothing."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._due_ms: dict[int, int] = {}
        """When to look at a level again; a level not in here has nothing waiting."""
        self._timer: Timer | None = None
        self._wake_ms = 0
        self._is_running = False

    def start(self) -> None:
        """Bring stored offsets back into their queues and begin to deliver: what is late in the loop's next turn, where
        the official broker waits a second first."""
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
        """Deliver nothing more; what waits goes on waiting."""
        self._is_running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due_ms.clear()

    def arrived(self, queue_id: int, due_ms: int) -> None:
        """A message became visible in a queue of the schedule topic; `due_ms` is its tags code."""
        level = queue_id + 1
        if self._is_running and level not in self._due_ms and level in self._state.delays.levels:
            self._due_ms[level] = due_ms
            self._note_offset(level, self._state.delays.offset(level))
            if self._timer is None or due_ms < self._wake_ms:
                self._set_timer()

    def deliver_due(self, now_ms: int) -> None:
        """Deliver of every level what is due, at most `MAX_DELIVERIES` messages each."""
        for level in [level for level in self._due_ms if self._is_due(level, now_ms)]:
            try:
                next_ms = self._deliver_level(level, now_ms)
            except Exception:
                _log.exception("delivery of delay level %d failed", level)
                next_ms = now_ms + FAILURE_PAUSE_MS
            if next_ms is None:
                del self._due_ms[level]
            else:
                self._due_ms[level] = next_ms

    def _is_due(self, level: int, now_ms: int) -> bool:
        # No level waits longer than its delay, or rests longer than a pause: the clock was set back since.
        due_ms = self._due_ms[level]
        longest_ms = max(self._state.delays.levels[level], FAILURE_PAUSE_MS)
        return due_ms <= now_ms or due_ms > now_ms + longest_ms

    def _tick(self) -> None:
        self._timer = None
        if self._is_running:
            self.deliver_due(self._state.clock.now_ms())
            self._set_timer()

    def _set_timer(self) -> None:
        """Wake at the earliest due time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._due_ms:
            return
        now_ms = self._state.clock.now_ms()
        self._wake_ms = min(self._due_ms.values())
        sleep_ms = min(max(self._wake_ms - now_ms, 0), LONGEST_SLEEP_MS)
        self._timer = self._state.call_later(sleep_ms / 1000, self._tick)

    def _deliver_level(self, level: int, now_ms: int) -> int | None:
        """Deliver what is due of one level; when to look again, `None` when nothing waits."""
        state, delays = self._state, self._state.delays
        queue = state.store.consume_queue(SCHEDULE_TOPIC, level - 1)
        if queue is None:
            return None
        offset = min(max(delays.offset(level), queue.min_offset), queue.max_offset)
        last = min(queue.max_offset, offset + MAX_DELIVERIES)
        while offset < last:
            unit = queue.unit(offset)
            if unit is None:
                raise LookupError(f"unit {offset} of {SCHEDULE_TOPIC} queue {level - 1} cannot be read")
            position, size, due_ms = unit
            # A due time further ahead than the level's delay was made by a clock that has been set back since.
            if now_ms < due_ms <= delays.deliver_timestamp(level, now_ms):
                self._note_offset(level, offset)
                return due_ms
            if not self._deliver(level, position, size):
                self._note_offset(level, offset)
                return now_ms + RETRY_MS
            offset += 1
            delays.update(level, offset)
        return now_ms if offset < queue.max_offset else None

    def _note_offset(self, level: int, offset: int) -> None:
        """Note the offset of a level: 5.x as soon as a message waits there, 4.9 with its first delivery."""
        if self._state.config.is_5:
            self._state.delays.update(level, offset)

    def _deliver(self, level: int, position: int, size: int) -> bool:
        """Store one waiting message where it belongs. False where the store does not take it now.

        A message whose record is gone, that does not say where it belongs, or that can never be stored there is passed
        over.
        """
        state = self._state
        record = state.store.read_record(position, size)
        if record is None:
            return True
        try:
            message = _real_message(record, is_5=state.config.is_5)
        except (RecordError, KeyError, ValueError) as error:
            _log.error("delayed message at log position %d is lost: %r", position, error)
            return True
        if message.topic == HALF_TOPIC:
            _log.error(
                "delayed message at log position %d has the half topic as its real topic: dropped", position
            )
            return True
        result = state.store.append(message)
        if result.status in _NEVER:
            # The official broker tries on for ever, and so lets one message hold up its whole level.
            _log.error("delayed message at log position %d is lost: %s", position, result.status.name)
            return True
        if result.status is not PutStatus.PUT_OK:
            _log.warning("delayed message for %s not stored: %s", message.topic, result.status.name)
            return False
        state.statistics.delayed_delivered(message.topic, level - 1, result.size)
        return True


def _real_message(data: memoryview, *, is_5: bool) -> NewMessage:
    """A waiting record as the message it becomes.

    The stored text keeps DELAY, REAL_TOPIC and REAL_QID, as in the official broker; only what the store looks at lacks
    DELAY.
    """
    record = decode_record(data)
    properties = decode_properties(record.properties)
    text = stored_properties(properties, is_5=is_5)
    topic, queue_id = properties[names.REAL_TOPIC], int(properties[names.REAL_QID])
    properties.pop(names.DELAY, None)
    return copy_of(record, topic, queue_id, properties, text)
