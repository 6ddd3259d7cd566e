"""The timer (5.x): enqueues messages as they reach the timer topic, and delivers them when their slot is over.

    rmq_sys_wheel_timer queue 0  ->  wheel and timer log (`store/timer/timer_store.py`)  ->  real topic
    (`timer_delivery.py`)

While messages wait, one timer of the loop is set to the end of the next slot; a slot with many messages takes several
loop iterations. The thread that writes tables flushes the changed files every second. Mirrors the threads of
`TimerMessageStore`; owned by the event loop.
"""

import logging
from collections.abc import Generator
from functools import partial
from itertools import groupby
from typing import Final

from pocketmq.core.properties import read_properties, read_values
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.record import Record
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.store import StoreError, layout
from pocketmq.store.lookup.dispatch import Arrival
from pocketmq.store.timer.timer_checkpoint import TimerCheckpoint, write_timer_checkpoint
from pocketmq.store.timer.timer_store import TimedMessage, TimerStore, checkpoint_path, wheel_path

from ..state.broker_state import BrokerState
from ..storing.deliveries import deliver
from ..storing.messages import record_at_offset
from ..storing.numbers import number_property, parse_number
from ..tables.metric_table import MetricTable
from ..time.slices import ITEMS_IN_A_TURN
from ..time.timers import Timer
from .timer_delivery import NEVER_ENQUEUED, RETRY_MS, TimerDelivery

_log = logging.getLogger("pocketmq.delayed")

OPEN_SECONDS: Final = 1.0
"""How often to look, by the wall's time, whether files can be saved or a stopped timer goes on."""
FINISH_MS: Final = 3000
"""Longest time that `stop` takes to deliver the rest of a slot."""
FILES_INTERVAL_MS: Final = 30_000
"""How often old files of the timer log are deleted."""
_OF_WAITING: Final = (names.TIMER_OUT_MS, names.REAL_TOPIC, names.TIMER_DEL_UNIQKEY)
_NO_LIMIT: Final = 2_147_483_647
_LONG_AGO_MS: Final = -(1 << 62)
_NEVER_MS: Final = 1 << 62


