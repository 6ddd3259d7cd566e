"""Listeners that raise, hang, are cancelled or return nonsense, and callbacks that raise: consumption continues."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pocketmq.client import MessageExt, PushConsumer, RetryLater

from client_waits import consuming, send
from waiting import until

LONG = 30.0
Behaviour = Callable[[], Any]


def raises() -> object:
    raise ValueError("no")


def raises_group() -> object:
    raise ExceptionGroup("no", [ValueError("one"), ValueError("two")])


def stops_iteration() -> object:
    raise StopAsyncIteration


async def waits_for_cancelled() -> object:
    gone = asyncio.get_running_loop().create_future()
    gone.cancel()
    return await gone


async def times_out() -> object:
    async with asyncio.timeout(0.001):
        await asyncio.Event().wait()


BEHAVIOURS: dict[str, Behaviour] = {
    "raises": raises,
    "raises a group": raises_group,
    "stops an iteration": stops_iteration,
    "waits for something cancelled": waits_for_cancelled,
    "times out": times_out,
    "returns a number": lambda: 7,
    "returns a class": lambda: ValueError,
}


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrent", "ordered"])
@pytest.mark.parametrize("name", BEHAVIOURS)
async def test_a_failed_message_is_delivered_again_and_does_not_delay_others(
    namesrv_addr: str, name: str, orderly: bool
) -> None:
    tries: list[int] = []
    bodies: list[bytes] = []
    errors: list[Exception] = []

    async def listener(message: MessageExt) -> object:
        if message.body == b"0" and message.reconsume_times == 0 and not tries:
            tries.append(message.queue_offset)
            returned = BEHAVIOURS[name]()
            return await returned if asyncio.iscoroutine(returned) else returned
        bodies.append(message.body)
        return None

    def on_error(error: Exception, messages: object) -> None:
        errors.append(error)
        raise RuntimeError("a callback that fails itself")

    await send(namesrv_addr, "T", 8)
    async with consuming(
        namesrv_addr,
        listener,
        orderly=orderly,
        suspend_current_queue_time_millis=10,
        on_error=on_error,
        on_reconnect=lambda address: raises(),
    ) as consumer:
        # A concurrent message is delivered again from the retry topic 10 s after its first try: not awaited here.
        wanted = {b"%d" % number for number in range(0 if orderly else 1, 8)}
        await until(lambda: set(bodies) == wanted, LONG)
        await until(lambda: not any(state.count for state in consumer._queues.table.values()), LONG)
    assert len(tries) == 1
    assert len(errors) == (0 if name.startswith("returns") else 1)


async def test_a_hanging_thread_delays_no_other_and_no_shutdown(namesrv_addr: str) -> None:
    released = threading.Event()
    bodies: list[bytes] = []

    def listener(message: MessageExt) -> None:
        if message.body == b"0":
            released.wait(60)
        bodies.append(message.body)

    await send(namesrv_addr, "T", 8)
    try:
        async with asyncio.timeout(LONG):
            async with consuming(namesrv_addr, listener, await_termination_millis_when_shutdown=0):
                await until(lambda: len(bodies) == 7, LONG)
    finally:
        released.set()


async def test_a_listener_may_end_its_own_consumer(namesrv_addr: str) -> None:
    ended = asyncio.Event()
    consumer: PushConsumer

    async def listener(message: MessageExt) -> None:
        await consumer.shutdown()
        ended.set()
        raise RetryLater

    await send(namesrv_addr, "T", 1)
    consumer = consuming(namesrv_addr, listener)
    await consumer.start()
    async with asyncio.timeout(LONG):
        await ended.wait()
