"""The messages of one assigned queue that were pulled and are not finished, and the state of its lock.

    pull -> put -> [ cached, sorted by offset ] -> take -> [ taken, ordered only ] -> commit
                        |        ^                              |
                     remove      +---- again, rollback ---------+

A concurrent consumer leaves messages cached while listeners run and removes them when they are done, in any order; an
ordered one takes them out and commits. Either way the offset to store is never beyond an unfinished message: that makes
consumption at-least-once. Owned by the event loop; nothing here waits, logs or reads a clock of its own. Pausing the
pull loop is `flow_control.py`; what a listener's result does is `delivery/settlement.py` and
`delivery/ordered_delivery.py`. Official class: ProcessQueue.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from pocketmq.protocol.bodies.client_state import PopProcessQueueInfo, ProcessQueueInfo
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.queue_allocation import sort_queues

from ..settings.checks import MIB
from ..values.message import MessageExt

LOCK_MAX_LIVE_MS: Final = 30_000
PULL_MAX_IDLE_MS: Final = 120_000
UNLOCK_DELAY_MS: Final = 20_000
"""A dropped queue whose lock was renewed longer ago than this is given up although its listener still runs."""

EXPIRED_DELAY_LEVEL: Final = 3
EXPIRED_AT_MOST: Final = 16
"""Messages of one queue sent back in one pass of the cleaning."""


class ProcessQueue:
    """One process queue. A new one counts as locked by the broker only after `locked = True`."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._cached: dict[int, MessageExt] = {}
        self._order: deque[int] = deque()
        # Ascending; has every cached offset, and between them some that were removed: removing is then one dict
        # operation, and the ends are cleaned when they are read.
        self._taken: dict[int, MessageExt] = {}
        self._offset_max = 0
        now = now_ms()
        self.cached_bytes = 0
        """Body bytes of both maps."""
        self.consuming = False
        """Ordered: a consume task exists or is scheduled."""
        self.dropped = False
        self.locked = False
        self.last_lock_ms = now
        self.last_pull_ms = now
        self.last_consume_ms = now
        self.try_unlock_times = 0
        self.start_offset = 0
        """Offset this member began to read at."""

    # -- how much is in it

    @property
    def count(self) -> int:
        """Unfinished messages, cached and taken."""
        return len(self._cached) + len(self._taken)

    def first_offset(self) -> int:
        """Smallest cached offset, -1 without any."""
        order, cached = self._order, self._cached
        while order:
            if order[0] in cached:
                return order[0]
            order.popleft()
        return -1

    def last_offset(self) -> int:
        """Largest cached offset, -1 without any."""
        order, cached = self._order, self._cached
        while order:
            if order[-1] in cached:
                return order[-1]
            order.pop()
        return -1

    def max_span(self) -> int:
        """Largest cached offset minus smallest, 0 without any."""
        return self.last_offset() - self.first_offset()

    def __contains__(self, message: MessageExt) -> bool:
        """Whether the message is still cached (official containsMessage)."""
        return message.queue_offset in self._cached

    # -- concurrent consumption

    def put(self, messages: Sequence[MessageExt]) -> bool:
        """Cache pulled messages, each offset once. True if an ordered consume task has to be started now."""
        cached, order = self._cached, self._order
        offsets = [message.queue_offset for message in messages]
        if offsets:
            if offsets[0] > (order[-1] if order else -1) and offsets == sorted({*offsets}):
                cached.update(zip(offsets, messages, strict=True))
                order.extend(offsets)
                self._offset_max = offsets[-1]
                self.cached_bytes += sum([len(message.body) for message in messages])
            else:
                self._put_among(messages)
        if cached and not self.consuming:
            self.consuming = True
            return True
        return False

    def _put_among(self, messages: Sequence[MessageExt]) -> None:
        """Cache messages of which some are known already, or come before known ones."""
        cached = self._cached
        for message in messages:
            offset = message.queue_offset
            self.cached_bytes += len(message.body)
            known = cached.get(offset)
            if known is not None:
                self.cached_bytes -= len(known.body)
            else:
                self._offset_max = offset
            cached[offset] = message
        self._sort()

    def remove(self, messages: Iterable[MessageExt]) -> int:
        """Forget finished messages. Returns the offset to store: the smallest one left, else the one after the last
        put; -1 if nothing was cached."""
        self.last_consume_ms = self._now_ms()
        cached = self._cached
        if not cached:
            return -1
        forget, freed = cached.pop, 0
        for message in messages:
            gone = forget(message.queue_offset, None)
            if gone is not None:
                freed += len(gone.body)
        self.cached_bytes -= freed
        if cached:
            return self.first_offset()
        self._order.clear()
        return self._offset_max + 1

    def first_expired(self, consume_timeout_minutes: int) -> MessageExt | None:
        """The first cached message, if its listener was called longer ago than the timeout.

        The cleaning sends it back with EXPIRED_DELAY_LEVEL and calls `remove_expired`, at most EXPIRED_AT_MOST times
        a pass. Messages that wait for a listener never expire. Official cleanExpiredMsg.
        """
        first = self.first_offset()
        if first < 0:
            return None
        message = self._cached[first]
        started_ms = message.consume_start_ms
        if not started_ms or self._now_ms() - started_ms <= consume_timeout_minutes * 60_000:
            return None
        return message

    def remove_expired(self, message: MessageExt) -> None:
        """Forget a message that was sent back, if it is still the first. The stored offset moves with the next
        finished batch."""
        if self.first_offset() == message.queue_offset:
            self.remove((message,))

    # -- ordered consumption

    def take(self, batch_size: int) -> list[MessageExt]:
        """Up to `batch_size` messages with the smallest offsets; they count as unfinished until `commit`. With
        none, the consume task has ended: the next `put` starts another."""
        self.last_consume_ms = self._now_ms()
        order, cached = self._order, self._cached
        batch: list[MessageExt] = []
        while order and len(batch) < batch_size:
            message = cached.pop(order.popleft(), None)
            if message is not None:
                self._taken[message.queue_offset] = message
                batch.append(message)
        if not batch:
            self.consuming = False
        return batch

    def commit(self) -> int:
        """Finish everything taken. Returns the offset to store: the last one taken plus 1; -1 if nothing was taken.

        (The official class raises on an empty map; that happens only after `clear`.)
        """
        if not self._taken:
            return -1
        self.cached_bytes -= sum(len(message.body) for message in self._taken.values())
        offset = max(self._taken) + 1
        self._taken.clear()
        return offset

    def rollback(self) -> None:
        """Put everything taken back."""
        self.consume_again(list(self._taken.values()))

    def consume_again(self, messages: Iterable[MessageExt]) -> None:
        """Put these back: they will be taken again (official makeMessageToConsumeAgain)."""
        for message in messages:
            offset = message.queue_offset
            self._taken.pop(offset, None)
            replaced = self._cached.get(offset)
            if replaced is not None:
                self.cached_bytes -= len(replaced.body)
            self._cached[offset] = message
        self._sort()

    # -- life

    def clear(self) -> None:
        """Forget everything cached and taken; the next owner of a dropped queue gets its messages."""
        self._cached.clear()
        self._order.clear()
        self._taken.clear()
        self.cached_bytes = self._offset_max = 0

    def note_locked(self, locked: bool) -> None:
        """The broker granted or refused the lock."""
        self.locked = locked
        if locked:
            self.last_lock_ms = self._now_ms()

    def note_pull(self) -> None:
        """A pull is tried now; a pull that flow control holds back counts too."""
        self.last_pull_ms = self._now_ms()

    @property
    def is_lock_expired(self) -> bool:
        return self._now_ms() - self.last_lock_ms > LOCK_MAX_LIVE_MS

    @property
    def is_pull_expired(self) -> bool:
        """No pull was tried for so long that the pull loop must have died."""
        return self._now_ms() - self.last_pull_ms > PULL_MAX_IDLE_MS

    @property
    def may_be_forced(self) -> bool:
        """Dropped so long ago that an ordered consumer gives up the queue without waiting for its listener.

        5.2 and later; older clients wait and unlock later.
        """
        return self.dropped and self._now_ms() > self.last_lock_ms + UNLOCK_DELAY_MS

    def info(self, commit_offset: int = 0) -> ProcessQueueInfo:
        """The queue's line in the answer to GET_CONSUMER_RUNNING_INFO (official fillProcessQueueInfo)."""
        cached, taken = self._cached, self._taken
        return ProcessQueueInfo(
            commit_offset=commit_offset,
            cached_msg_min_offset=self.first_offset() if cached else 0,
            cached_msg_max_offset=self.last_offset() if cached else 0,
            cached_msg_count=len(cached),
            cached_msg_size_in_mib=self.cached_bytes // MIB,
            transaction_msg_min_offset=min(taken, default=0),
            transaction_msg_max_offset=max(taken, default=0),
            transaction_msg_count=len(taken),
            locked=self.locked,
            try_unlock_times=self.try_unlock_times,
            last_lock_timestamp=self.last_lock_ms,
            droped=self.dropped,
            last_pull_timestamp=self.last_pull_ms,
            last_consume_timestamp=self.last_consume_ms,
        )

    def _sort(self) -> None:
        self._order = deque(sorted(self._cached))


