"""Readers that stop early: the next reader gets their unfinished messages, and none is lost."""

import asyncio
import contextlib

import pytest
from pocketmq.client import MessageExt
from pocketmq.client.push.message_stream import MessageStream

from client_waits import committed, consuming, send
from waiting import until


class Workers:
    """Listener calls with numbers for messages, a fixed number at once."""

    def __init__(self, stream: MessageStream, count: int, at_once: int) -> None:
        self._stream = stream
        self._numbers = iter(range(count))
        self.done: list[int] = []
        self.tasks = [asyncio.create_task(self._work()) for _ in range(at_once)]

    async def _work(self) -> None:
        for number in self._numbers:
            await self._stream(number)  # type: ignore[arg-type]
            self.done.append(number)

    async def cancel(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_a_loop_left_early_leaves_its_message_to_the_next_loop() -> None:
    stream = MessageStream()
    workers = Workers(stream, 3, 1)
    async for message in stream.messages():
        assert message == 0
        break
    with contextlib.suppress(ZeroDivisionError):
        async for message in stream.messages():
            assert message == 0
            raise ZeroDivisionError
    assert workers.done == []
    read = []
    async with asyncio.timeout(5):
        async for message in stream.messages():
            read.append(message)
            if len(read) == 3:
                stream.close()
    assert read == [0, 1, 2]
    await workers.cancel()


@pytest.mark.parametrize(("at_once", "wanted"), [(4, 3), (4, 10), (1, 10)])
async def test_a_cancelled_fetch_keeps_its_messages_for_the_next_one(at_once: int, wanted: int) -> None:
    stream = MessageStream(at_once)
    workers = Workers(stream, wanted - 1, at_once)
    fetch = asyncio.create_task(stream.fetch(wanted, 60_000))
    for _ in range(100):
        await asyncio.sleep(0)
    fetch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetch
    if wanted <= at_once:
        assert not workers.done
    assert sorted(await stream.fetch(wanted, 50)) == list(range(wanted - 1))  # type: ignore[type-var]
    await asyncio.gather(*workers.tasks)


async def test_two_simultaneous_fetches_share_the_messages() -> None:
    stream = MessageStream(4)
    workers = Workers(stream, 40, 4)
    async with asyncio.timeout(5):
        found = await asyncio.gather(stream.fetch(20, 4_000), stream.fetch(20, 4_000))
    assert sorted([*found[0], *found[1]]) == list(range(40))  # type: ignore[type-var]
    await asyncio.gather(*workers.tasks)


@pytest.mark.parametrize("orderly", [False, True])
async def test_the_next_loop_of_a_consumer_gets_the_unfinished_message(
    namesrv_addr: str, orderly: bool
) -> None:
    await send(namesrv_addr, "T", 1)
    async with consuming(namesrv_addr, orderly=orderly) as consumer:
        async with asyncio.timeout(10):
            seen: list[MessageExt] = []
            async for message in consumer:
                seen.append(message)
                break
            seen += await consumer.fetch(1, 5_000)
        assert [one.message_id for one in seen] == [seen[0].message_id] * 2
    assert sum(offset or 0 for offset in (await committed(namesrv_addr, "g", "T")).values()) == 1


async def test_an_unfinished_message_is_not_acknowledged_at_the_end(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 1)
    async with consuming(namesrv_addr) as left:
        fetch = asyncio.create_task(left.fetch(5, 60_000))
        await until(lambda: left._stream is not None and left._stream.held)
        fetch.cancel()
    async with consuming(namesrv_addr) as next_one:
        assert len(await next_one.fetch(1, 10_000)) == 1
