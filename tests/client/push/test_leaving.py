"""What shutdown does to listeners that run: they may end, for five seconds; the official consumer cancels them."""

import asyncio

import pytest
from pocketmq.client import MessageExt, PushConsumer

from client_waits import committed, consuming, send
from waiting import until


@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("kind", ["coroutine", "plain"])
async def test_a_listener_that_runs_at_shutdown_ends_and_its_message_is_acknowledged(
    namesrv_addr: str, orderly: bool, kind: str
) -> None:
    await send(namesrv_addr, "T", 1, queue_id=0)
    loop, begun, go_on, ended = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event(), []

    async def waits(message: MessageExt) -> None:
        begun.set()
        await go_on.wait()
        ended.append(message.body)

    def in_a_thread(message: MessageExt) -> None:
        asyncio.run_coroutine_threadsafe(waits(message), loop).result()

    consumer = consuming(namesrv_addr, waits if kind == "coroutine" else in_a_thread, orderly=orderly)
    async with consumer:
        await begun.wait()
        leaving = asyncio.create_task(consumer.shutdown())
        await until(lambda: consumer._closed)
        go_on.set()
        await leaving
    assert ended == [b"0"]
    assert (await committed(namesrv_addr, "g", "T"))[0] == 1


async def test_the_official_behaviour_is_a_setting(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 1, queue_id=0)
    begun = asyncio.Event()

    async def never_ends(message: MessageExt) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with consuming(namesrv_addr, never_ends, await_termination_millis_when_shutdown=0):
        await begun.wait()
    assert (await committed(namesrv_addr, "g", "T"))[0] in (None, 0)


async def test_a_message_that_was_read_by_iterating_holds_nothing_up(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 1, queue_id=0)
    async with (
        asyncio.timeout(4),  # less than a listener may take
        PushConsumer("g", namesrv_addr=namesrv_addr, start="first", subscription={"T": "*"}) as consumer,
    ):
        async for _ in consumer:
            await consumer.shutdown()
    assert (await committed(namesrv_addr, "g", "T"))[0] in (None, 0)
