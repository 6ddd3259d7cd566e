"""Timed messages that wait, on disk: wheel, timer log and checkpoint together.

    message in rmq_sys_wheel_timer  -- enqueue() -->  unit in the timer log, end of its moment's chain in the wheel
    its moment is over              -- collect() -->  positions of the units enqueued for it, newest first

Nothing is kept in memory for a message that waits. The first unit of a moment is written to the wheel at once, because
the file may need room on disk for it; later ones change the slot in memory, and `write_slots` writes it before each
save. What the wheel lacks after a kill is behind the checkpoint's mark, and opening adds it.

A moment is over one precision step after its time, because requested times are rounded down. A message due beyond
timerRollWindowSlot is enqueued for an earlier moment with the roll bit; at that moment it is stored again.

Opening continues after any stop, of this broker or an official one (`_recover_log`). If the timer log was lost,
the messages of the timer topic are enqueued again. Mirrors the disk side of `TimerMessageStore`; owned by the event
loop, except that `flush` may run in another thread.
"""

import functools
import logging
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from pocketmq.protocol.message.java_strings import java_hash
from pocketmq.protocol.message.properties import TIMER_OUT_MS, decode_properties
from pocketmq.protocol.message.record import Record, RecordError, decode_record
from pocketmq.protocol.message.topics import TIMER_TOPIC

from .. import layout
from ..config import StoreConfig
from ..errors import StoreError, system_error
from ..message_store import MessageStore
from .timer_checkpoint import (
    TimerCheckpoint,
    TimerProgress,
    read_timer_checkpoint,
    read_timer_progress,
    write_timer_checkpoint,
)
from .timer_log import MAGIC_DEFAULT, MAGIC_DELETE, MAGIC_ROLL, NO_POSITION, TimerLog, TimerUnit
from .timer_wheel import Slot, TimerWheel, UsedMoments

logger = logging.getLogger(__name__)

WINDOW_SLOTS: Final = 604_800
"""A week of seconds: moments further back are not delivered."""
BLANK_SLOTS: Final = 60
MAX_CACHED_SLOTS: Final = 4096
"""How many slots are cached: the next message for the same moment need not read the wheel."""


TimedMessage = tuple[int, int, str | None, bool]
"""(position and size in the commit log, real topic, whether it deletes another timed message)"""

_topic_hash = functools.lru_cache(maxsize=1024)(java_hash)


def wheel_path(config: StoreConfig) -> Path:
    return config.root / layout.TIMER_WHEEL


def checkpoint_path(config: StoreConfig) -> Path:
    return config.root / layout.CONFIG / layout.TIMER_CHECKPOINT


def progress_path(config: StoreConfig) -> Path:
    return config.root / layout.CONFIG / layout.TIMER_PROGRESS


