"""Cancelled at any await, a client leaves no task, no socket and no lock."""

import asyncio
import contextlib
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import Message, Producer, PullConsumer, Requester, tasks
from pocketmq.client.errors import RequestTimeout, SendTimedOut
from pocketmq.client.instance.instance import ClientInstance

from client_waits import Seen, consuming, locked, open_sockets, polling, send
from waiting import until

LONG = 30.0
Scenario = Callable[[str], Coroutine[Any, Any, None]]


@types.coroutine
def cancelled_at(work: Coroutine[Any, Any, None], step: int) -> Generator[Any, Any, bool]:
    """Run `work`, and cancel the task when it waits for the step-th time. True if it ended before that."""
    task = asyncio.current_task()
    assert task is not None
    count = 0
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            waited = work.send(value) if error is None else work.throw(error)
        except StopIteration:
            return count < step
        count += 1
        if count == step:
            task.get_loop().call_soon(task.cancel)
        value, error = None, None
        try:
            value = yield waited
        except BaseException as thrown:
            error = thrown


async def produce(namesrv_addr: str) -> None:
    async with Producer("p", namesrv_addr=namesrv_addr) as producer:
        await producer.send("T", b"1")
        await producer.send("T", b"2", queue_id=0)
        await asyncio.gather(*(producer.send_nowait("T", b"3") for _ in range(3)))
        await producer.send_oneway("T", b"4")
        await producer.send_batch([Message("T", b"5"), Message("T", b"6")])


async def ask(namesrv_addr: str) -> None:
    async with Requester("asks", namesrv_addr=namesrv_addr) as requester:
        # Where the machine is busy even the send is late.
        with contextlib.suppress(RequestTimeout, SendTimedOut):
            await requester.request("T", b"anybody?", timeout_ms=50)


async def consume(namesrv_addr: str, *, orderly: bool = False) -> None:
    seen = Seen()
    async with consuming(namesrv_addr, seen, orderly=orderly) as consumer:
        await consumer.wait_assigned()
        await consumer.lag()
        await until(lambda: seen.messages, LONG)


async def consume_in_order(namesrv_addr: str) -> None:
    await consume(namesrv_addr, orderly=True)


async def iterate(namesrv_addr: str) -> None:
    async with consuming(namesrv_addr) as consumer:
        async for _ in consumer:
            break
        await consumer.fetch(1, 10)


async def poll(namesrv_addr: str) -> None:
    async with polling(namesrv_addr) as consumer:
        while not await consumer.poll(100):
            pass
        await consumer.commit()


async def pull(namesrv_addr: str) -> None:
    async with PullConsumer("g", namesrv_addr=namesrv_addr) as consumer:
        for queue in await consumer.queues("T"):
            result = await consumer.pull(queue, await consumer.min_offset(queue))
            await consumer.commit(queue, result.next_offset)


@pytest.mark.parametrize(
    "scenario", [produce, ask, consume, consume_in_order, iterate, poll, pull], ids=lambda one: one.__name__
)
async def test_a_client_cancelled_at_any_await_leaves_nothing_behind(node: Node, scenario: Scenario) -> None:
    namesrv_addr = node.namesrv_address
    await send(namesrv_addr, "T", 4)
    before, sockets = asyncio.all_tasks(), open_sockets()
    ended = False
    step = 0
    while not ended and step < 60:
        step += 1
        await send(namesrv_addr, "T", 1)  # consumers of earlier steps may have committed everything
        task = asyncio.create_task(_cancelled(scenario(namesrv_addr), step))
        async with asyncio.timeout(LONG):
            try:
                ended = await task
            except asyncio.CancelledError:
                pass
        await until(lambda: asyncio.all_tasks() <= before, LONG)
        await until(lambda: open_sockets() <= sockets, LONG)
        assert not ClientInstance.by_loop.get(asyncio.get_running_loop()), f"step {step}"
        await until(lambda: not locked(node), LONG)
    assert step > 5


async def _cancelled(work: Coroutine[Any, Any, None], step: int) -> bool:
    return await cancelled_at(work, step)


# -- several loops, the wrong time


async def test_two_loops_have_two_clients_even_of_one_instance_name(namesrv_addr: str) -> None:
    async def send_one() -> int:
        async with Producer("p", namesrv_addr=namesrv_addr, instance_name="one") as producer:
            return (await producer.send("T", b"x", queue_id=0)).queue_offset

    async with Producer("p", namesrv_addr=namesrv_addr, instance_name="one") as producer:
        first = (await producer.send("T", b"x", queue_id=0)).queue_offset
        second = await asyncio.to_thread(asyncio.run, send_one())
        third = (await producer.send("T", b"x", queue_id=0)).queue_offset
    assert (second, third) == (first + 1, first + 2)


async def test_a_listener_that_cannot_be_cancelled_does_not_keep_its_consumer(
    namesrv_addr: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tasks, "CANCEL_TIMEOUT_SECONDS", 0.05)
    await send(namesrv_addr, "T", 1)
    called, released = asyncio.Event(), asyncio.Event()

    async def stubborn(message: object) -> None:
        called.set()
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    for orderly in (False, True):
        called.clear()
        async with asyncio.timeout(30):
            async with consuming(
                namesrv_addr,
                stubborn,
                group=f"g{orderly}",
                orderly=orderly,
                await_termination_millis_when_shutdown=0,
            ):
                await called.wait()
    assert caplog.text.count("does not end although it was cancelled") == 2
    released.set()
    await asyncio.sleep(0)
