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

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.topics import RETRY_PREFIX
from pocketmq.protocol.requests.pop import Notification, PopMessage
from pocketmq.store import Clock

from ..errors import Refusal
from ..filters.sql_filter import SqlFilter
from ..filters.tag_filter import TagsMatch
from ..network.dispatch import Answer, Call, Held
from ..state.timers import Timer, Timers
from ..state.turns import Turns

_log = logging.getLogger("pocketmq.pop")

ANY_QUEUE: Final = -1
MAX_ANSWERS: Final = 256
"""Requests handled again in one loop iteration, some milliseconds of work."""
EARLY_MS: Final = 50
"""A waiter is answered this long before its time is over, so that the answer is not late."""

LEAST_GONE: Final = 256
"""Requests that no longer wait are dropped from the heaps once they are this many, and more than half of them."""

EARLY_BY_WALL_MS: Final = 1000
"""The same by the clients' clocks, if the broker's is virtual: that many ms may pass until the next scan."""

WaitKey = tuple[str, str, int]
"""Topic, group and queue for which a request waits."""


class Polling(Enum):
    """Whether a request waits, and why not."""

    WAITS = auto()
    FULL = auto()
    TIMED_OUT = auto()
    NOT_WANTED = auto()


class Birth(NamedTuple):
    """When a client sent its request, by the broker's clock and by the client's."""

    ms: int
    wall_ms: int

    @classmethod
    def of(cls, born_ms: int, clock: Clock) -> "Birth":
        """From the field bornTime, 0 if the client does not send it."""
        wall_ms = born_ms or clock.wall_ms()
        return cls(clock.from_wall_ms(wall_ms), wall_ms)


class PopWaiter:
    """One suspended request. `again` handles it once more and answers it, or lets it wait again."""

    __slots__ = (
        "again",
        "call",
        "is_cancelled",
        "is_waiting",
        "key",
        "matches",
        "number",
        "sql",
        "until_ms",
        "wall_until_ms",
    )

    def __init__(
        self,
        call: Call,
        until_ms: int,
        wall_until_ms: int,
        again: Callable[[], None],
        matches: TagsMatch | None,
        sql: SqlFilter | None,
    ) -> None:
        self.call = call
        self.until_ms = until_ms
        self.wall_until_ms = wall_until_ms
        self.again = again
        self.matches = matches
        self.sql = sql
        self.key: WaitKey = ("", "", ANY_QUEUE)
        self.number = 0
        """Key and number are set by `hold`."""
        self.is_waiting = True
        self.is_cancelled = False

    def wants(self, tags_code: int, property_map: Mapping[str, str] | None) -> bool:
        if self.matches is not None and not self.matches(tags_code):
            return False
        return self.sql is None or property_map is None or self.sql.matches_properties(property_map)