class PopProcessQueue:
    """The state of one popped queue: how many messages are unacknowledged, and whether it is still ours."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self.dropped = False
        self.last_pop_ms = self._now_ms()
        self.waiting_acks = 0

    def note_pull(self) -> None:
        self.last_pop_ms = self._now_ms()

    @property
    def is_expired(self) -> bool:
        """Its loop has not popped for too long (official isPullExpired)."""
        return self._now_ms() - self.last_pop_ms > PULL_MAX_IDLE_MS

    def info(self) -> PopProcessQueueInfo:
        return PopProcessQueueInfo(
            wait_ack_count=self.waiting_acks, droped=self.dropped, last_pop_timestamp=self.last_pop_ms
        )


class QueueTable(dict[MessageQueue, ProcessQueue]):
    """The process queues a consumer holds: those it consumes, and dropped ones not released yet (official
    processQueueTable)."""

    def live(self) -> list[MessageQueue]:
        """The queues that are not dropped."""
        return [queue for queue, process_queue in self.items() if not process_queue.dropped]

    def lost(
        self, topic: str, target: Collection[MessageQueue], *, with_dead_loops: bool
    ) -> list[MessageQueue]:
        """Queues of a topic to give up: those of others, then `with_dead_loops` those that are ours, but whose loop
        has died: they are added again in the same round."""
        held = {queue: process_queue for queue, process_queue in self.items() if queue.topic == topic}
        lost = [queue for queue in held if queue not in target]
        if with_dead_loops:
            lost += [queue for queue in held if queue in target and held[queue].is_pull_expired]
        return lost

    def missing(self, target: Iterable[MessageQueue]) -> list[MessageQueue]:
        """Queues to add; sorted, so that members ask for locks in one order."""
        return sort_queues(queue for queue in target if queue not in self)

    def is_balanced(self, topic: str, target: Collection[MessageQueue]) -> bool:
        """Whether exactly the target's queues of the topic are held and alive."""
        return {queue for queue in self.live() if queue.topic == topic} == set(target)

    def discard(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """Remove a process queue; nothing if the message queue has another one by now."""
        if self.get(queue) is process_queue:
            del self[queue]
