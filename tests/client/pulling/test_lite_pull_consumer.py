"""A lite pull consumer against an embedded broker: poll, commit, seek, pause, assign, sharing."""

import time
from typing import Any

import pytest
from pocketmq.client import AdminClient, ClientError, MessageExt, MessageQueue, Producer, TopicConfig
from pocketmq.client.pulling.lite_pull_consumer import LitePullConsumer
from pocketmq.protocol.requests.offset import QueryConsumerOffset
from pocketmq.protocol.requests.pull import LitePullMessage

from client_network import NAMESRV, Network, broker, in_network, passed, reply
from client_waits import polling
from waiting import until


async def send(namesrv_addr: str, count: int, **options: Any) -> None:
    async with Producer("p", namesrv_addr=namesrv_addr) as producer:
        for number in range(count):
            await producer.send("T", b"%d" % number, tags="ab"[number % 2], **options)


async def polled(consumer: LitePullConsumer, count: int) -> list[MessageExt]:
    found: list[MessageExt] = []
    while len(found) < count:
        batch = await consumer.poll(5000)
        assert batch, f"{len(found)} of {count} messages arrived"
        found += batch
    return found


async def test_polled_messages_are_committed_and_the_next_member_continues_there(namesrv_addr: str) -> None:
    await send(namesrv_addr, 40)
    async with polling(namesrv_addr) as consumer:
        assert len(await polled(consumer, 40)) == 40
        await consumer.commit()
        assert {await consumer.committed(queue) for queue in consumer.assignment()} == {10}
    await send(namesrv_addr, 4)
    async with polling(namesrv_addr) as consumer:
        assert len(await polled(consumer, 4)) == 4
        assert await consumer.poll(50) == []


async def test_a_topic_created_later_is_read_within_seconds(namesrv_addr: str) -> None:
    async with polling(namesrv_addr) as consumer:
        await send(namesrv_addr, 2)
        assert {message.body for message in await polled(consumer, 2)} == {b"0", b"1"}


async def test_auto_commit_happens_with_a_later_poll(namesrv_addr: str) -> None:
    await send(namesrv_addr, 4)
    async with polling(namesrv_addr, auto_commit_interval_millis=1000) as consumer:
        await polled(consumer, 4)
        queue = consumer.assignment()[0]
        assert await consumer.committed(queue) in (None, 0)
        await consumer.poll(1000)
        await consumer.poll(1)
        assert await consumer.committed(queue) == 1


async def test_seek_goes_back_and_forward_within_the_queue(namesrv_addr: str) -> None:
    await send(namesrv_addr, 40)
    async with LitePullConsumer("g", namesrv_addr=namesrv_addr, start="first") as consumer:
        queue = MessageQueue("T", "broker-a", 1)
        consumer.assign([queue])
        await polled(consumer, 10)
        await consumer.seek(queue, 7)
        assert [message.queue_offset for message in await polled(consumer, 3)] == [7, 8, 9]
        await consumer.seek_to_begin(queue)
        assert (await polled(consumer, 10))[0].queue_offset == 0
        await consumer.seek_to_end(queue)
        assert await consumer.poll(50) == []
        with pytest.raises(ClientError, match="Seek offset illegal, seek offset = 11, min offset = 0"):
            await consumer.seek(queue, 11)
        with pytest.raises(ClientError, match="not in assigned list"):
            await consumer.seek(MessageQueue("T", "broker-a", 2), 0)


async def test_a_time_is_turned_into_an_offset(namesrv_addr: str) -> None:
    await send(namesrv_addr, 4)
    queue = MessageQueue("T", "broker-a", 0)
    async with LitePullConsumer("g", namesrv_addr=namesrv_addr) as consumer:
        consumer.assign([queue])
        assert await consumer.offset_for_timestamp(queue, 1) == 0
        assert await consumer.offset_for_timestamp(queue, round(time.time() * 1000) + 60_000) == 1


async def test_a_paused_queue_returns_nothing_until_it_is_resumed(namesrv_addr: str) -> None:
    await send(namesrv_addr, 1, queue_id=2)
    queue = MessageQueue("T", "broker-a", 2)
    async with LitePullConsumer(
        "g", namesrv_addr=namesrv_addr, broker_suspend_max_time_millis=100
    ) as consumer:
        consumer.assign([queue])
        assert len(consumer.assignment()) == 1
        await polled(consumer, 1)
        consumer.pause([queue])
        await send(namesrv_addr, 2, queue_id=2)
        first = await consumer.poll(300)
        consumer.resume([queue])
        assert len(first) + len(await polled(consumer, 2 - len(first))) == 2


