"""Suspended pulls: requests at the end of their queue that wait for the next message.

A message that may match the subscription wakes a waiter. So does a scan every 5 s (1 s with long polling off), which
compares offsets and deadlines: an empty answer leaves up to one scan after its deadline, as in the official broker. An
arriving message only marks the waiters; they are answered in the next loop iterations, one of those that read by SQL in
each, so a burst of messages leaves in one answer. Limits: `max_waiters` in all, and `MAX_CHARACTERS` of their headers.
The tests of waiters are limited, too (`MAX_TESTS`): beyond that waiters wake untested, and their second read tests.
Mirrors `PullRequestHoldService`.
"""

from collections import OrderedDict
from collections.abc import Callable, Generator
from typing import Final

from pocketmq.protocol.requests.pull import PullMessage

from ..filters.sql_filter import MessageFilter, SqlFilter
from ..network.dispatch import Call
from ..time.held_answers import HeldAnswers
from ..time.timers import CallSoon

MAX_CHARACTERS: Final = 128 * 1024 * 1024
"""Of the header fields of all suspended pulls; usual ones have a few hundred. A compiled expression counts as its
bytes, once for all pulls that share it."""
MAX_TESTS: Final = 50_000
"""Tags compared for arriving messages in one loop iteration, about 10 ms."""
_SQL_TESTS: Final = 200_000
"""What a whole read by SQL counts as; one message is its `max_reads`-th part."""

_NEVER_MS: Final = 1 << 62


class PullWaiter:
    """A pull that may be suspended."""

    __slots__ = ("call", "characters", "deadline_ms", "request", "tests", "wall_deadline_ms", "wanted")

    deadline_ms: int
    wall_deadline_ms: int
    """By the clients' clocks; another one than `deadline_ms` only if the broker's clock is virtual."""
    characters: int
    tests: int
    """What testing one message counts as. These four are set by `hold`."""

    def __init__(self, call: Call, request: PullMessage, wanted: MessageFilter) -> None:
        self.call = call
        self.request = request
        self.wanted = wanted

    def answer(self) -> None:
        """Answer the call: the pull was woken."""
        raise NotImplementedError


