"""The consumer that reads by offset: positions, waiting, tags, and other clients in the same instance."""

import asyncio

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import ClientError, LitePullConsumer, MessageQueue, PullConsumer, RouteNotFound

from client_waits import send
from waiting import until_it_says

LONG = 30.0


async def test_every_position_is_the_callers(namesrv_addr: str, reader: PullConsumer) -> None:
    await send(namesrv_addr, "T", 5, queue_id=0)
    queue = (await reader.queues("T"))[0]
    await until_it_says(lambda: reader.max_offset(queue), 5)
    assert await reader.min_offset(queue) == 0
    result = await reader.pull(queue, 1, max_count=2)
    assert [message.body for message in result.messages] == [b"1", b"2"]
    assert (result.next_offset, result.min_offset, result.max_offset) == (3, 0, 5)
    beyond = await reader.pull(queue, 99)
    assert (beyond.messages, beyond.next_offset) == ([], 5)
    stored_ms = result.messages[0].store_timestamp
    assert await reader.search_offset(queue, stored_ms - 60_000) == 0
    assert await reader.search_offset(queue, stored_ms + 60_000) == 5
    assert await reader.earliest_store_time(queue) <= stored_ms


async def test_committed_offsets_are_the_groups(namesrv_addr: str, reader: PullConsumer) -> None:
    await send(namesrv_addr, "T", 5, queue_id=0)
    empty = (await reader.queues("T"))[1]
    assert await reader.committed(empty) is None
    queue = (await reader.queues("T"))[0]
    await reader.pull(queue, 0)  # creates the group
    await reader.commit(queue, 3)
    async with PullConsumer("g", namesrv_addr=namesrv_addr) as other:
        assert await other.committed(queue) == 3
        assert {queue.queue_id: count for queue, count in (await other.lag("T")).items()} == {
            0: 2,
            1: 0,
            2: 0,
            3: 0,
        }


async def test_invalid_offsets_and_counts_are_refused(namesrv_addr: str, reader: PullConsumer) -> None:
    queue = MessageQueue("T", "broker-a", 0)
    with pytest.raises(ClientError, match=r"^offset < 0$"):
        await reader.pull(queue, -1)
    with pytest.raises(ClientError, match=r"^maxNums <= 0$"):
        await reader.pull(queue, 0, max_count=0)
    with pytest.raises(ClientError, match=r"^offset < 0$"):
        await reader.commit(queue, -1)
    async with LitePullConsumer("l", namesrv_addr=namesrv_addr) as lite:
        with pytest.raises(ClientError, match=r"^offset < 0$"):
            await lite.commit({queue: 3, MessageQueue("T", "broker-a", 1): -1})
        assert lite._queues.offsets.read(queue) < 0


async def test_a_pull_may_wait_for_its_message_and_tag(namesrv_addr: str, reader: PullConsumer) -> None:
    await send(namesrv_addr, "T", 1, queue_id=0, tags="a")
    queue = (await reader.queues("T"))[0]
    waiting = asyncio.create_task(reader.pull(queue, 1, expression="b", wait_ms=20_000))
    await asyncio.sleep(0.05)
    await send(namesrv_addr, "T", 1, queue_id=0, tags="b")
    async with asyncio.timeout(LONG):
        assert [message.tags for message in (await waiting).messages] == ["b"]
    with pytest.raises(ClientError, match="subscription exception"):
        await reader.pull(queue, 0, expression="||")


async def test_missing_queues_are_errors_and_a_reader_is_no_member(node: Node, reader: PullConsumer) -> None:
    with pytest.raises(RouteNotFound):
        await reader.queues("T")
    with pytest.raises(RouteNotFound):
        await reader.max_offset(MessageQueue("T", "no-such-broker", 0))
    assert node.broker.membership.consumers.find("g", "anybody") is None