class PopWaiters:
    """All suspended requests of one kind. Owned by the event loop."""

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        *,
        key_limit: Callable[[], int],
        total_limit: Callable[[], int],
        force_interval: Callable[[], int],
        wakes_last: bool = False,
    ) -> None:
        """With `wakes_last`, a message wakes the request with the most time left, of several with one wait key."""
        self._clock = clock
        self._timers = timers
        self._key_limit = key_limit
        self._total_limit = total_limit
        self._force_interval = force_interval
        self._wakes_last = wakes_last
        self._waiting: dict[WaitKey, list[tuple[int, int, PopWaiter]]] = {}
        """Heaps by time."""
        self._groups: dict[str, set[str]] = {}
        """The waiting groups of each topic."""
        self._times: list[tuple[int, int, PopWaiter]] = []
        """A heap of all of them. It may still contain waiters that no longer wait."""
        self._held: dict[Call, PopWaiter] = {}
        """The waiting requests, and the woken ones until they are handled."""
        self._turns: Turns[PopWaiter] = Turns(
            self._handle_again, MAX_ANSWERS, timers.call_soon, gone=self._pass_on
        )
        self._order = itertools.count()
        self._timer: Timer | None = None
        self._timer_ms = 0
        self.total = 0
        """The number of all waiting requests."""
        self._is_stopped = False

    def __len__(self) -> int:
        return self.total

    def count(self, topic: str, group: str, queue_id: int) -> int:
        """The number of waiting requests with this key."""
        return len(self._waiting.get((topic, group, queue_id), ()))

    def hold_request(
        self,
        request: PopMessage | Notification,
        call: Call,
        birth: Birth,
        attempt: Callable[[], Answer | Held],
        matches: TagsMatch | None,
        sql: SqlFilter | None,
    ) -> Polling:
        """Let a request wait that found nothing. `attempt` handles it once more when it is woken; an answer is sent."""

        def again() -> None:
            try:
                result = attempt()
            except Refusal as error:
                result = Answer(code=error.code, remark=error.remark)
            if isinstance(result, Answer):
                call.answer(result)

        poll_ms = request.poll_time
        waiter = PopWaiter(call, birth.ms + poll_ms, birth.wall_ms + poll_ms, again, matches, sql)
        return self.hold((request.topic, request.consumer_group, request.queue_id), waiter, poll_ms)

    def hold(self, key: WaitKey, waiter: PopWaiter, poll_time_ms: int) -> Polling:
        """Keep a request until a message arrives, its time is over, or its connection closes."""
        if poll_time_ms <= 0 or self._is_stopped:
            return Polling.NOT_WANTED
        if self.total >= self._total_limit():
            return Polling.FULL
        if self._is_over(waiter):
            return Polling.TIMED_OUT
        if len(self._waiting.get(key, ())) > self._key_limit():
            return Polling.FULL
        waiter.key, waiter.number = key, next(self._order)
        self._held[waiter.call] = waiter
        entry = (waiter.until_ms, waiter.number, waiter)
        heapq.heappush(self._waiting.setdefault(key, []), entry)
        heapq.heappush(self._times, entry)
        self._groups.setdefault(key[0], set()).add(key[1])
        self.total += 1
        self._set_timer()
        return Polling.WAITS

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

    def arrived(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        tags_code: int,
        property_map: Mapping[str, str] | None,
    ) -> None:
        """A message can be read now: wake requests. Costs only a look-up if no request waits for the topic."""
        if not self.total:
            return
        if topic.startswith(RETRY_PREFIX):
            self._retry_arrived(topic, queue_id, tags_code, property_map)
            return
        groups = self._groups.get(topic)
        if groups is None:
            return
        interval = self._force_interval()
        is_forced = interval > 0 and queue_offset % interval == 0
        for group in tuple(groups):
            for queue in (ANY_QUEUE, queue_id):
                self._wake((topic, group, queue), is_forced, tags_code, property_map)

    def _retry_arrived(
        self, topic: str, queue_id: int, tags_code: int, property_map: Mapping[str, str] | None
    ) -> None:
        group = "" if property_map is None else property_map.get(names.ORIGIN_GROUP, "")
        origin_topic = topic[len(RETRY_PREFIX) + len(group) + 1 :]
        if not group or not origin_topic:
            return
        for queue in (ANY_QUEUE, queue_id):
            self._wake((origin_topic, group, queue), True, tags_code, property_map)

    def wake(self, topic: str, group: str, queue_id: int) -> bool:
        """Wake one request with this key, whatever its filter."""
        return self._wake((topic, group, queue_id), True, 0, None)

    def wake_all(self) -> None:
        """Handle all requests once more; they may wait again."""
        for key in list(self._waiting):
            while self._wake(key, True, 0, None):
                pass

    def stop(self) -> int:
        """Handle all requests once more and hold none again; returns the number of loop iterations that it takes."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.wake_all()
        return self._turns.iterations

    def scan(self, now_ms: int) -> None:
        """Wake the requests whose time is over."""
        while self._times:
            until_ms, _, waiter = self._times[0]
            if waiter.is_waiting and now_ms <= until_ms - EARLY_MS:
                break
            heapq.heappop(self._times)
            if waiter.is_waiting:
                self._leave(waiter)
                self._turns.add(waiter)
        self._set_timer()

    def scan_by_wall(self) -> None:
        """In virtual time: wake the requests whose time will soon be over by the clients' clocks."""
        over = [waiter for _, _, waiter in self._times if waiter.is_waiting and self._is_over(waiter)]
        for waiter in over:
            self._leave(waiter)
            self._turns.add(waiter)

    def _wake(
        self, key: WaitKey, is_forced: bool, tags_code: int, property_map: Mapping[str, str] | None
    ) -> bool:
        waiters = self._waiting.get(key)
        while waiters:
            waiter = (max(waiters) if self._wakes_last else waiters[0])[2]
            if waiter.call.connection.closed:
                del self._held[waiter.call]
                self._leave(waiter)
                continue
            if not is_forced and not waiter.wants(tags_code, property_map):
                return False
            self._leave(waiter)
            self._turns.add(waiter)
            return True
        return False

    def _handle_again(self, waiter: PopWaiter) -> None:
        if waiter.is_cancelled:
            self._pass_on(waiter)
            return
        del self._held[waiter.call]
        waiter.again()

    def _pass_on(self, waiter: PopWaiter) -> None:
        """Wake another request instead of this one, which has no client left."""
        del self._held[waiter.call]
        if not self._is_stopped:
            self.wake(*waiter.key)

    def _leave(self, waiter: PopWaiter) -> None:
        waiter.is_waiting = False
        self.total -= 1
        key = waiter.key
        waiters, entry = self._waiting[key], (waiter.until_ms, waiter.number, waiter)
        if entry == waiters[0]:
            heapq.heappop(waiters)
        else:
            waiters.remove(entry)
            heapq.heapify(waiters)
        if len(self._times) > 2 * self.total + LEAST_GONE:
            self._times = [entry for entry in self._times if entry[2].is_waiting]
            heapq.heapify(self._times)
        if waiters:
            return
        del self._waiting[key]
        topic, group, _ = key
        if not any(other[0] == topic and other[1] == group for other in self._waiting):
            groups = self._groups[topic]
            groups.discard(group)
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
        return self._timers.is_virtual and self._clock.wall_ms() > waiter.wall_until_ms - EARLY_BY_WALL_MS
