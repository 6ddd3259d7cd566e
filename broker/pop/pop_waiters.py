"""Suspended pops and notifications: requests that found no message and wait for one, in one queue or in any.

A waiter is kept by topic, group and requested queue (-1: any). Each message wakes waiters of each group: one that waits
for any queue, and one that waits for its queue; of several, the one whose time is over first (pops) or last
(notifications). A woken request is handled again from the start in the next loop iteration, and may wait again. Copies
in a retry topic wake the group that they name (ORIGIN_GROUP). A cancelled request takes no message: if it was woken and
not yet handled, another one is woken instead. Limits: `popPollingSize` for each wait key,
`maxPopPollingSize` in all. Pulls wait in `pulling/pull_waiters.py`. Mirrors `PopLongPollingService`.
"""

import heapq
import itertools
import logging
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

import msgspec
from pocketmq.core.properties import read_values
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.topics import RETRY_PREFIX
from pocketmq.protocol.requests.pop import Notification, PopMessage
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import Clock

from ..config.broker_config import BrokerConfig
from ..errors import Refusal
from ..filters.sql_filter import MessageFilter
from ..network.dispatch import Answer, Call, Held
from ..time.held_answers import HeldAnswers
from ..time.slices import ANSWERS_IN_A_TURN
from ..time.timers import Timer, Timers

_log = logging.getLogger("pocketmq.pop")

ANY_QUEUE: Final = -1
EARLY_MS: Final = 50
"""A waiter is answered this long before its time is over, so that the answer is not late."""

LEAST_GONE: Final = 16
"""Requests that no longer wait are dropped from a heap once they are this many, and more than half of it."""

EARLY_BY_WALL_MS: Final = 1000
"""The same by the clients' clocks, if the broker's is virtual: that many ms may pass until the next scan."""

WaitKey = tuple[str, str, int]
"""Topic, group and queue for which a request waits."""


class HoldResult(Enum):
    """Whether a request waits, and why not."""

    HELD = auto()
    FULL = auto()
    TIMED_OUT = auto()
    NOT_WANTED = auto()


class SentAt(NamedTuple):
    """When a client sent its request, by the broker's clock and by the client's."""

    ms: int
    wall_ms: int

    @classmethod
    def of(cls, born_ms: int, clock: Clock) -> "SentAt":
        """From the field bornTime, 0 if the client does not send it."""
        wall_ms = born_ms or clock.wall_ms()
        return cls(clock.from_wall_ms(wall_ms), wall_ms)


class PopWaiter(msgspec.Struct, eq=False):
    """One request that found no message. `attempt` handles it once more: it answers, or the request waits again."""

    request: PopMessage | Notification
    call: Call
    sent_at: SentAt
    attempt: Callable[[], Answer | Held]
    wanted: MessageFilter
    number: int = 0
    """Set by `hold`."""
    is_waiting: bool = True
    is_cancelled: bool = False

    @property
    def key(self) -> WaitKey:
        return self.request.topic, self.request.consumer_group, self.request.queue_id

    @property
    def until_ms(self) -> int:
        return self.sent_at.ms + self.request.poll_time


class _Waiting(msgspec.Struct, eq=False):
    """The requests with one wait key: a heap, the one to be woken first at its top."""

    heap: list[tuple[int, int, PopWaiter]] = []
    """It may still contain requests that no longer wait."""
    count: int = 0
    """Those that wait."""


def _drop_gone(heap: list[tuple[int, int, PopWaiter]], count: int) -> list[tuple[int, int, PopWaiter]]:
    """The heap without the requests that no longer wait, if they are many; `count` requests wait."""
    if len(heap) <= 2 * count + LEAST_GONE:
        return heap
    heap = [entry for entry in heap if entry[2].is_waiting]
    heapq.heapify(heap)
    return heap


