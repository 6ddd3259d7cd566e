"""Delivery to a concurrent listener: calls that end at once are settled together, and nobody can tell."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client import MessageExt, MessageQueue, PullResult, PullStatus
from pocketmq.client.delivery.concurrent_delivery import (
    TURNS_AT_ONCE,
    ConcurrentDelivery,
    call_before_each_suspend,
)
from pocketmq.client.delivery.listeners import Listener, ListenerCall, ListenerInvoker, RetryLater
from pocketmq.client.rebalancing.process_queue import ProcessQueue
from pocketmq.client.values.listener_returns import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus

from client_vectors import FakeClock, consumer_context, pulled_message

QUEUE = MessageQueue("T", "broker-a", 0)


class SentBack:
    """Accepts what is sent back, and remembers it."""

    def __init__(self) -> None:
        self.offsets: list[tuple[int, int]] = []

    async def send_back(self, message: MessageExt, delay_level: int) -> bool:
        await asyncio.sleep(0)
        self.offsets.append((message.queue_offset, delay_level))
        return True


class Bench:
    """A delivery whose broker is a list. `listener` is called with one message, or also with the context."""

    def __init__(self, listener: Listener, *, workers: int = 20) -> None:
        self.process_queue = ProcessQueue(FakeClock())
        self.sent_back = SentBack()
        self.failures: list[Exception] = []
        context = consumer_context(consume_thread_min=workers, consume_thread_max=workers)
        self.offsets, self.statistics = context.offsets, context.statistics
        invoker = ListenerInvoker(
            context,
            ListenerCall(listener, takes_batch=False, threads=1),
            lambda error, messages: self.failures.append(error),
        )
        self.delivery = ConcurrentDelivery(context, invoker, cast(Any, self.sent_back))

    def deliver(self, offsets: Sequence[int]) -> None:
        messages = [pulled_message(offset, b"x") for offset in offsets]
        self.delivery.deliver(PullResult(PullStatus.FOUND, messages, 0, 0, 0), QUEUE, self.process_queue)

    async def idle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    @property
    def state(self) -> tuple[object, ...]:
        rates = self.statistics.of_topic("T")
        return (
            self.process_queue.count,
            self.process_queue.cached_bytes,
            self.offsets.read(QUEUE),
            sorted(self.sent_back.offsets),
            [str(failure) for failure in self.failures],
            (rates.consume_ok_tps, rates.consume_failed_tps, rates.consume_failed_msgs),
        )


OUTCOMES = ("nothing", "success", "later", "nonsense", "raises", "retry later", "waits", "waits and raises")


async def outcome(name: str, gate: asyncio.Event) -> object:
    match name:
        case "success":
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        case "later":
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        case "nonsense":
            return 7
        case "raises":
            raise ValueError("no")
        case "retry later":
            raise RetryLater(4)
        case "waits":
            await gate.wait()
        case "waits and raises":
            await gate.wait()
            raise ValueError("late")
    return None


async def states(script: list[list[str]], *, takes_context: bool) -> list[tuple[object, ...]]:
    """What can be seen while the listener does this: after each pull, and after the end of all waiting."""
    gate = asyncio.Event()
    names = [name for pull in script for name in pull]

    async def one(message: MessageExt) -> object:
        return await outcome(names[message.queue_offset], gate)

    async def two(message: MessageExt, context: ConsumeConcurrentlyContext) -> object:
        return await outcome(names[message.queue_offset], gate)

    bench = Bench(two if takes_context else one)
    seen, start = [], 0
    for pull in script:
        bench.deliver(range(start, start + len(pull)))
        start += len(pull)
        await bench.idle()
        seen.append(bench.state)
    gate.set()
    await bench.idle()
    seen.append(bench.state)
    bench.delivery.abandon()
    await bench.idle()
    return seen


@given(st.lists(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=8), min_size=1, max_size=3))
def test_a_listener_of_one_message_is_settled_as_one_that_takes_the_context(script: list[list[str]]):
    """The first is settled in runs, the second message by message."""

    async def both() -> None:
        quick = await states(script, takes_context=False)
        assert quick == await states(script, takes_context=True)

    asyncio.run(both())


async def test_what_ended_before_a_listener_waits_is_settled_by_then():
    gate = asyncio.Event()

    async def listener(message: MessageExt) -> None:
        if message.queue_offset == 3:
            await gate.wait()

    bench = Bench(listener, workers=1)
    bench.deliver(range(8))
    await bench.idle()
    assert bench.offsets.read(QUEUE) == 3
    assert bench.process_queue.count == 5
    gate.set()
    await bench.idle()
    assert bench.offsets.read(QUEUE) == 8
    assert bench.process_queue.count == 0


async def test_a_dropped_queue_gets_no_more_calls_and_no_offset():
    seen: list[int] = []
    gate = asyncio.Event()

    async def listener(message: MessageExt) -> None:
        seen.append(message.queue_offset)
        if message.queue_offset == 2:
            await gate.wait()

    bench = Bench(listener, workers=1)
    bench.deliver(range(8))
    await bench.idle()
    bench.process_queue.dropped = True
    gate.set()
    await bench.idle()
    assert seen == [0, 1, 2]
    assert bench.offsets.read(QUEUE) == 2


async def test_a_stopped_delivery_calls_no_more_for_messages_of_a_pull_that_began():
    seen: list[int] = []
    gate = asyncio.Event()

    async def listener(message: MessageExt) -> None:
        seen.append(message.queue_offset)
        if message.queue_offset == 1:
            await gate.wait()

    bench = Bench(listener, workers=1)
    bench.deliver(range(8))
    await bench.idle()
    stopping = asyncio.create_task(bench.delivery.stop(1000))
    await bench.idle()
    gate.set()
    await stopping
    assert seen == [0, 1]
    assert bench.offsets.read(QUEUE) == 2


async def test_a_long_pull_lets_other_tasks_run():
    turns: list[int] = []
    seen: list[int] = []

    async def listener(message: MessageExt) -> None:
        seen.append(message.queue_offset)

    async def other() -> None:
        while len(seen) < 3 * TURNS_AT_ONCE:
            turns.append(len(seen))
            await asyncio.sleep(0)

    bench = Bench(listener, workers=1)
    bench.deliver(range(3 * TURNS_AT_ONCE))
    await other()
    assert sorted({*turns}) == [0, TURNS_AT_ONCE, 2 * TURNS_AT_ONCE]


async def test_an_offset_store_that_fails_does_not_end_a_listener_that_waits(
    caplog: pytest.LogCaptureFixture,
):
    ended: list[int] = []

    async def listener(message: MessageExt) -> None:
        if message.queue_offset == 1:
            await asyncio.sleep(0)
        ended.append(message.queue_offset)

    bench = Bench(listener, workers=1)

    def update(queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        if offset == 1:
            raise OSError("disk full")

    bench.offsets.update = update  # type: ignore[method-assign]
    bench.deliver(range(3))
    await bench.idle()
    assert ended == [0, 1, 2]
    assert "disk full" in caplog.text
    assert bench.process_queue.count == 0


async def test_work_that_is_cancelled_while_it_waits_sees_the_cancellation():
    notes: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            notes.append("cancelled")
            await asyncio.sleep(0)
            notes.append("cleaned")
            raise

    async def watched() -> None:
        await call_before_each_suspend(work(), lambda: notes.append("waits"))

    task = asyncio.create_task(watched())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert notes == ["waits", "cancelled", "waits", "cleaned"]


async def test_what_a_pull_loop_does_after_a_delivery_comes_before_the_listener():
    """The next pull leaves in the next loop iteration: a busy listener must not hold it back."""
    order: list[str] = []

    async def listener(message: MessageExt) -> None:
        order.append("listener")

    bench = Bench(listener)
    bench.deliver([0])
    asyncio.get_running_loop().call_soon(order.append, "the next pull leaves")
    await bench.idle()
    assert order == ["the next pull leaves", "listener"]
