"""Copies popped messages that were not acknowledged to the retry topic of their group.

    revive queue:  ck A    ack A/1   ck B   ack B/2   ...         read once, after the last finished checkpoint
    in memory:     A: 1 of 2 acked   B: 1 of 3 acked              until two seconds after their time is over
    then:          the rest of A, of B, ... is copied to %RETRY%group_topic, and the offset of A, of B, ... is committed

Each revive queue is processed in its order; the offset of CID_RMQ_SYS_REVIVE_GROUP is that of the last finished
checkpoint. After a restart, even with an official broker, reading continues after it: what was in memory is read again.
If a message cannot be stored, its checkpoint is stored again with a later time; if that cannot be stored either, the
queue waits. Records are checked like those of a peer: what no broker writes is skipped and logged. Mirrors
`PopReviveService`; owned by the event loop, due every `reviveInterval`, a limited number of messages in each iteration.
"""

import logging
from typing import Final

import msgspec
from pocketmq.core.properties import read_properties
from pocketmq.protocol.bodies.revive import REVIVE_GROUP, CheckPoint, MergeKey
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.pop_receipt import normal_topic
from pocketmq.protocol.message.record import Record, RecordError, decode_record
from pocketmq.protocol.message.topics import is_retry_topic, pop_retry_topic, revive_topic
from pocketmq.store import NewMessage
from pocketmq.store.put_values import AppendResult, PutStatus

from ..delayed.timer import MessageTimer
from ..errors import Refusal
from ..state.broker_state import BrokerState
from ..storing.deliveries import deliver
from ..storing.messages import changes_of, copy_of, record_of_entry
from ..storing.numbers import parse_number
from ..time.slices import Budget
from .revive_log import ReviveLog, read_revive_record

_log = logging.getLogger("pocketmq.pop")

GRACE_MS: Final = 2000
"""Acks are due at their checkpoint's end, and may be this late."""
QUIET_MS: Final = 3000
"""After this long without a record, the clock decides which checkpoints are over, not the newest record."""
COST_OF_A_COPY: Final = 3
"""A revived message takes as long as three delayed ones: it is looked up, and gets new properties."""
MAX_POINTS: Final = 100_000
"""Checkpoints of one queue in memory; further ones are read later."""
PUT_BACK_SECONDS: Final = (10, 20, 30, *range(60, 601, 60), 1200, 1800, 3600, 7200)
"""How much later a checkpoint is due, each time it is stored again."""


class _Point(msgspec.Struct, eq=False):
    """A checkpoint whose time is not over yet."""

    check_point: CheckPoint
    offset: int
    pending: set[int]
    """The offsets that are not acknowledged."""


class _ReviveQueue(msgspec.Struct, eq=False):
    """The read offset of one revive queue, and its checkpoints that are not finished."""

    done_offset: int
    """Offset of the last finished checkpoint."""
    next_offset: int
    points: dict[MergeKey, _Point] = {}
    """In the order of the offsets."""
    latest_due_ms: int = 0


