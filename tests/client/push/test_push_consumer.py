"""A push consumer against an embedded broker: shares, listeners, results, retries, offsets, shutdown."""

import asyncio

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import MessageQueue, Producer, PullConsumer, PushConsumer, RetryLater
from pocketmq.client.rebalancing import held_queues
from pocketmq.client.values.listener_returns import ConsumeConcurrentlyContext
from pocketmq.client.values.message import Message, MessageExt

from client_waits import Seen, committed, consuming, send, stored, total_lag
from waiting import until, until_it_says


async def test_every_message_reaches_the_listener_once(namesrv_addr: str) -> None:
    seen = Seen()
    await send(namesrv_addr, "T", 1)
    async with PushConsumer("g", seen, namesrv_addr=namesrv_addr, subscription={"T": "*"}) as consumer:
        await consumer.wait_assigned()
        assert len(consumer.assignment()) == 4
        await send(namesrv_addr, "T", 200, tags="t", keys="k")
        await until(lambda: len(seen.messages) >= 201)
        await until(lambda: not any(state.count for state in consumer._queues.table.values()))
        assert set((await consumer.lag()).values()) == {0}
    assert len(seen.messages) == 201
    last = seen.messages[-1]
    assert (last.topic, last.tags, last.keys, last.reconsume_times) == ("T", "t", "k", 0)


async def test_the_broker_has_the_offsets_after_shutdown_and_the_next_member_continues_there(
    namesrv_addr: str,
) -> None:
    await send(namesrv_addr, "T", 40)
    first = Seen()
    async with PushConsumer("g", first, namesrv_addr=namesrv_addr, subscription={"T": "*"}):
        await until(lambda: len(first.messages) == 40)
    assert await committed(namesrv_addr, "g", "T") == {0: 10, 1: 10, 2: 10, 3: 10}
    await send(namesrv_addr, "T", 4)
    second = Seen()
    async with PushConsumer("g", second, namesrv_addr=namesrv_addr, subscription={"T": "*"}):
        await until(lambda: len(second.messages) == 4)
        # One more to each queue, after any message that would be delivered a second time.
        await send(namesrv_addr, "T", 4, tags="marker")
        await until(lambda: [message.tags for message in second.messages].count("marker") == 4)
    assert len(second.messages) == 8


async def test_tags_with_the_same_hash_are_distinguished(namesrv_addr: str, producer: Producer) -> None:
    seen = Seen()
    for body, tags in ((b"no", "Aa"), (b"yes", "BB"), (b"no", "Aa"), (b"marker", "BB")):
        await producer.send("T", body, tags=tags, queue_id=0)
    async with PushConsumer("g", seen, namesrv_addr=namesrv_addr, subscription={"T": "BB"}):
        await until(lambda: b"marker" in seen.bodies)
    assert sorted(seen.bodies) == [b"marker", b"yes"]


async def test_a_failed_message_is_delivered_again_with_its_topic_and_counter(namesrv_addr: str) -> None:
    tries: list[tuple[str, str, int]] = []
    errors: list[Exception] = []

    async def listener(message: MessageExt) -> None:
        tries.append((message.topic, message.message_id, message.reconsume_times))
        if message.reconsume_times == 0:
            raise RetryLater(delay_level=1)

    await send(namesrv_addr, "T", 1)
    async with consuming(namesrv_addr, listener, on_error=lambda error, messages: errors.append(error)):
        await until(lambda: len(tries) == 2)
    assert [(topic, times) for topic, _, times in tries] == [("T", 0), ("T", 1)]
    assert tries[0][1] == tries[1][1]
    assert errors == []


async def dead_letters(namesrv_addr: str) -> list[bytes]:
    return sorted(bytes(record.body) for record in await stored(namesrv_addr, "%DLQ%g"))


async def test_a_message_without_tries_left_goes_to_the_dead_letters(namesrv_addr: str) -> None:
    async def listener(message: MessageExt) -> None:
        raise RetryLater(delay_level=-1)

    await send(namesrv_addr, "T", 3)
    async with PushConsumer("g", listener, namesrv_addr=namesrv_addr, subscription={"T": "*"}):
        await until_it_says(lambda: dead_letters(namesrv_addr), [b"0", b"1", b"2"])
    assert sum(offset or 0 for offset in (await committed(namesrv_addr, "g", "T")).values()) == 3


async def test_a_listener_that_raises_is_reported_and_its_message_sent_back(node: Node) -> None:
    errors: list[tuple[str, bytes]] = []

    async def listener(message: MessageExt) -> None:
        raise ValueError("no")

    await send(node.namesrv_address, "T", 1)

    def on_error(error: Exception, messages: list[MessageExt]) -> None:
        errors.append((str(error), messages[0].body))

    async with consuming(node.namesrv_address, listener, on_error=on_error):
        level_3 = 2  # the queue of delay level 3, 10 s: the first retry
        await until(lambda: node.broker.store.max_offset("SCHEDULE_TOPIC_XXXX", level_3) == 1)
    assert errors == [("no", b"0")]


