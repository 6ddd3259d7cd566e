"""Suspended pops by themselves: a cancelled one takes no message, and none is kept after its end."""

import asyncio
import itertools
import random
import time

import pytest
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.broker.filters.sql_filter import EVERY_MESSAGE
from pocketmq.broker.network.dispatch import HELD, Call, Held
from pocketmq.broker.pop.pop_waiters import ANY_QUEUE, LEAST_GONE, HoldResult, PopWaiter, PopWaiters, SentAt
from pocketmq.broker.time.slices import ANSWERS_IN_A_TURN
from pocketmq.broker.time.timers import Timers
from pocketmq.protocol.wire.command import Command
from pocketmq.store import VirtualClock

from broker.pop.pops import a_pop
from broker_fakes import FakeConnection, turns

KEY = ("orders", "g", ANY_QUEUE)


class Waiting:
    """Waiters of one topic and group; `answered` has the names of those that were handled again."""

    def __init__(self, clock: VirtualClock, *, wakes_last: bool = False) -> None:
        self.clock = clock
        self.answered: list[str] = []
        config = BrokerConfig(
            pop_polling_size=100_000,
            max_pop_polling_size=100_000,
            pop_long_polling_force_notify_interval=0,
        )
        self.waiters = PopWaiters(config, clock, Timers(clock), wakes_last=wakes_last)

    def hold(
        self, name: str, seconds: float = 20, connection: FakeConnection | None = None, group: str = "g"
    ) -> Call:
        def attempt() -> Held:
            self.answered.append(name)
            return HELD

        call, now_ms = Call(connection or FakeConnection(), Command(200050)), self.clock.now_ms()
        request = a_pop(consumer_group=group, poll_time=round(seconds * 1000))
        waiter = PopWaiter(request, call, SentAt(now_ms, now_ms), attempt, EVERY_MESSAGE)
        assert self.waiters.hold(waiter) is HoldResult.HELD
        return call

    async def arrives(self) -> None:
        self.waiters.arrived("orders", 0, 1, 0, b"")
        await turns()


@pytest.fixture
async def waiting(clock: VirtualClock) -> Waiting:
    return Waiting(clock)


async def test_a_cancelled_request_is_not_woken(waiting: Waiting) -> None:
    first, second = waiting.hold("first"), waiting.hold("second")
    assert waiting.waiters.cancel(first)
    assert not waiting.waiters.cancel(first)
    assert waiting.waiters.total == waiting.waiters.count(*KEY) == 1
    await waiting.arrives()
    assert waiting.answered == ["second"]
    assert not waiting.waiters.cancel(second)


async def test_a_request_cancelled_after_it_was_woken_passes_the_message_on(waiting: Waiting) -> None:
    first = waiting.hold("first")
    waiting.hold("second")
    waiting.waiters.arrived("orders", 0, 1, 0, b"")
    assert waiting.waiters.cancel(first)
    await turns()
    assert waiting.answered == ["second"]
    assert waiting.waiters.total == 0


async def test_a_connection_that_closes_after_its_request_was_woken_passes_the_message_on(
    waiting: Waiting,
) -> None:
    connection = FakeConnection()
    waiting.hold("first", connection=connection)
    waiting.hold("second")
    waiting.waiters.arrived("orders", 0, 1, 0, b"")
    connection.close()
    await turns()
    assert waiting.answered == ["second"]


@pytest.mark.parametrize("wakes_last", [False, True])
async def test_any_order_of_cancels_leaves_the_rest_in_their_order(
    clock: VirtualClock, wakes_last: bool
) -> None:
    waiting = Waiting(clock, wakes_last=wakes_last)
    calls = {number: waiting.hold(str(number), 10 + number) for number in range(40)}
    chosen = random.Random(5).sample(sorted(calls), 30)
    for number in chosen:
        assert waiting.waiters.cancel(calls[number])
    for _ in range(12):
        await waiting.arrives()
    left = sorted(set(calls) - set(chosen), reverse=wakes_last)
    assert waiting.answered == [str(number) for number in left]


async def test_nothing_is_kept_of_requests_that_no_longer_wait(waiting: Waiting) -> None:
    for number in range(1000):
        call = waiting.hold(str(number), 3600)
        if number % 2:
            assert waiting.waiters.cancel(call)
        else:
            await waiting.arrives()
    assert waiting.waiters.total == 0
    waiters = waiting.waiters
    kept = [len(waiters._times), len(waiters._waiting), len(waiters._held), len(waiters._groups)]
    assert kept[0] <= LEAST_GONE
    assert kept[1:] == [0, 0, 0]


async def test_requests_whose_time_is_over_are_forgotten_on_an_idle_topic(
    waiting: Waiting, clock: VirtualClock
) -> None:
    for number in range(50):
        waiting.hold(str(number), 1)
        clock.advance(1000)
        waiting.waiters.scan(clock.now_ms())
        await asyncio.sleep(0)
    assert len(waiting.answered) == 50
    assert not waiting.waiters._waiting
    assert not waiting.waiters._held


async def test_requests_whose_time_is_over_are_woken_some_at_a_time(
    waiting: Waiting, clock: VirtualClock
) -> None:
    for number in range(1000):
        waiting.hold(str(number), 0.06, group=f"g{number}")
    clock.advance(60)  # their timer follows the loop's time, 10 ms later
    left = [1000]
    while left[-1]:
        await asyncio.sleep(0)
        left.append(waiting.waiters.total)
    assert max(before - after for before, after in itertools.pairwise(left)) == ANSWERS_IN_A_TURN


async def test_a_request_leaves_at_the_same_cost_however_many_wait(waiting: Waiting) -> None:
    def cost(count: int) -> float:
        calls = [waiting.hold("", group=f"g{number}") for number in range(count)]
        calls += [waiting.hold("", seconds) for seconds in range(20, 20 + count)]
        used = time.thread_time()
        for call in calls:
            waiting.waiters.cancel(call)
        return (time.thread_time() - used) / count

    few = min(cost(200) for _ in range(5))
    assert cost(8000) < 8 * few  # each searched all others: 40 times as much


@pytest.mark.parametrize("messages", [1, 3])
async def test_a_message_that_many_groups_wait_for_wakes_them_some_at_a_time(
    waiting: Waiting, messages: int
) -> None:
    for number in range(1000):
        for _ in range(messages):
            waiting.hold("", group=f"g{number}")
    left = []
    for number in range(messages):
        waiting.waiters.arrived("orders", 0, number, 0, b"")
    while waiting.waiters.total and len(left) < 50:
        left.append(waiting.waiters.total)
        await asyncio.sleep(0)
    assert max(before - after for before, after in itertools.pairwise(left)) <= ANSWERS_IN_A_TURN
    assert waiting.waiters.total == max(messages - 2, 0) * 1000  # the messages of one iteration share a round
    assert not waiting.waiters._late