class TimerStore:
    """Open from construction to `close`. `read_ms` is the first moment that is not delivered yet. Moments are in ms."""

    def __init__(self, store: MessageStore, now_ms: int) -> None:
        """Load and recover. Raises StoreError with one line that names the file."""
        config = self._config = store.config
        self._store = store
        self.precision_ms = config.timer_precision_ms
        slots = config.timer_roll_window_slot
        is_sound = 2 <= slots <= WINDOW_SLOTS - BLANK_SLOTS
        self._roll_ms = (slots if is_sound else WINDOW_SLOTS - BLANK_SLOTS) * self.precision_ms
        self.log = TimerLog(config.root / layout.TIMER_LOG, config.mapped_file_size_timer_log)
        self.log.files.load()
        self.wheel = TimerWheel(wheel_path(config), self.precision_ms)
        self._checkpoint = read_timer_checkpoint(checkpoint_path(config)) or TimerCheckpoint()
        earliest_ms = self.floor(now_ms) - (WINDOW_SLOTS - BLANK_SLOTS) * self.precision_ms
        report = store.recovery_report
        keeps_pages = report is not None and report.intact
        progress = read_timer_progress(progress_path(config)) if keeps_pages else (0, 0, 0)
        self.read_ms = max(
            self.floor(self._checkpoint.last_read_time_ms), self.floor(progress[0]), earliest_ms
        )
        self.last_ms = 0
        """The last moment with an enqueued message; if it is before `read_ms`, no message waits."""
        self.waiting = 0
        """Messages enqueued and not delivered, by the counts of the slots."""
        self._slots: dict[int, Slot] = {}
        """Moment -> its slot, of the moments used last: many messages are due at the same moment."""
        self._used = UsedMoments()
        self._first_ms = 0
        """What `first_ms` has found, if it is not before `read_ms`."""
        self._unwritten: dict[int, None] = {}
        """The moments whose slot has changed since it was written, all of them in `_slots`."""
        self._recover_log()
        if self.read_ms > self.floor(now_ms):
            self._go_back(now_ms)
        self._count_waiting(now_ms)
        self.delivered = progress[1] if progress[0] == self.read_ms else 0
        """Messages of the moment `read_ms` that have been delivered, in the order in which they were enqueued."""
        self._log_end = 0
        """The commit log up to here is what the checkpoint relies on."""
        self.has_unsaved = False
        """Set when messages are enqueued or delivered; the owner clears it after `checkpoint`."""
        self.queue_offset = self._next_queue_offset(progress[2])
        """Next message of the timer topic to be enqueued."""
        # At a former slave, the second field is how far its master had come.
        self._enqueued_before = max(
            self._checkpoint.last_timer_queue_offset, self._checkpoint.master_timer_queue_offset, progress[2]
        )
        self._delivered_before_ms = self.floor(max(self._checkpoint.last_read_time_ms, progress[0]))
        try:
            self._progress = TimerProgress(progress_path(config))
        except OSError as error:
            raise system_error("open", progress_path(config), error) from error

    def floor(self, time_ms: int) -> int:
        """The moment a time belongs to."""
        return time_ms - time_ms % self.precision_ms

    def was_delivered(self, queue_offset: int, due_ms: int) -> bool:
        """Whether a message of the timer topic, read again because the timer log was lost, was already delivered."""
        return queue_offset < self._enqueued_before and due_ms < self._delivered_before_ms

    # -- enqueueing and reading

    def enqueue(self, due_ms: int, messages: Sequence[TimedMessage], now_ms: int) -> None:
        """Put messages of the timer topic on the wheel; `due_ms` is the moment of all, not before `read_ms`.

        Raises StoreError if the disk refuses one, and then nothing was enqueued.
        """
        enqueued_at = self.floor(now_ms)
        due_ms, magic = self._first_stage(due_ms, enqueued_at)
        slot, end, delay = self._slot(due_ms), self.log.end, due_ms - enqueued_at
        units = [
            (magic | MAGIC_DELETE if deletes else magic, position, size, _topic_hash(topic) if topic else 0)
            for position, size, topic, deletes in messages
        ]
        deleting = sum([deletes for *_, deletes in messages])
        try:
            first, last = self.log.append(
                NO_POSITION if slot is None else slot.last, enqueued_at, delay, units
            )
            self._link(first, last, due_ms, slot, len(units) - 2 * deleting)
        except StoreError:
            if self.log.end != end:
                self.log.remove_from(end)
            raise
        self.has_unsaved = True

    def _first_stage(self, due_ms: int, enqueued_at: int) -> tuple[int, int]:
        """(moment, magic): a message due beyond the window is enqueued half a window ahead, or a whole one."""
        ahead_ms = due_ms - enqueued_at
        if ahead_ms < self._roll_ms:
            return self.floor(due_ms), MAGIC_DEFAULT
        slots = self._roll_ms // self.precision_ms
        is_little_more = ahead_ms - self._roll_ms < slots // 3 * self.precision_ms
        stage_ms = slots // 2 * self.precision_ms if is_little_more else self._roll_ms
        return self.floor(enqueued_at + stage_ms), MAGIC_DEFAULT | MAGIC_ROLL

    def _slot(self, due_ms: int) -> Slot | None:
        """The slot of a moment; None if nothing is enqueued for it. Raises StoreError."""
        return self._slots.get(due_ms) or self.wheel.slot(due_ms)

    def _link(self, first: int, last: int, due_ms: int, slot: Slot | None, change: int) -> None:
        """Make units the newest of their moment, whose slot is `slot`: from `first` to `last`, the newest of them.

        Raises StoreError, and then nothing is changed.
        """
        if due_ms not in self._slots and len(self._slots) >= MAX_CACHED_SLOTS:
            self.write_slots()
            self._slots.clear()
        if slot is None:
            slot = Slot(due_ms, first, last, change)
            self.wheel.put_all((slot,))
            self._used.add(due_ms // self.precision_ms)
        else:
            slot = Slot(due_ms, slot.first, last, slot.count + change)
            self._unwritten[due_ms] = None
        self._slots[due_ms] = slot
        self.waiting += change
        if due_ms > self.last_ms:
            self.last_ms = due_ms
        if due_ms < self._first_ms:
            self._first_ms = due_ms

    def write_slots(self) -> None:
        """Write the slots that have changed to the wheel. Raises StoreError, and the next call writes them again."""
        if self._unwritten:
            self.wheel.put_all([self._slots[due_ms] for due_ms in self._unwritten])
            self._unwritten.clear()

    def count_at(self, time_ms: int) -> int:
        """How many messages are enqueued for a moment."""
        slot = self._slot(self.floor(time_ms))
        return 0 if slot is None else slot.count

    @property
    def first_ms(self) -> int | None:
        """The first moment with messages that are not delivered; `None` if no message waits. Raises StoreError."""
        if self.last_ms < self.read_ms:
            return None
        if self._first_ms < self.read_ms:
            precision_ms = self.precision_ms
            number = self._used.first(
                self.read_ms // precision_ms, self.last_ms // precision_ms, self._is_used
            )
            if number is None:
                return None
            self._first_ms = number * precision_ms
        return self._first_ms

    def _is_used(self, number: int) -> bool:
        slot = self._slot(number * self.precision_ms)
        return slot is not None and slot.last >= 0

    def skip_empty(self, end_ms: int) -> None:
        """Move on to the first moment with messages, but not beyond `end_ms`. Raises StoreError."""
        first_ms = self.first_ms
        self.read_ms = max(self.read_ms, end_ms if first_ms is None else min(first_ms, end_ms))

    def chain_end(self) -> int | None:
        """Position of the newest unit of the moment `read_ms`; None if nothing is enqueued for it."""
        slot = self._slot(self.read_ms)
        return None if slot is None or slot.last < 0 else slot.last

    def collect(self, position: int, into: "array[int]", count: int) -> int:
        """Walk a chain back from `position`, `count` units; returns where to continue, -1 at its beginning."""
        while position != NO_POSITION and count:
            into.append(position)
            position = self.log.previous(position)
            count -= 1
        return position

    def skip_idle(self, now_ms: int) -> None:
        """If no message waits, jump to now instead of moving on moment by moment."""
        if self.last_ms < self.read_ms:
            self.read_ms = max(self.read_ms, self.floor(now_ms))

    def move_on(self) -> None:
        """The moment `read_ms` has been delivered."""
        slot = self._slot(self.read_ms)
        if slot is not None:
            self.waiting -= slot.count
        self.read_ms += self.precision_ms
        self.save_progress(0)

    def save_progress(self, delivered: int) -> None:
        """So many messages of the moment `read_ms` have been delivered, and all before `queue_offset` are enqueued or
        were delivered: a start after a kill does not deliver them again."""
        self.delivered, self.has_unsaved = delivered, True
        self._progress.write(self.read_ms, delivered, self.queue_offset)

    # -- saving

    def checkpoint(self, now_ms: int) -> TimerCheckpoint:
        """The checkpoint to write once all enqueued and delivered messages are on disk; a new version if a
        field has changed."""
        former = self._checkpoint
        if self.has_unsaved:
            self._log_end = self._store.log_end
        fields = msgspec.structs.replace(
            former,
            last_read_time_ms=self.read_ms,
            last_timer_log_flush_position=self.log.end,
            last_timer_queue_offset=self.queue_offset,
            master_timer_queue_offset=self.queue_offset,
        )
        if fields != former:
            self._checkpoint = fields.next_version(now_ms)
        return self._checkpoint

    def flush(self, checkpoint: TimerCheckpoint) -> None:
        """Force commit log, timer log and wheel to disk, then the checkpoint that relies on them, which was made after
        `write_slots`. Any thread but the flusher's.

        Without the commit log a power loss could leave units of messages that it took, or take delivered messages that
        the checkpoint says were delivered. Raises OSError, StoreError, DiskFailedError.
        """
        self._store.force_log(self._log_end)
        self.log.files.flush(0)
        self.wheel.sync()
        write_timer_checkpoint(checkpoint_path(self._config), checkpoint)

    def delete_old_files(self) -> None:
        """Delete timer log files whose messages have left the commit log."""
        self.log.delete_before(self._store.log_start)

    def close(self) -> None:
        self.wheel.close()
        self._progress.close()

    def delete(self) -> None:
        """Close, and delete all files of the timer."""
        self.close()
        self.log.files.delete_all()
        for path in (self.wheel.path, checkpoint_path(self._config), progress_path(self._config)):
            path.unlink(missing_ok=True)

    # -- opening

    def _recover_log(self) -> None:
        """Bring timer log and wheel to one state, after any stop, of this broker or an official one. Raises StoreError.

        Units of messages that a power loss took from the commit log are cut from the end of the timer log, so that no
        message that gets their place is delivered for them. Units behind the checkpoint's mark are put into the wheel,
        or all of them if the wheel cannot be used. If the wheel then names a unit that the log has lost, it is made
        again.
        """
        log, wheel, forced_to = self.log, self.wheel, self._checkpoint.last_timer_log_flush_position
        if wheel.is_new or not 0 <= forced_to <= log.end or self._has_snapshots():
            forced_to = 0
            self._clear_wheel()
        for _ in log.recover(forced_to):
            pass  # only the end is wanted
        lost = log.cut_lost_units(self._has_message)
        if lost:
            logger.warning("the commit log has lost %d timed messages: they are cut from the timer log", lost)
        self._link_all(forced_to)
        if log.end < forced_to or any(slot.last >= log.end for slot in wheel.slots()) or wheel.is_damaged:
            logger.warning("timer wheel %s does not fit its log: made again", wheel.path)
            self._clear_wheel()
            self._link_all(0)
        log.files.flushed = min(forced_to, log.end)

    def _link_all(self, begin: int) -> None:
        for position, unit in self.log.recover(begin):
            slot = self._slot(unit.due_ms)
            if slot is None or slot.last < position:
                self._link(position, position, unit.due_ms, slot, -1 if unit.magic & MAGIC_DELETE else 1)
        self.write_slots()

    def _clear_wheel(self) -> None:
        self.wheel.clear()
        self._used.clear()
        self._slots.clear()
        self._unwritten.clear()

    def _has_snapshots(self) -> bool:
        """A 5.5.0 broker with timerWheelSnapshotFlush keeps the wheel in timerwheel.N and the file itself as it was."""
        return any(path.suffix[1:].isdecimal() for path in self._config.root.glob(f"{layout.TIMER_WHEEL}.*"))

    def _go_back(self, now_ms: int) -> None:
        """The clock was set back since the last run: free the slots that were delivered, so that messages can be
        enqueued for their moments again."""
        delivered = [slot for slot in self.wheel.slots() if slot.time_ms < self.read_ms]
        self.wheel.put_all(Slot(slot.time_ms, NO_POSITION, NO_POSITION, 0) for slot in delivered)
        self.read_ms = self.floor(now_ms)

    def _count_waiting(self, now_ms: int) -> None:
        self.waiting = self.last_ms = 0
        first_ms = self.floor(now_ms)
        for slot in self.wheel.slots():
            if slot.time_ms >= self.read_ms and slot.last >= 0:
                self.waiting += slot.count
                self.last_ms = max(self.last_ms, slot.time_ms)
                first_ms = min(first_ms, slot.time_ms)
                self._used.add(slot.time_ms // self.precision_ms)
        self.read_ms = max(self.read_ms, first_ms)

    def _next_queue_offset(self, delivered_to: int) -> int:
        """`delivered_to` is the offset of a start after a kill."""
        queue = self._store.consume_queue(TIMER_TOPIC, 0)
        if queue is None:
            return 0
        offset = max(self._checkpoint.last_timer_queue_offset, delivered_to)
        if self.log.end < self._checkpoint.last_timer_log_flush_position:
            offset = 0  # damage has cut the timer log: what it lacks is enqueued again
        unit = self.log.last_unit()
        if unit is None:
            # The timer log was lost: all messages are enqueued again, except those that `was_delivered` names.
            offset = 0
        else:
            record = self._record_of(unit)
            offset = max(offset, -1 if record is None else record.queue_offset + 1)
        return min(max(offset, queue.min_offset), queue.max_offset)

    def _has_message(self, unit: TimerUnit) -> bool:
        """Whether the commit log has the message of a unit, or has deleted it with its oldest files."""
        if unit.position < self._store.log_start:
            return True
        record = self._record_of(unit)
        if record is None:
            return False
        out_ms = decode_properties(record.properties).get(TIMER_OUT_MS, "")
        return unit.is_for(int(out_ms) if out_ms.isdecimal() else None)

    def _record_of(self, unit: TimerUnit) -> Record | None:
        data = self._store.read_record(unit.position, unit.size)
        try:
            record = None if data is None else decode_record(data)
        except RecordError:
            return None
        return record if record is not None and record.topic == TIMER_TOPIC else None