class PopWaiters:
    """All suspended requests of one kind. Owned by the event loop."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, timers: Timers, *, wakes_last: bool = False
    ) -> None:
        """With `wakes_last`, a message wakes the request with the most time left, of several with one wait key."""
        self._config = config
        self._clock = clock
        self._timers = timers
        self._direction = -1 if wakes_last else 1
        self._waiting: dict[WaitKey, _Waiting] = {}
        self._groups: dict[str, dict[str, int]] = {}
        """The waiting groups of each topic, each with the number of its keys."""
        self._late: dict[tuple[str, int], tuple[list[str], bool]] = {}
        """Topic and queue of messages that many groups wait for: the groups that are still to be woken, and whether
        another message has arrived meanwhile."""
        self._times: list[tuple[int, int, PopWaiter]] = []
        """A heap of all of them. It may still contain waiters that no longer wait."""
        self._held: dict[Call, PopWaiter] = {}
        """The waiting requests, and the woken ones until they are handled."""
        self._answers: HeldAnswers[PopWaiter] = HeldAnswers(
            self._handle_again, timers.call_soon, gone=self._pass_on
        )
        self._order = itertools.count()
        self._timer: Timer | None = None
        self._timer_ms = 0
        self.total = 0
        self._is_stopped = False

    def count(self, topic: str, group: str, queue_id: int) -> int:
        waiting = self._waiting.get((topic, group, queue_id))
        return 0 if waiting is None else waiting.count

    def hold(self, waiter: PopWaiter) -> HoldResult:
        """Keep a request until a message arrives, its time is over, or its connection closes."""
        if waiter.request.poll_time <= 0 or self._is_stopped:
            return HoldResult.NOT_WANTED
        if self.total >= self._config.max_pop_polling_size:
            return HoldResult.FULL
        if self._is_over(waiter):
            return HoldResult.TIMED_OUT
        key = waiter.key
        waiting = self._waiting.get(key)
        if waiting is not None and waiting.count > self._config.pop_polling_size:
            return HoldResult.FULL
        if waiting is None:
            waiting = self._waiting[key] = _Waiting()
            groups = self._groups.setdefault(key[0], {})
            groups[key[1]] = groups.get(key[1], 0) + 1
        waiter.number = next(self._order)
        self._held[waiter.call] = waiter
        until_ms, number, direction = waiter.until_ms, waiter.number, self._direction
        heapq.heappush(waiting.heap, (until_ms * direction, number * direction, waiter))
        heapq.heappush(self._times, (until_ms, number, waiter))
        waiting.count += 1
        self.total += 1
        self._set_timer()
        return HoldResult.HELD

    def cancel(self, call: Call) -> bool:
        """The client no longer waits for this call: it is not answered and takes no message. False if it is not held.

        A request that was woken for a message passes the message on to another one that waits for the same.
        """
        waiter = self._held.get(call)
        if waiter is None:
            return False
        if waiter.is_waiting:
            del self._held[call]
            self._leave(waiter)
        else:
            waiter.is_cancelled = True
        return True

    # -- waking

    def arrived(self, topic: str, queue_id: int, queue_offset: int, tags_code: int, text: bytes) -> None:
        """A message with this property text can be read now: wake requests. Costs only a look-up if none waits for the
        topic."""
        if not self.total:
            return
        if topic.startswith(RETRY_PREFIX):
            self._retry_arrived(topic, queue_id, text)
            return
        groups = self._groups.get(topic)
        if groups is None:
            return
        if len(groups) > ANSWERS_IN_A_TURN:
            self._arrived_late(topic, queue_id, groups)
            return
        interval = self._config.pop_long_polling_force_notify_interval
        is_forced = interval > 0 and queue_offset % interval == 0
        for group in tuple(groups):
            for queue in (ANY_QUEUE, queue_id):
                self._wake((topic, group, queue), is_forced, tags_code, text)

    def _arrived_late(self, topic: str, queue_id: int, groups: Mapping[str, int]) -> None:
        """A message of a topic for which many groups wait: wake some in each loop iteration, whatever their filters.
        Messages that arrive meanwhile share one further round."""
        late = self._late.get((topic, queue_id))
        if late is None:
            if not self._late:
                self._timers.call_soon(self._wake_some)
            self._late[topic, queue_id] = (list(groups), False)
        else:
            self._late[topic, queue_id] = (late[0], True)

    def _wake_some(self) -> None:
        (topic, queue_id), (groups, is_again) = next(iter(self._late.items()))
        for group in groups[-ANSWERS_IN_A_TURN:]:
            for queue in (ANY_QUEUE, queue_id):
                self.wake(topic, group, queue)
        del groups[-ANSWERS_IN_A_TURN:]
        if not groups:
            del self._late[topic, queue_id]
            waiting = self._groups.get(topic)
            if is_again and waiting is not None:
                self._late[topic, queue_id] = (list(waiting), False)
        if self._late:
            self._timers.call_soon(self._wake_some)

    def _retry_arrived(self, topic: str, queue_id: int, text: bytes) -> None:
        group = read_values(text, (), (names.ORIGIN_GROUP,))[0] or ""
        origin_topic = topic[len(RETRY_PREFIX) + len(group) + 1 :]
        if not group or not origin_topic:
            return
        for queue in (ANY_QUEUE, queue_id):
            self.wake(origin_topic, group, queue)

    def wake(self, topic: str, group: str, queue_id: int) -> bool:
        """Wake one request with this key, whatever its filter."""
        return self._wake((topic, group, queue_id), True, 0, b"")

    def wake_all(self) -> None:
        """Handle all requests once more; they may wait again."""
        for key in list(self._waiting):
            while self.wake(*key):
                pass

    def stop(self) -> int:
        """Handle all requests once more and hold none again; returns the number of loop iterations that it takes."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.wake_all()
        return self._answers.iterations

    def scan(self, now_ms: int) -> None:
        """Wake requests whose time is over, as many as one loop iteration handles; a timer is set for the others."""
        woken = 0
        while self._times and woken < ANSWERS_IN_A_TURN:
            until_ms, _, waiter = self._times[0]
            if waiter.is_waiting and now_ms <= until_ms - EARLY_MS:
                break
            heapq.heappop(self._times)
            if waiter.is_waiting:
                self._leave(waiter)
                self._answers.add(waiter)
                woken += 1
        self._set_timer()

    def scan_by_wall(self) -> None:
        """In virtual time: wake the requests whose time will soon be over by the clients' clocks."""
        over = [waiter for _, _, waiter in self._times if waiter.is_waiting and self._is_over(waiter)]
        for waiter in over:
            self._leave(waiter)
            self._answers.add(waiter)

    def _wake(self, key: WaitKey, is_forced: bool, tags_code: int, text: bytes) -> bool:
        waiting = self._waiting.get(key)
        while waiting is not None and waiting.count:
            waiter = waiting.heap[0][2]
            if not waiter.is_waiting:
                heapq.heappop(waiting.heap)
                continue
            if waiter.call.connection.closed:
                del self._held[waiter.call]
                self._leave(waiter)
                continue
            if not is_forced and not waiter.wanted.matches(tags_code, text):
                return False
            self._leave(waiter)
            self._answers.add(waiter)
            return True
        return False

    def _handle_again(self, waiter: PopWaiter) -> None:
        if waiter.is_cancelled:
            self._pass_on(waiter)
            return
        del self._held[waiter.call]
        try:
            result = waiter.attempt()
        except Refusal as error:
            result = Answer(code=error.code, remark=error.remark)
            if error.code == ResponseCode.SYSTEM_BUSY and not self._is_stopped:
                self.wake(*waiter.key)  # the message is there: the others are to ask again, too
        if isinstance(result, Answer):
            waiter.call.answer(result)

    def _pass_on(self, waiter: PopWaiter) -> None:
        """Wake another request instead of this one, which has no client left."""
        del self._held[waiter.call]
        if not self._is_stopped:
            self.wake(*waiter.key)

    def _leave(self, waiter: PopWaiter) -> None:
        waiter.is_waiting = False
        self.total -= 1
        self._times = _drop_gone(self._times, self.total)
        waiting = self._waiting[waiter.key]
        waiting.count -= 1
        if waiting.count:
            waiting.heap = _drop_gone(waiting.heap, waiting.count)
            return
        del self._waiting[waiter.key]
        topic, group, _ = waiter.key
        groups = self._groups[topic]
        groups[group] -= 1
        if not groups[group]:
            del groups[group]
            if not groups:
                del self._groups[topic]

    def _set_timer(self) -> None:
        if not self._times or self._is_stopped:
            return
        next_ms = max(self._times[0][0] - EARLY_MS + 1, 0)
        if self._timer is not None:
            if self._timer_ms <= next_ms:
                return
            self._timer.cancel()
        self._timer_ms = next_ms
        wait_ms = max(next_ms - self._clock.now_ms(), 0)
        self._timer = self._timers.call_later(wait_ms / 1000, self._tick, is_event=False)

    def _tick(self) -> None:
        self._timer = None
        self.scan(self._clock.now_ms())

    def _is_over(self, waiter: PopWaiter) -> bool:
        if self._clock.now_ms() > waiter.until_ms - EARLY_MS:
            return True
        if not self._timers.is_virtual:
            return False
        return self._clock.wall_ms() > waiter.sent_at.wall_ms + waiter.request.poll_time - EARLY_BY_WALL_MS