class MessageTimer:
    """Enqueueing and delivery. `start` and `stop` mirror each other; a slave does neither.

    The files are opened with the first message.
    """

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._timers: TimerStore | None = None
        self._work: Generator[int] | None = None
        """Delivery of the slot that is over; yields the milliseconds until it continues."""
        self._timer: Timer | None = None
        """The next tick by the broker's clock; `_wake_ms` is its time."""
        self._retry_timer: Timer | None = None
        """The next tick by the wall's time."""
        self._is_running = False
        self._flushed_ms = self._cleaned_ms = _LONG_AGO_MS
        """When the files were last saved and cleaned: waits on the disk, so never virtual."""
        self.enqueued = 0
        """Messages enqueued since the start."""
        self._sampled = (state.clock.now_ms(), 0, 0)
        self.enqueue_tps = self.dequeue_tps = 0.0
        """Over the last second."""
        self.metrics = MetricTable(state.config.store.root / layout.CONFIG, state.clock.now_ms, "timingCount")
        self.delivery = TimerDelivery(state, self.metrics)
        self._wake_ms = 0
        self._followed: TimerCheckpoint | None = None
        """On a slave, the checkpoint of the master that was written last."""
        self._backlog_end: int | None = None
        """Where the timer topic ended at the last tick, if that left a backlog and the next tick follows at once."""

    @property
    def is_served(self) -> bool:
        config = self._state.config
        return config.is_5 and config.store.timer_wheel_enable and not config.is_slave

    def start(self) -> None:
        """Continue where the last run on this store stopped; deliver late messages at once. Raises `StoreError`."""
        if self._is_running or not self.is_served:
            return
        self._is_running = True
        config = self._state.config.store
        if (
            self._state.store.max_offset(TIMER_TOPIC, 0)
            or wheel_path(config).exists()
            or checkpoint_path(config).exists()
        ):
            self.metrics.load()
            self._open()
            self._set_timer(0)

    def follow(self, master: TimerCheckpoint) -> None:
        """On a slave, write the master's checkpoint: if the slave becomes a master, it delivers only the rest.

        A slave enqueues nothing, so its file has no offset of the timer topic as enqueued.
        """
        checkpoint = TimerCheckpoint(
            last_read_time_ms=master.last_read_time_ms,
            master_timer_queue_offset=master.master_timer_queue_offset,
            version_timestamp=master.version_timestamp,
            version_counter=master.version_counter,
        )
        config = self._state.config
        if not config.is_slave or checkpoint == self._followed:
            return
        self._followed = checkpoint
        path = checkpoint_path(config.store)
        self._state.tables.write("the timer's checkpoint", partial(write_timer_checkpoint, path, checkpoint))

    def stop(self, *, saves: bool = True) -> None:
        """Finish the current slot, then stop delivering and save; the remaining messages keep waiting.

        Without `saves`, stop as a killed process does."""
        self._is_running = False
        self._cancel_timers()
        timers, self._timers = self._timers, None
        try:
            if timers is not None and saves:
                self._finish_slot(timers)
                timers.write_slots()
                timers.flush(timers.checkpoint(self._state.clock.now_ms()))
            if saves:
                self.metrics.persist()  # also on a slave
        except (OSError, StoreError) as error:
            _log.error("cannot save the timer: %s", error)
        if timers is not None:
            timers.close()

    def mark(self) -> TimerCheckpoint | None:
        """How far the timer has come, for `rewind`; `None` if it has no files."""
        timers = self._timers
        return None if timers is None else timers.checkpoint(self._state.clock.now_ms())

    def rewind(self, mark: TimerCheckpoint | None) -> None:
        """Forget all waiting messages, and read the timer topic again, which went back to its state at the mark.
        Messages delivered before the mark stay delivered. Raises `StoreError`, OSError."""
        self._cancel_timers()
        timers, self._timers, self._work = self._timers, None, None
        if timers is not None:
            timers.delete()
        if not self._is_running or mark is None or not self._state.store.max_offset(TIMER_TOPIC, 0):
            return
        write_timer_checkpoint(checkpoint_path(self._state.config.store), mark)
        self._open()
        self._set_timer(0)

    def _finish_slot(self, timers: TimerStore) -> None:
        """Deliver the rest of a slot, which would be late at the next start."""
        work, self._work = self._work, None
        if work is None:
            return
        deadline_ms = self._state.clock.monotonic_ms() + FINISH_MS
        for wait_ms in work:
            if wait_ms or self._state.clock.monotonic_ms() > deadline_ms:
                _log.warning("the rest of the slot %d is delivered at the next start", timers.read_ms)
                return
        timers.move_on()

    def arrived(self, arrivals: list[Arrival]) -> None:
        """Messages became visible in the timer topic."""
        timers = self._open_if_needed()
        if timers is None:
            return
        first, behind = arrivals[0][0], arrivals[-1][0] + 1
        # The ordinary case. `_enqueue_backlog` enqueues later what cannot be enqueued now.
        if timers.queue_offset == first and not self._state.config.store.timer_stop_enqueue:
            now_ms = self._state.clock.now_ms()
            earliest_ms, soonest_ms = max(timers.read_ms, timers.floor(now_ms)), _NEVER_MS
            values = [read_values(text, (), _OF_WAITING) for _, _, text, _, _ in arrivals]
            for out_text, of_slot in groupby(zip(values, arrivals, strict=True), lambda row: row[0][0]):
                due_ms = None if out_text is None else parse_number(out_text, 0)
                if due_ms is None or due_ms < earliest_ms:
                    break
                messages = [
                    (position, size, topic, deleted is not None)
                    for (_, topic, deleted), (_, _, _, position, size) in of_slot
                ]
                if not self._enqueue(timers, due_ms, messages, now_ms):
                    break
                timers.queue_offset += len(messages)
                soonest_ms = min(soonest_ms, due_ms)
            if (
                timers.queue_offset == behind
                and self._timer is not None
                and self._wake_ms <= soonest_ms + timers.precision_ms
            ):
                return
        self._set_timer(0 if timers.queue_offset < behind else None)

    def is_waiting(self, queue_offset: int, properties: dict[str, str]) -> bool:
        """Whether this message of the timer topic is not delivered yet."""
        timers, due_ms = self._timers, _out_ms(properties)
        if timers is None or due_ms is None:
            return False
        return queue_offset >= timers.queue_offset or due_ms >= timers.read_ms

    def _open_if_needed(self) -> TimerStore | None:
        """The timer's files; `None` if it does not run, or they cannot be opened."""
        if self._timers is not None or not self._is_running:
            return self._timers if self._is_running else None
        try:
            return self._open()
        except StoreError as error:
            _log.error("timed messages wait for a restart: %s", error)
            self._is_running = False
            return None

    @property
    def has_slot_limit(self) -> bool:
        """Whether a slot may be full."""
        return self._state.config.store.timer_congest_num_each_slot != _NO_LIMIT

    def is_slot_full(self, out_ms: int) -> bool:
        """Whether to refuse a message for that slot: at random above the limit, always above twice the limit."""
        most = self._state.config.store.timer_congest_num_each_slot
        timers = self._timers
        if timers is None or not self.has_slot_limit:
            return False
        if (count := timers.count_at(out_ms)) <= most:
            return False
        return count >= most * 2 or self._state.random.randrange(1000) > 1000 * (count - most) / (most + 0.1)

    # -- figures

    def sample(self) -> None:
        """Compute the rates; call it every second."""
        now_ms, (then_ms, enqueued, delivered) = self._state.clock.now_ms(), self._sampled
        if now_ms > then_ms:
            self.enqueue_tps = (self.enqueued - enqueued) * 1000 / (now_ms - then_ms)
            self.dequeue_tps = (self.delivery.count - delivered) * 1000 / (now_ms - then_ms)
        self._sampled = (now_ms, self.enqueued, self.delivery.count)

    @property
    def waiting(self) -> int:
        return 0 if self._timers is None else self._timers.waiting

    @property
    def behind_ms(self) -> int:
        """Time since the end of the first slot that is not delivered; 0 if none is late."""
        timers = self._timers
        first_ms = None if timers is None else timers.first_ms
        if timers is None or first_ms is None:
            return 0
        return max(self._state.clock.now_ms() - first_ms - timers.precision_ms, 0)

    @property
    def messages_behind(self) -> int:
        """Messages of the timer topic that are not enqueued yet."""
        if self._timers is None:
            return 0
        return self._state.store.max_offset(TIMER_TOPIC, 0) - self._timers.queue_offset

    def checkpoint(self) -> bytes:
        """The 56 bytes of the answer to a slave (60). Raises `StoreError` if the timer does not run."""
        timers = self._open_if_needed()
        if timers is None:
            raise StoreError("the timer does not run: timed messages wait for a restart")
        return timers.checkpoint(self._state.clock.now_ms()).encode()

    # -- the timer

    def _open(self) -> TimerStore:
        self._timers = TimerStore(self._state.store, self._state.clock.now_ms())
        return self._timers

    def _set_timer(self, ms: int | None = None) -> None:
        """Schedule the next tick: at once (0), after a pause (`ms`), or without `ms` at the end of the next slot."""
        timers = self._timers
        if timers is None or not self._is_running:
            return
        if ms:
            self._retry_in(ms / 1000)
            return
        now_ms = self._state.clock.now_ms()
        wake_ms = self._next_due_ms(timers) if ms is None else now_ms
        if (wake_ms is None or self._state.timers.is_virtual) and self._has_unscheduled_work(timers):
            self._retry_in(OPEN_SECONDS)
        if wake_ms is None:
            return
        if self._timer is not None:
            if self._wake_ms <= wake_ms:
                return
            self._timer.cancel()
        self._wake_ms = wake_ms
        self._timer = self._state.timers.call_at(wake_ms, self._tick)

    def _retry_in(self, seconds: float) -> None:
        if self._retry_timer is None:
            self._retry_timer = self._state.timers.call_by_wall(seconds, self._tick)

    def _cancel_timers(self) -> None:
        for timer in (self._timer, self._retry_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._retry_timer = None

    def _next_due_ms(self, timers: TimerStore) -> int | None:
        """The end of the next slot with messages, if they are to be delivered."""
        if self._state.config.store.timer_stop_dequeue:
            return None
        try:
            first_ms = timers.first_ms
        except StoreError as error:
            _log.error("timed messages wait: %s", error)
            return None
        return None if first_ms is None else first_ms + timers.precision_ms

    def _has_unscheduled_work(self, timers: TimerStore) -> bool:
        """Whether there is something to do that no slot's end announces."""
        has_unsaved = timers.has_unsaved or self.metrics.dirty
        return timers.last_ms >= timers.read_ms or self.messages_behind > 0 or has_unsaved

    def _tick(self) -> None:
        self._cancel_timers()
        timers = self._timers
        if timers is None:
            return
        try:
            wait_ms = self._work_some(timers)
        except (StoreError, OSError) as error:
            _log.error("timed messages wait: %s", error)
            self._work, wait_ms = None, RETRY_MS
        except Exception:
            _log.exception("timed messages wait")
            self._work, wait_ms = None, RETRY_MS
        self._set_timer(wait_ms)

    def _work_some(self, timers: TimerStore) -> int | None:
        """Work for some milliseconds; returns the ms until the next tick, `None` for the end of the next slot.

        A slot is begun when nothing more is to be enqueued: a recall in the backlog may name one of its messages. If
        the disk takes no more, delivery goes on without those.
        """
        slot_ms = timers.floor(self._state.clock.now_ms())
        self._save(timers)
        wait_ms = self._enqueue_backlog(timers)
        if self._work is None and wait_ms != 0 and not self._state.config.store.timer_stop_dequeue:
            timers.skip_empty(slot_ms)
            position = timers.chain_end() if timers.read_ms < slot_ms else None
            if position is not None:
                self._work = self.delivery.slot(timers, position)
        if self._work is None:
            return wait_ms
        try:
            return next(self._work)
        except StopIteration:
            self._work = None
            timers.move_on()
            return wait_ms

    # -- enqueueing

    def _enqueue_backlog(self, timers: TimerStore) -> int | None:
        """Enqueue messages that were not enqueued on arrival, because of a restart or a full disk.

        Those that arrived since the last tick count as well: else a backlog to which more is added in each loop
        iteration would never end, and no slot would be delivered.
        """
        state = self._state
        if state.config.store.timer_stop_enqueue:
            return None
        queue = state.store.consume_queue(TIMER_TOPIC, 0)
        if queue is None:
            return None
        timers.queue_offset = max(timers.queue_offset, queue.min_offset)
        end_before, self._backlog_end = self._backlog_end, None
        arrived = 0 if end_before is None else max(queue.max_offset - end_before, 0)
        last = min(queue.max_offset, timers.queue_offset + ITEMS_IN_A_TURN + arrived)
        while timers.queue_offset < last:
            record = record_at_offset(state.store, queue, timers.queue_offset)
            if record is not None and (wait_ms := self._enqueue_late(timers, record)) is not None:
                return wait_ms
            timers.queue_offset += 1
            if record is not None:
                timers.save_progress(timers.delivered)
        if timers.queue_offset >= queue.max_offset:
            return None
        self._backlog_end = queue.max_offset
        return 0

    def _enqueue_late(self, timers: TimerStore, record: Record) -> int | None:
        """Enqueue a message, also for a slot that is over but not delivered: its messages are delivered in the order of
        their time, and those that a recall names are not. Returns the ms until it is to be tried again, if it is."""
        properties = read_properties(record.properties)
        due_ms = _out_ms(properties)
        if due_ms is None or timers.was_delivered(record.queue_offset, due_ms):
            return None
        now_ms = self._state.clock.now_ms()
        timers.skip_idle(now_ms)
        if self._work is not None and timers.floor(due_ms) == timers.read_ms:
            return 0  # the slot is being delivered
        waits_for_nothing = self._state.config.store.timer_stop_dequeue and due_ms < timers.floor(now_ms)
        if due_ms < timers.read_ms or waits_for_nothing:
            store = partial(self.delivery.store_copy, record, properties, NEVER_ENQUEUED, rolls=False)
            is_done = deliver("timed", record.position, store)
        else:
            topic, deletes = properties.get(names.REAL_TOPIC), names.TIMER_DEL_UNIQKEY in properties
            is_done = self._enqueue(timers, due_ms, [(record.position, record.size, topic, deletes)], now_ms)
        return None if is_done else RETRY_MS

    def _enqueue(self, timers: TimerStore, due_ms: int, messages: list[TimedMessage], now_ms: int) -> bool:
        """Enqueue messages that are due at the same time, all or none."""
        timers.skip_idle(now_ms)
        try:
            timers.enqueue(due_ms, messages, now_ms)
        except StoreError as error:
            _log.error("timed messages wait: %s", error)
            return False
        self.enqueued += len(messages)
        counts: dict[tuple[str | None, bool], int] = {}
        for _, _, topic, deletes in messages:
            counts[topic, deletes] = counts.get((topic, deletes), 0) + 1
        for (topic, deletes), count in counts.items():
            if topic is not None:
                self.metrics.add(topic, -count if deletes else count, changes=count)
        return True

    # -- saving

    def _save(self, timers: TimerStore) -> None:
        """Save the files every timerFlushIntervalMs, in the thread that writes tables."""
        state = self._state
        now_ms = state.clock.monotonic_ms()
        if now_ms - self._cleaned_ms >= FILES_INTERVAL_MS:
            self._cleaned_ms = now_ms
            timers.delete_old_files()
        if now_ms - self._flushed_ms < state.config.store.timer_flush_interval_ms:
            return
        self._flushed_ms = now_ms
        try:
            timers.write_slots()
        except StoreError as error:
            _log.error("the timer is saved later: %s", error)
            return
        checkpoint = timers.checkpoint(state.clock.now_ms())
        timers.has_unsaved = False
        state.tables.write("the timer's files", lambda: timers.flush(checkpoint))
        state.tables.save(self.metrics)


def _out_ms(properties: dict[str, str]) -> int | None:
    return number_property(properties, names.TIMER_OUT_MS, 0)