async def test_tags_are_filtered_in_both_modes(namesrv_addr: str) -> None:
    await send(namesrv_addr, 40)
    async with polling(namesrv_addr, subscription={"T": "a"}) as consumer:
        assert {message.tags for message in await polled(consumer, 20)} == {"a"}
    async with LitePullConsumer("h", namesrv_addr=namesrv_addr, start="first") as consumer:
        consumer.assign(await consumer.queues("T"), expressions={"T": "b"})
        assert {message.tags for message in await polled(consumer, 20)} == {"b"}


@pytest.mark.slow
async def test_members_share_the_queues(namesrv_addr: str) -> None:
    await send(namesrv_addr, 1)
    shares: list[tuple[str, int, int]] = []

    def changed(topic: str, known: set[MessageQueue], mine: set[MessageQueue]) -> None:
        shares.append((topic, len(known), len(mine)))

    async with polling(namesrv_addr, on_queues_changed=changed) as one:
        await until(lambda: len(one.assignment()) == 4)
        async with polling(namesrv_addr) as two:
            await until(lambda: len(one.assignment()) == 2 and len(two.assignment()) == 2)
        await until(lambda: len(one.assignment()) == 4)
    assert shares == [("T", 4, 4), ("T", 4, 2), ("T", 4, 4)]


async def test_subscribe_and_assign_exclude_each_other(namesrv_addr: str) -> None:
    async with polling(namesrv_addr) as consumer:
        with pytest.raises(ClientError, match="mutually exclusive"):
            consumer.assign([MessageQueue("T", "broker-a", 0)])


async def test_a_listener_for_a_topics_queues_is_called_for_changes_only_and_may_fail(
    admin: AdminClient, namesrv_addr: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def queues_become(count: int) -> None:
        for topic in ("Early", "Late"):
            await admin.update_topic(
                TopicConfig(topic_name=topic, read_queue_nums=count, write_queue_nums=count),
                cluster="DefaultCluster",
            )

    await queues_become(2)
    calls: list[tuple[str, int]] = []

    def listener(topic: str, queues: list[MessageQueue]) -> None:
        calls.append((topic, len(queues)))
        raise RuntimeError("no matter")

    consumer = LitePullConsumer("g", namesrv_addr=namesrv_addr, topic_metadata_check_interval_millis=20)
    consumer.on_topic_queues_changed("Early", listener)
    async with consumer:
        consumer.on_topic_queues_changed("Late", listener)
        await until(lambda: all(before for _, before in consumer._topic_listeners.values()))
        assert calls == []
        await queues_become(3)
        await until(lambda: len(calls) == 2)
        await queues_become(4)
        await until(lambda: len(calls) == 4)
    assert sorted(calls) == [("Early", 3), ("Early", 4), ("Late", 3), ("Late", 4)]
    assert caplog.text.count("the listener for the queues of Early failed") == 2


async def test_a_subscription_of_the_constructor_is_read_by_iteration(namesrv_addr: str) -> None:
    await send(namesrv_addr, 6)
    bodies = set()
    async with polling(namesrv_addr) as consumer:
        async for message in consumer:
            bodies.add(message.body)
            if len(bodies) == 6:
                break
        await consumer.commit()
        offsets = [await consumer.committed(queue) for queue in consumer.assignment()]
    assert sum(offset or 0 for offset in offsets) == 6


async def test_a_seek_of_a_paused_queue_counts_at_once(namesrv_addr: str) -> None:
    await send(namesrv_addr, 5, queue_id=0)
    async with LitePullConsumer("g", namesrv_addr=namesrv_addr, start="first") as consumer:
        queue = next(queue for queue in await consumer.queues("T") if queue.queue_id == 0)
        consumer.assign([queue])
        await polled(consumer, 5)
        await consumer.commit()
        consumer.pause([queue])
        await consumer.seek_to_begin(queue)
        await consumer.commit()
        assert await consumer.committed(queue) == 0


@in_network
async def test_a_queue_does_not_wait_for_the_pulls_of_others(network: Network) -> None:
    network.cluster("b", queues=40)
    network.hosts["b:1"] = broker(
        {
            QueryConsumerOffset.code: lambda asked: reply({"offset": "0"}),
            LitePullMessage.code: lambda asked: None,
        }
    )
    async with LitePullConsumer("g", namesrv_addr=NAMESRV) as consumer:
        consumer.assign(await consumer.queues("T"))
        await passed(1)
        assert network.count(LitePullMessage.code) == 40
