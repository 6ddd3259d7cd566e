"""Suspended pops and notifications: requests that found no message and wait for one, in one queue or in any.

A waiter is kept by topic, group and requested queue (-1: any). Each message wakes waiters of each group: one that waits
for any queue, and one that waits for its queue; of several, the one whose time is over first (pops) or last
(notifications). A woken request is handled again from the start in the next loop iteration, and may wait again. Copies
in a retry topic wake the group that they name (ORIGIN_GROUP). Limits: `popPollingSize` for each wait key,
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
from pocketmq.store import Clock

from ..filters.sql_filter import SqlFilter
from ..filters.tag_filter import TagsMatch
from ..network.dispatch import Call
from ..state.timers import Timer, Timers
from ..state.turns import Turns

_log = logging.getLogger("pocketmq.pop")

ANY_QUEUE: Final = -1
MAX_ANSWERS: Final = 256
"""Requests handled again in one loop iteration, some milliseconds of work."""
EARLY_MS: Final = 50
"""A waiter is answered this long before its time is over, so that the answer is not late."""

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

    __slots__ = ("again", "call", "is_waiting", "matches", "sql", "until_ms", "wall_until_ms")

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
        self.is_waiting = True

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
        """Heaps by time; they may still contain waiters that no longer wait."""
        self._groups: dict[str, set[str]] = {}
        """The waiting groups of each topic."""
        self._counts: dict[WaitKey, int] = {}
        self._times: list[tuple[int, int, WaitKey, PopWaiter]] = []
        self._turns: Turns[PopWaiter] = Turns(lambda waiter: waiter.again(), MAX_ANSWERS, timers.call_soon)
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
        return self._counts.get((topic, group, queue_id), 0)

    def hold(self, key: WaitKey, waiter: PopWaiter, poll_time_ms: int) -> Polling:
        """Keep a request until a message arrives, its time is over, or its connection closes."""
        if poll_time_ms <= 0 or self._is_stopped:
            return Polling.NOT_WANTED
        if self.total >= self._total_limit():
            return Polling.FULL
        if self._is_over(waiter):
            return Polling.TIMED_OUT
        if self._counts.get(key, 0) > self._key_limit():
            return Polling.FULL
        number = next(self._order)
        heapq.heappush(self._waiting.setdefault(key, []), (waiter.until_ms, number, waiter))
        heapq.heappush(self._times, (waiter.until_ms, number, key, waiter))
        self._groups.setdefault(key[0], set()).add(key[1])
        self._counts[key] = self._counts.get(key, 0) + 1
        self.total += 1
        self._set_timer()
        return Polling.WAITS

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
        """Wake the requests whose time is over; drop those whose connection is closed."""
        while self._times:
            until_ms, _, key, waiter = self._times[0]
            if waiter.is_waiting and now_ms <= until_ms - EARLY_MS:
                break
            heapq.heappop(self._times)
            if waiter.is_waiting:
                self._leave(key, waiter)
                self._turns.add(waiter)
        self._set_timer()

    def scan_by_wall(self) -> None:
        """In virtual time: wake the requests whose time will soon be over by the clients' clocks."""
        over = [entry for entry in self._times if entry[3].is_waiting and self._is_over(entry[3])]
        for _, _, key, waiter in over:
            self._leave(key, waiter)
            self._turns.add(waiter)

    def _wake(
        self, key: WaitKey, is_forced: bool, tags_code: int, property_map: Mapping[str, str] | None
    ) -> bool:
        waiters = self._waiting.get(key)
        while waiters:
            entry = max(waiters) if self._wakes_last else waiters[0]
            waiter = entry[2]
            if waiter.is_waiting and waiter.call.connection.closed:
                self._leave(key, waiter)
            if waiter.is_waiting:
                if not is_forced and not waiter.wants(tags_code, property_map):
                    return False
                self._leave(key, waiter)
                self._turns.add(waiter)
                self._remove(key, waiters, entry)
                return True
            self._remove(key, waiters, entry)
        return False

    def _remove(
        self, key: WaitKey, waiters: list[tuple[int, int, PopWaiter]], entry: tuple[int, int, PopWaiter]
    ) -> None:
        if entry is waiters[0]:
            heapq.heappop(waiters)
        else:
            waiters.remove(entry)
            heapq.heapify(waiters)
        if not waiters:
            self._waiting.pop(key, None)

    def _leave(self, key: WaitKey, waiter: PopWaiter) -> None:
        waiter.is_waiting = False
        self.total -= 1
        left = self._counts[key] - 1
        if left:
            self._counts[key] = left
            return
        del self._counts[key]
        topic, group, _ = key
        if not any(other[0] == topic and other[1] == group for other in self._counts):
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