class Revive:
    def __init__(self, state: BrokerState, timer: MessageTimer, log: ReviveLog) -> None:
        self._state = state
        self._timer = timer
        self._log = log
        self._topic = revive_topic(state.config.broker_cluster_name)
        self._queues: dict[int, _ReviveQueue] = {}
        self._next_queue = 0
        """With which queue the next iteration begins."""
        self._late_ms = 0
        """Age of the newest record that the last iteration read, if it may have left some."""
        self._is_scheduled = False
        self._visible_ms = 0
        """All that was stored before this time is visible."""
        self._mark = 0, 0
        """An end of the log, and when it was there."""

    @property
    def is_served(self) -> bool:
        """Only a master of the 5.x line revives."""
        config = self._state.config
        return config.is_5 and not config.is_slave and config.store.timer_wheel_enable

    def forget(self) -> None:
        """Read every queue again from the offset of the last finished checkpoint: the queues have changed."""
        self._queues.clear()

    def tick(self) -> None:
        """Do what is due, in this loop iteration and the next ones."""
        if not self._is_scheduled:
            self._go_on()

    def _go_on(self) -> None:
        self._is_scheduled = False
        if self._state.is_open and self.run(self._state.clock.now_ms()):
            self._is_scheduled = True
            self._state.timers.call_soon(self._go_on)

    def next_due(self) -> int | None:
        """When the next checkpoint can be finished, or now if there are records to read; `None` without either."""
        if not self.is_served:
            return None
        now_ms, times = self._state.clock.now_ms(), []
        for queue_id in range(self._state.config.revive_queue_num):
            end = self._state.store.max_offset(self._topic, queue_id)
            if end == 0:
                continue
            queue = self._queue(queue_id, end)
            if queue.next_offset < end:
                return now_ms
            if queue.points:
                due_ms = next(iter(queue.points.values())).check_point.due_ms + GRACE_MS + 1
                if queue.latest_due_ms < due_ms:  # the clock decides, once the queue is quiet
                    due_ms = max(due_ms, queue.latest_due_ms + QUIET_MS + 1)
                times.append(due_ms)
        return min(times, default=None)

    def run(self, now_ms: int) -> bool:
        """Work for one loop iteration; True if there is more to do at once."""
        if not self.is_served:
            return False
        self._look_how_much_is_visible(now_ms)
        # Each has its own: in a broker that pops at its limit as many records arrive as one budget reads.
        count, reads, budget = self._state.config.revive_queue_num, Budget(self._late_ms), Budget()
        self._late_ms = 0
        for queue_id in [(self._next_queue + number) % count for number in range(count)]:
            end = self._state.store.max_offset(self._topic, queue_id)
            if end == 0:
                continue
            queue = self._queue(queue_id, end)
            self._read(queue, queue_id, end, reads)
            self._finish(queue, queue_id, now_ms, budget, is_read=not reads.is_spent)
            if reads.is_spent or budget.is_spent:
                self._next_queue = (queue_id + 1) % count
                if reads.is_spent:
                    self._late_ms = now_ms - queue.latest_due_ms
                return True
        return False

    def _queue(self, queue_id: int, end: int) -> _ReviveQueue:
        committed = self._state.offsets.query(self._topic, REVIVE_GROUP, queue_id)
        if committed >= end:  # any client may commit an offset for the group
            committed = end - 1
            self._state.offsets.commit(self._topic, REVIVE_GROUP, queue_id, committed)
        queue = self._queues.get(queue_id)
        if queue is None or committed > queue.done_offset:  # an administrator has moved the offset
            queue = self._queues[queue_id] = _ReviveQueue(committed, committed + 1)
        return queue

    # -- reading

    def _read(self, queue: _ReviveQueue, queue_id: int, end: int, budget: Budget) -> None:
        store = self._state.store
        entries = store.consume_queue(self._topic, queue_id)
        if entries is None:
            return
        queue.next_offset = max(queue.next_offset, entries.min_offset)
        while queue.next_offset < end and len(queue.points) < MAX_POINTS and not budget.is_spent:
            unit = entries.unit(queue.next_offset)
            record = None if unit is None else store.read_record(unit[0], unit[1])
            if record is not None:
                try:
                    self._add(queue, decode_record(record), queue.next_offset)
                except (RecordError, BodyError) as error:
                    text = str(error)[:200]
                    _log.warning("%s queue %d offset %d: %s", self._topic, queue_id, queue.next_offset, text)
            queue.next_offset += 1
            budget.spend()

    def _add(self, queue: _ReviveQueue, record: Record, offset: int) -> None:
        found, due_ms = read_revive_record(record)
        if due_ms is not None:
            queue.latest_due_ms = max(queue.latest_due_ms, due_ms)
        if isinstance(found, CheckPoint):
            if found.topic is not None and found.group is not None:
                key = found.merge_key()
                queue.points.pop(key, None)
                queue.points[key] = _Point(found, offset, set(found.offsets()))
        elif found is not None:
            point = queue.points.get(found.merge_key(self._state.config.broker_name))
            if point is not None:
                point.pending.difference_update(found.offsets())

    # -- finishing

    def _finish(
        self, queue: _ReviveQueue, queue_id: int, now_ms: int, budget: Budget, *, is_read: bool
    ) -> None:
        """Finish the first checkpoints of the queue, as far as their time is over: by the newest record that was read,
        or by the clock if the whole queue was."""
        state, points = self._state, queue.points
        end_ms = queue.latest_due_ms
        is_timer_late = self._timer.behind_ms > 0 or self._timer.messages_behind > 0
        if is_read and now_ms - end_ms > QUIET_MS and not is_timer_late:
            end_ms = max(end_ms, self._visible_ms)  # acks may wait for a slow disk
        while points and not budget.is_spent:
            key, point = next(iter(points.items()))
            if end_ms - point.check_point.due_ms <= GRACE_MS:
                break
            budget.spend()
            try:
                is_finished = self._revive(point, queue_id, now_ms, budget)
            except Exception:
                _log.exception("skipped %s queue %d offset %d", self._topic, queue_id, point.offset)
                is_finished = True
            if not is_finished:
                break
            del points[key]
            queue.done_offset = max(queue.done_offset, point.offset)
            state.offsets.commit(self._topic, REVIVE_GROUP, queue_id, queue.done_offset)

    def _look_how_much_is_visible(self, now_ms: int) -> None:
        """Under SYNC_FLUSH a record is visible once the disk has it; on a busy broker the newest ones always wait."""
        end, behind = self._state.store.log_end, self._state.store.dispatch_behind_bytes
        position, at_ms = self._mark
        if not behind:
            self._visible_ms = now_ms
        elif end - behind >= position:
            self._visible_ms, self._mark = at_ms, (end, now_ms)

    def _revive(self, point: _Point, queue_id: int, now_ms: int, budget: Budget) -> bool:
        """Copy the messages of a checkpoint that are not acknowledged; False if the store refuses one now, and the
        checkpoint for it too."""
        state, check_point = self._state, point.check_point
        group, topic = check_point.group or "", check_point.topic or ""
        if (
            state.topics.find(normal_topic(topic, group)) is None
            or state.groups.find_or_create(group) is None
        ):
            return True
        for offset in sorted(point.pending):
            if not self._revive_message(check_point, offset, budget) and not self._put_back(
                check_point, offset, queue_id, now_ms
            ):
                return False
            point.pending.discard(offset)
        return True

    def _revive_message(self, check_point: CheckPoint, offset: int, budget: Budget) -> bool:
        """Copy one message to its retry topic; False if the store refuses it now."""
        store = self._state.store
        unit = store.queue_unit(check_point.topic or "", check_point.queue_id, offset)
        message = None if unit is None else record_of_entry(store, unit[0], unit[1])
        if unit is None or message is None:
            return True  # deleted meanwhile, or damaged
        budget.spend(COST_OF_A_COPY, unit[1])
        return deliver("popped", unit[0], lambda: self._store_copy(check_point, message))

    def _store_copy(self, check_point: CheckPoint, message: Record) -> AppendResult:
        state = self._state
        group, topic = check_point.group or "", check_point.topic or ""
        if not is_retry_topic(topic):
            topic = pop_retry_topic(topic, group, v2=state.config.enable_retry_topic_v2)
        queues = self._make_retry_topic(topic, group)
        queue_id = message.queue_id if message.queue_id < queues else 0
        result = state.store.append(_make_retry(state, check_point, message, topic, queue_id))
        if result.status is PutStatus.PUT_OK:
            state.statistics.count_put(topic, 1, result.size)
        return result

    def _make_retry_topic(self, topic: str, group: str) -> int:
        """Create or update the retry topic; returns the number of its queues: one, or with `useSeparateRetryQueue` as
        many as the popped topic has now."""
        state = self._state
        config, queues = state.topics.find(topic), 1
        if state.config.use_separate_retry_queue:
            popped = state.topics.find(normal_topic(topic, group))
            queues = queues if popped is None else popped.write_queue_nums
            if config is not None and config.write_queue_nums == queues:
                return queues
        elif config is not None:
            return 1
        state.topics.update(TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues))
        for queue_id in range(queues):
            if state.offsets.query(topic, group, queue_id) < 0:
                state.offsets.commit(topic, group, queue_id, 0)
        return queues

    def _put_back(self, check_point: CheckPoint, offset: int, queue_id: int, now_ms: int) -> bool:
        """Store a checkpoint for one message again; False if the store refuses it."""
        put_back = parse_number(check_point.re_put_times or "0", 0, 999)
        times = 127 if put_back is None else put_back
        later_ms = PUT_BACK_SECONDS[min(times, len(PUT_BACK_SECONDS) - 1)] * 1000
        again = CheckPoint(
            start_offset=offset,
            pop_time=check_point.pop_time,
            invisible_time=max(check_point.invisible_time, now_ms - check_point.pop_time) + later_ms,
            num=1,
            queue_id=check_point.queue_id,
            topic=check_point.topic,
            group=check_point.group,
            diffs=[0],
            broker_name=check_point.broker_name,
            re_put_times=str(times + 1),
            suspend=check_point.suspend,
        )
        try:
            self._log.put_checkpoint(again, queue_id)
        except Refusal as error:
            _log.error("cannot revive message %d of %s: %s", offset, check_point.topic, error.remark)
            return False
        return True


def _make_retry(
    state: BrokerState, check_point: CheckPoint, record: Record, topic: str, queue_id: int
) -> NewMessage:
    properties = read_properties(record.properties)
    if record.reconsume_times == 0 or names.FIRST_POP_TIME not in properties:
        properties[names.FIRST_POP_TIME] = str(check_point.pop_time)
    properties[names.ORIGIN_GROUP] = check_point.group or ""
    if names.TAGS in properties:  # the official broker adds TAGS to the map first
        properties = {names.TAGS: properties[names.TAGS], **properties}
    message = copy_of(record, topic, queue_id, changes_of(properties))
    message.properties = b""
    message.born_host = message.store_host = state.identity.store_host
    message.reconsume_times += 0 if check_point.suspend else 1
    return message
