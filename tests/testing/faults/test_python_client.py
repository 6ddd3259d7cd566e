"""What our own client does under each effect: with `pocketmq.client`, as a user's code would."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from pocketmq.client import Producer, PullConsumer, PushConsumer
from pocketmq.client.errors import ClientError, SendFailed
from pocketmq.testing import PASS, LoggedRequest, RocketMQ

from waiting import until

SEND = "SEND_MESSAGE_V2"


@pytest.fixture
async def producer(one: RocketMQ) -> AsyncIterator[Producer]:
    """Tries each send once."""
    async with Producer(
        "shop", namesrv_addr=one.namesrv_addr, retry_times_when_send_failed=0, send_msg_timeout=30_000
    ) as started:
        yield started


def texts(one: RocketMQ, topic: str) -> list[str]:
    return [message.text for message in one.messages(topic)]


async def test_an_answer_cut_in_its_middle_is_no_answer(one: RocketMQ) -> None:
    orders = one.topic("orders", queues=1)
    one.send(orders, "x" * 2000)
    async with PullConsumer("g", namesrv_addr=one.namesrv_addr) as consumer:
        [queue] = await consumer.queues(orders)
        one.faults.disconnect(code="PULL_MESSAGE", within_body=True)
        with pytest.raises(ClientError):
            await consumer.pull(queue, 0)
        assert len((await consumer.pull(queue, 0)).messages) == 1


async def test_a_duplicate_answer_does_no_harm(one: RocketMQ, producer: Producer) -> None:
    orders = one.topic("orders")
    one.faults.duplicate(code=SEND, times=3)
    for number in range(4):
        await producer.send(orders, str(number).encode())
    assert len(texts(one, orders)) == 4


async def test_a_function_may_hold_a_message_back_from_a_consumer(one: RocketMQ) -> None:
    orders, group = one.topic("orders", queues=1), one.group("g")
    released = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def hold(request: LoggedRequest) -> object:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(released.wait(), loop))
        return PASS

    one.faults.control("PULL_MESSAGE", hold, topic=orders)  # type: ignore[arg-type]
    seen: list[bytes] = []
    async with PushConsumer(
        group,
        lambda message: seen.append(message.body),
        namesrv_addr=one.namesrv_addr,
        subscription={orders: "*"},
    ):
        await one.requests.aio.wait_for(code="PULL_MESSAGE", topic=orders)
        one.send(orders, "x")
        async with PullConsumer("other", namesrv_addr=one.namesrv_addr) as other:
            [queue] = await other.queues(orders)
            assert len((await other.pull(queue, 0)).messages) == 1
        assert seen == []
        released.set()
        await until(lambda: seen == [b"x"])


async def test_a_name_server_that_refuses_is_asked_again(one: RocketMQ, producer: Producer) -> None:
    orders = one.topic("orders")
    rule = one.faults.refuse(code="GET_ROUTEINFO_BY_TOPIC", topic=orders, response="SYSTEM_BUSY", times=None)
    with pytest.raises(ClientError):
        await producer.send(orders, b"x", timeout_ms=200)
    assert rule.hits
    rule.remove()
    await producer.send(orders, b"x")


async def test_a_half_open_connection_is_a_timeout(one: RocketMQ, producer: Producer) -> None:
    orders = one.topic("orders")
    await producer.send(orders, b"x")
    rule = one.faults.network(half_open=True)
    with pytest.raises(SendFailed):
        await producer.send(orders, b"y", timeout_ms=100)
    rule.remove()
    await until_sent(producer, orders)
    assert texts(one, orders) == ["x", "z"]


async def until_sent(producer: Producer, topic: str) -> None:
    """The first sends may still meet the connection that is closed now."""
    for _ in range(20):
        try:
            await producer.send(topic, b"z", timeout_ms=30_000)
        except SendFailed:
            await asyncio.sleep(0.02)
        else:
            return
    raise AssertionError("no send came through")