async def test_a_batch_listener_gets_lists_and_acknowledges_a_part(
    node: Node, namesrv_addr: str, producer: Producer
) -> None:
    sizes: list[int] = []

    async def listener(messages: list[MessageExt], context: ConsumeConcurrentlyContext) -> None:
        sizes.append(len(messages))
        context.ack_index = 1
        context.delay_level_when_next_consume = -1

    await producer.send("T", b"x", queue_id=0)
    queue = MessageQueue("T", "broker-a", 1)
    await producer.send_batch([Message("T", b"%d" % n) for n in range(4)], queue=queue)
    async with consuming(namesrv_addr, batch_listener=listener, consume_message_batch_max_size=10):
        await until(lambda: node.broker.store.max_offset("%DLQ%g", 0) == 2)
    assert sorted(sizes) == [1, 4]


async def test_slow_coroutines_run_side_by_side_up_to_the_limit(namesrv_addr: str) -> None:
    running = peak = 0

    async def listener(message: MessageExt) -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.02)
        running -= 1

    await send(namesrv_addr, "T", 40)
    async with consuming(namesrv_addr, listener, consume_thread_min=7, consume_thread_max=7) as consumer:
        await consumer.wait_assigned()
        await until_it_says(lambda: total_lag(consumer), 0)
    assert peak == 7


async def test_pulling_stops_while_the_listener_hangs(namesrv_addr: str, producer: Producer) -> None:
    release = asyncio.Event()

    async def listener(message: MessageExt) -> None:
        await release.wait()

    for _ in range(300):
        await producer.send("T", b"x", queue_id=0 if _ else None)
    other = Seen()
    async with consuming(namesrv_addr, listener, pull_threshold_for_queue=50) as consumer:
        await until(lambda: max((state.count for state in consumer._queues.table.values()), default=0) > 50)
        async with consuming(
            namesrv_addr, other, group="other"
        ):  # reads all; so could the first one meanwhile
            await until(lambda: len(other.messages) == 300)
        cached = max(state.count for state in consumer._queues.table.values())
        assert cached <= 50 + 32
        release.set()
        await until_it_says(lambda: total_lag(consumer), 0)


async def test_a_suspended_consumer_pulls_nothing(namesrv_addr: str) -> None:
    """The held pull of each queue may still return its message; another group shows when the later ones are there."""
    seen, other = Seen(), Seen()
    await send(namesrv_addr, "T", 1)
    async with consuming(namesrv_addr, seen) as consumer, consuming(namesrv_addr, other, group="other"):
        await until(lambda: seen.messages and other.messages)
        consumer.suspend()
        for count in (5, 9, 13):
            await send(namesrv_addr, "T", 4)
            await until(lambda count=count: len(other.messages) == count)
        assert len(seen.messages) <= 5
        consumer.resume()
        await until(lambda: len(seen.messages) == 13)


async def test_a_topic_created_later_is_consumed_within_seconds(namesrv_addr: str) -> None:
    seen = Seen()
    async with PushConsumer("g", seen, namesrv_addr=namesrv_addr, subscription={"Later": "*"}) as consumer:
        await consumer.wait_assigned()
        await send(namesrv_addr, "Later", 3)
        await until(lambda: len(seen.messages) == 3)


async def test_a_topic_that_is_never_created_is_not_requested_every_second_for_ever(
    namesrv_addr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_queues, "TOPIC_SEARCHES", 2)
    async with PushConsumer("g", Seen(), namesrv_addr=namesrv_addr, subscription={"Never": "*"}) as consumer:
        await consumer.wait_assigned()
        queues = consumer._queues
        assert [await queues.rebalance() for _ in range(3)][-1], "the next round is due in 20 s"
        consumer.subscribe("Neither")
        assert not await queues.rebalance()


async def test_an_illegal_offset_is_corrected_to_the_brokers(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 8)
    seen = Seen()
    async with PushConsumer("g", seen, namesrv_addr=namesrv_addr, subscription={"T": "*"}):
        await until(lambda: len(seen.messages) == 8)  # now the broker knows the group
    async with PullConsumer("g", namesrv_addr=namesrv_addr) as puller:
        for queue in await puller.queues("T"):
            await puller.commit(queue, 1000)  # beyond the end
    seen = Seen()
    async with PushConsumer("g", seen, namesrv_addr=namesrv_addr, subscription={"T": "*"}) as consumer:
        await until_it_says(lambda: committed(namesrv_addr, "g", "T"), {0: 2, 1: 2, 2: 2, 3: 2})
        await until(lambda: len(consumer.assignment()) == 4)
        await send(namesrv_addr, "T", 4)
        await until(lambda: len(seen.messages) == 4)