class PullWaiters:
    """All suspended pulls of a broker, by topic and queue. Owned by the event loop."""

    def __init__(self, max_waiters: int, call_soon: CallSoon) -> None:
        self._max_waiters = max_waiters
        self._waiting: OrderedDict[tuple[str, int], list[PullWaiter]] = OrderedDict()
        self._call_soon = call_soon
        self._answers: HeldAnswers[PullWaiter] = HeldAnswers(
            lambda waiter: waiter.answer(), call_soon, is_long=lambda waiter: waiter.wanted.sql is not None
        )
        self._tests_left = MAX_TESTS
        self._expressions: dict[SqlFilter, int] = {}
        """How many pulls read by each."""
        self._count = 0
        self._characters = 0
        self._earliest_ms = 0
        self._earliest_held_ms = _NEVER_MS
        """Of the pulls held since the last scan began."""

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        return self._count >= self._max_waiters or self._characters >= MAX_CHARACTERS

    @property
    def earliest_ms(self) -> int | None:
        """The earliest deadline, or that of a pull answered since the last scan; `None` if no pull waits."""
        return self._earliest_ms if self._count else None

    def hold(self, waiter: PullWaiter, deadline_ms: int, wall_deadline_ms: int) -> None:
        """Keep a pull until a message arrives, its deadline passes, or its connection closes."""
        request, (tags, sql) = waiter.request, waiter.wanted
        waiter.deadline_ms, waiter.wall_deadline_ms = deadline_ms, wall_deadline_ms
        waiter.characters = sum(map(len, (waiter.call.command.fields or {}).values()))
        waiter.tests = int(tags is not None) if sql is None else _SQL_TESTS // sql.max_reads
        self._waiting.setdefault((request.topic, request.queue_id), []).append(waiter)
        if not self._count or waiter.deadline_ms < self._earliest_ms:
            self._earliest_ms = waiter.deadline_ms
        self._earliest_held_ms = min(self._earliest_held_ms, waiter.deadline_ms)
        self._count += 1
        self._characters += waiter.characters
        if sql is not None:
            sharing = self._expressions.get(sql, 0)
            self._expressions[sql] = sharing + 1
            if not sharing:
                self._characters += sql.bytes

    def waiting(self) -> list[PullWaiter]:
        """All suspended pulls."""
        return [waiter for waiters in self._waiting.values() for waiter in waiters]

    def has_waiting(self, topic: str, queue_id: int) -> bool:
        """Whether a pull waits for messages of this queue."""
        return (topic, queue_id) in self._waiting

    def arrived(self, topic: str, queue_id: int, queue_offset: int, tags_code: int, text: bytes) -> None:
        """A message with this property text can be read now: wake the waiters that it may match."""
        waiters = self._waiting.get((topic, queue_id))
        if waiters is None:
            return
        staying = []
        for waiter in waiters:
            if waiter.tests:
                if self._tests_left == MAX_TESTS:
                    self._call_soon(self._renew)
                self._tests_left -= waiter.tests
            if self._tests_left < 0 or (
                queue_offset >= waiter.request.queue_offset and waiter.wanted.matches(tags_code, text)
            ):
                self._make_due(waiter)
            else:
                staying.append(waiter)
        if len(staying) < len(waiters):
            self._keep((topic, queue_id), staying)

    def _renew(self) -> None:
        self._tests_left = MAX_TESTS

    def scan(self, now_ms: int, wall_ms: int, max_offset: Callable[[str, int], int]) -> Generator[None]:
        """Wake the waiters whose deadline has passed, by the broker's clock or by the clients', or whose queue has
        grown; drop those of closed connections. Yields once for each waiter.

        The scan ignores subscriptions, as in the official broker: a filtered pull is answered with the offset up to
        which nothing matched. A visited queue goes to the end, so that no list of all is needed, and keeps its
        list if nobody leaves: the garbage collector would walk 100,000 new keys or lists for 20 ms.
        """
        earliest_ms = self._earliest_held_ms = _NEVER_MS
        for _ in range(len(self._waiting)):
            if not self._waiting:  # answered since the scan began
                break
            key, waiters = next(iter(self._waiting.items()))
            self._waiting.move_to_end(key)
            end = max_offset(*key)
            staying, steps = [], len(waiters)
            for waiter in waiters:
                if waiter.call.connection.closed:
                    self._forget(waiter)
                elif (
                    now_ms >= waiter.deadline_ms
                    or end > waiter.request.queue_offset
                    or wall_ms >= waiter.wall_deadline_ms
                ):
                    self._make_due(waiter)
                else:
                    staying.append(waiter)
                    earliest_ms = min(earliest_ms, waiter.deadline_ms)
            if len(staying) < steps:
                self._keep(key, staying)
            for _ in range(steps):
                yield
        self._earliest_ms = min(earliest_ms, self._earliest_held_ms)

    def wake_all(self) -> int:
        """Answer all pulls in the next loop iterations because the broker stops; returns the number of iterations."""
        for key, waiters in list(self._waiting.items()):
            for waiter in waiters:
                self._make_due(waiter)
            self._keep(key, [])
        return self._answers.iterations

    def _keep(self, key: tuple[str, int], staying: list[PullWaiter]) -> None:
        if staying:
            self._waiting[key] = staying
        else:
            self._waiting.pop(key, None)

    def _make_due(self, waiter: PullWaiter) -> None:
        self._forget(waiter)
        self._answers.add(waiter)

    def _forget(self, waiter: PullWaiter) -> None:
        self._count -= 1
        self._characters -= waiter.characters
        sql = waiter.wanted.sql
        if sql is not None:
            sharing = self._expressions.pop(sql) - 1
            if sharing:
                self._expressions[sql] = sharing
            else:
                self._characters -= sql.bytes
