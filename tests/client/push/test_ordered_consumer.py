"""Ordered consumption: order within a queue, pauses, manual commit, dead letters, hand-over between members."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import MessageExt, MessageQueue, Producer, PullConsumer, SuspendQueue
from pocketmq.client.delivery import ordered_delivery
from pocketmq.client.push import push_queues
from pocketmq.client.push.push_queues import PushQueues
from pocketmq.client.rebalancing.process_queue import ProcessQueue
from pocketmq.client.values.listener_returns import ConsumeOrderlyContext, ConsumeOrderlyStatus
from pocketmq.testing import LoggedRequest
from pocketmq.testing.faults.faults import Faults

from client_waits import Seen, consuming, send
from waiting import until


@asynccontextmanager
async def listening(
    namesrv_addr: str,
) -> AsyncIterator[tuple[PushQueues, MessageQueue, ProcessQueue, asyncio.Event]]:
    """A consumer whose listener waits for the event: its queues, and the one that the listener works on."""
    going_on = asyncio.Event()

    async def listener(message: MessageExt) -> None:
        await going_on.wait()

    async with consuming(namesrv_addr, listener, orderly=True) as consumer:
        queues = consumer._queues
        await until(lambda: any(state.count for state in queues.table.values()))
        queue, state = next(item for item in queues.table.items() if item[1].count)
        await until(lambda: queues._ordered and queues._ordered.consume_lock(state).locked())
        yield queues, queue, state, going_on


async def test_an_offset_that_cannot_be_read_after_the_lock_is_asked_for_again(
    namesrv_addr: str, faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    """An ordered consumer reads it twice: the last owner may have committed before the lock was its own."""
    asked: Counter[str] = Counter()

    def is_second(request: LoggedRequest) -> bool:
        asked[request.fields["queueId"]] += 1
        return asked[request.fields["queueId"]] == 2

    seen = Seen()
    await send(namesrv_addr, "T", 8)
    faults.refuse(
        code="QUERY_CONSUMER_OFFSET", topic="T", response="SYSTEM_ERROR", where=is_second, times=None
    )
    async with consuming(namesrv_addr, seen, orderly=True, pull_time_delay_mills_when_exception=10):
        await until(lambda: len(seen.bodies) == 8)
    assert caplog.text.count("Failed to query offset from offset store") == 4


async def test_a_queue_is_released_only_once_its_listener_ended(
    namesrv_addr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then no other member may lock it (official removeUnnecessaryMessageQueue)."""
    monkeypatch.setattr(push_queues, "RELEASE_WAIT_SECONDS", 0.01)
    await send(namesrv_addr, "T", 1)
    async with listening(namesrv_addr) as (queues, queue, state, going_on):
        assert not await queues.release(queue, state)
        assert (state.locked, state.try_unlock_times) == (True, 1)
        going_on.set()
        await until(lambda: not state.count)
        assert await queues.release(queue, state)
        assert not state.locked


async def test_a_failing_offset_store_stops_no_queue(
    namesrv_addr: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The offset that it did not accept is part of the next one."""
    monkeypatch.setattr(ordered_delivery, "FAILURE_PAUSE_MS", 1)
    seen = Seen()
    async with consuming(namesrv_addr, seen, orderly=True, subscription={}) as consumer:
        update, failures = consumer._queues.offsets.update, iter([OSError("disk full")])

        def failing(queue: MessageQueue, offset: int, **options: bool) -> None:
            for error in failures:
                raise error
            update(queue, offset, **options)

        await send(namesrv_addr, "T", 1)
        consumer.subscribe("T")
        await until(lambda: seen.bodies)
        monkeypatch.setattr(consumer._queues.offsets, "update", failing)
        await send(namesrv_addr, "T", 3, queue_id=0)
        await until(lambda: len(seen.bodies) == 4)
    assert sorted(seen.bodies) == [b"0", b"0", b"1", b"2"]
    assert "could not settle messages" in caplog.text


async def test_a_queue_whose_offset_is_corrected_is_not_taken_again_before_it_is_released(
    namesrv_addr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the release would forget the new offset, and unlock the new lock."""
    await send(namesrv_addr, "T", 8)
    async with listening(namesrv_addr) as (queues, queue, state, going_on):
        queues._instance.spawn(queues.correct_offset(queue, state, 1), "correction")
        await until(lambda: state.dropped)
        await queues.rebalance()
        assert queues.table[queue] is state
        going_on.set()
        await until(lambda: queues.table.get(queue) not in (None, state))
        assert queues.table[queue].start_offset == 1
        assert queues.table[queue].locked


async def test_a_suspended_queue_repeats_and_keeps_its_order(namesrv_addr: str, producer: Producer) -> None:
    seen: list[tuple[int, int]] = []

    async def listener(message: MessageExt) -> None:
        seen.append((message.queue_offset, message.reconsume_times))
        if message.queue_offset == 3 and message.reconsume_times < 2:
            raise SuspendQueue(20)

    await producer.send("T", b"x", queue_id=None)
    for _ in range(6):
        await producer.send("T", b"x", queue_id=0)
    async with consuming(namesrv_addr, listener, orderly=True):
        await until(lambda: len(seen) == 9)
    repeated = [entry for entry in seen if entry[0] == 3]
    assert repeated == [(3, 0), (3, 1), (3, 2)]
    in_queue_0 = list(dict.fromkeys(offset for offset, _ in seen))
    assert in_queue_0 == sorted(in_queue_0)


async def test_without_tries_left_a_message_goes_to_the_dead_letters_and_the_queue_continues(
    node: Node, namesrv_addr: str, producer: Producer
) -> None:
    seen: list[bytes] = []

    async def listener(message: MessageExt) -> None:
        seen.append(message.body)
        if message.body == b"bad":
            raise SuspendQueue(10)

    await producer.send("T", b"first")
    for body in (b"good", b"bad", b"better"):
        await producer.send("T", body, queue_id=1)
    async with consuming(namesrv_addr, listener, orderly=True, max_reconsume_times=2):
        await until(lambda: b"better" in seen and node.broker.store.max_offset("%DLQ%g", 0) == 1)
    assert seen.count(b"bad") == 3


async def test_without_auto_commit_the_offset_moves_with_commit_alone(namesrv_addr: str) -> None:
    seen: list[tuple[int, int]] = []

    async def listener(message: MessageExt, context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        context.auto_commit = False
        seen.append((message.queue_id, message.queue_offset))
        if message.queue_offset == 4:
            return ConsumeOrderlyStatus.COMMIT
        return ConsumeOrderlyStatus.SUCCESS

    await send(namesrv_addr, "T", 28)
    async with consuming(namesrv_addr, listener, orderly=True):
        await until(lambda: len(seen) == 28)
    async with PullConsumer("g", namesrv_addr=namesrv_addr) as puller:
        for queue in await puller.queues("T"):
            assert await puller.committed(queue) == 5
