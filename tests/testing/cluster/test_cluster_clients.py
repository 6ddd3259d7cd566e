"""What our own client does while a cluster changes: with `pocketmq.client`, as a user's code would."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from pocketmq.client import Message, Producer, PullConsumer, SendFailed, SendStatus
from pocketmq.testing import RocketMQCluster

from testing_acts import consuming
from waiting import until

POLL_MS = 100
"""How often the clients of these tests ask for routes."""


@pytest.fixture
async def cluster() -> AsyncIterator[RocketMQCluster]:
    async with RocketMQCluster(brokers=2, emulate="5") as cluster:
        cluster.grow("orders", queues=2)
        yield cluster


def producer_of(cluster: RocketMQCluster) -> Producer:
    return Producer("shop", namesrv_addr=cluster.namesrv_addr, poll_name_server_interval=POLL_MS)


def stored_in(cluster: RocketMQCluster, broker: str, topic: str) -> int:
    store = cluster.broker(broker).node.broker.store
    return cluster.call(lambda: sum(store.max_offset(topic, queue) for queue in range(8)))


async def test_a_producer_goes_on_with_the_other_broker_while_one_is_stopped(
    cluster: RocketMQCluster,
) -> None:
    async with producer_of(cluster) as producer:
        await producer.send("orders", b"x")
        await asyncio.to_thread(cluster.broker("b1").stop)
        before = stored_in(cluster, "b0", "orders")
        for _ in range(4):
            await producer.send("orders", b"x", timeout_ms=1000)
        assert stored_in(cluster, "b0", "orders") >= before + 4
        await asyncio.to_thread(cluster.broker("b1").start)
        before = stored_in(cluster, "b1", "orders")

        async def reaches_b1() -> bool:
            await producer.send("orders", b"x")
            return stored_in(cluster, "b1", "orders") > before

        for _ in range(100):
            if await reaches_b1():
                break
            await asyncio.sleep(0.02)
        else:
            raise AssertionError("the started broker gets no message")


async def test_a_slow_broker_answers_late_and_a_healed_one_at_once(cluster: RocketMQCluster) -> None:
    cluster.broker("b1").stop()
    async with producer_of(cluster) as producer:
        await producer.send("orders", b"x")
        cluster.broker("b0").slow(0.2)
        begun = time.monotonic()
        await producer.send("orders", b"x")
        assert time.monotonic() - begun >= 0.2
        cluster.broker("b0").slow(1000)
        with pytest.raises(SendFailed):
            await producer.send("orders", b"x", timeout_ms=100)
        cluster.broker("b0").slow(0)
        await producer.send("orders", b"x")


async def test_a_consumer_reads_the_slave_while_its_master_is_stopped() -> None:
    async with RocketMQCluster(brokers=1, slaves=1, emulate="5") as cluster:
        cluster.grow("orders", queues=1)
        async with producer_of(cluster) as producer:
            for number in range(3):
                await producer.send("orders", str(number).encode())
        cluster.wait_replicated()
        cluster.broker("b0").stop()
        async with PullConsumer("readers", namesrv_addr=cluster.namesrv_addr) as consumer:
            [queue] = await consumer.queues("orders")
            found = await consumer.pull(queue, 0)
        assert [message.body for message in found.messages] == [b"0", b"1", b"2"]


async def test_a_running_consumer_sees_a_topic_grow(cluster: RocketMQCluster) -> None:
    seen: set[tuple[str, int]] = set()
    async with consuming(
        cluster,
        "readers",
        lambda message: seen.add((message.broker_name, message.queue_id)),
        "orders",
        poll_name_server_interval=POLL_MS,
    ):
        added = await asyncio.to_thread(cluster.add_broker)
        await asyncio.to_thread(cluster.grow, "orders", 4)
        wanted = {(name, queue) for name in ("b0", "b1", added.name) for queue in range(4)}
        async with producer_of(cluster) as producer:
            for _ in range(36):
                await producer.send("orders", b"x")
        await until(lambda: seen == wanted)


async def test_clients_reach_both_sides_of_a_partition(cluster: RocketMQCluster) -> None:
    async with producer_of(cluster) as producer:
        cluster.partition(["b0"], ["n0"])
        for _ in range(4):
            await producer.send("orders", b"x")
        await until(lambda: stored_in(cluster, "b1", "orders") >= 1)
        cluster.heal()
        async with producer_of(cluster) as other:
            for _ in range(4):
                await other.send("orders", b"x")
    assert stored_in(cluster, "b0", "orders") >= 2


async def test_clients_of_a_cluster_that_stops_get_errors_and_hold_nothing_up() -> None:
    cluster = await asyncio.to_thread(RocketMQCluster(brokers=2).start)
    cluster.grow("orders")
    seen: list[bytes] = []
    async with (
        producer_of(cluster) as producer,
        consuming(cluster, "readers", lambda message: seen.append(message.body), "orders"),
    ):
        await producer.send("orders", b"x")
        await until(lambda: seen)
        await asyncio.to_thread(cluster.stop)
        with pytest.raises(SendFailed):
            await producer.send("orders", b"x", timeout_ms=200)


async def test_timed_and_delayed_messages_outlive_a_kill() -> None:
    async with RocketMQCluster(brokers=1, emulate="5", messageDelayLevel="1s") as cluster:
        cluster.grow("orders", queues=1)
        broker = cluster.broker("b0")
        async with Producer("shop", namesrv_addr=cluster.namesrv_addr) as producer:
            await producer.send(Message("orders", b"timed", delay=timedelta(milliseconds=300)))
            await producer.send(Message("orders", b"level", delay_level=1))
        broker.kill()
        broker.start()
        await until(lambda: stored_in(cluster, "b0", "orders") == 2)


async def test_rules_and_the_request_log_outlive_a_restart(cluster: RocketMQCluster) -> None:
    rule = cluster.faults.refuse(code="SEND_MESSAGE_V2", broker="b0", response="NO_PERMISSION", times=None)
    cluster.broker("b0").kill()
    cluster.broker("b0").start()
    async with producer_of(cluster) as producer:
        for _ in range(4):
            try:
                await producer.send("orders", b"x")
            except SendFailed:
                pass
    assert {request.broker for request in rule.hits} == {"b0"}
    assert stored_in(cluster, "b0", "orders") == 0
    assert {request.broker for request in cluster.requests.find(code="SEND_MESSAGE_V2")} == {"b0", "b1"}


@pytest.mark.parametrize("emulate", ["4.9", "5"])
async def test_a_synchronous_master_waits_for_its_slave_also_after_both_were_killed(emulate: str) -> None:
    async with RocketMQCluster(brokers=1, slaves=1, emulate=emulate, brokerRole="SYNC_MASTER") as cluster:
        cluster.grow("orders", queues=1)
        cluster.wait_replicated()
        async with Producer("shop", namesrv_addr=cluster.namesrv_addr) as producer:
            await producer.send("orders", b"one")
            cluster.broker("b0").kill()
            cluster.broker("b0-1").kill()
            cluster.broker("b0").start()
            cluster.broker("b0-1").start()
            cluster.wait_replicated()
            result = await producer.send("orders", b"two")
            assert result.status is SendStatus.SEND_OK
        cluster.wait_replicated()
        assert stored_in(cluster, "b0-1", "orders") == 2
