"""What every consumer of a group shows of its share: the queues it reads, how far it is in each, and what is behind."""

from collections.abc import Callable
from typing import Any

import pytest
from pocketmq.client import AssignmentTimeout, ClientError, LitePullConsumer, MessageQueue, PushConsumer

from client_waits import Seen, send
from waiting import until

QUEUES = [MessageQueue("T", "broker-a", number) for number in range(4)]


def push(**options: Any) -> PushConsumer:
    return PushConsumer("g", Seen(), start="first", **options)


def lite(**options: Any) -> LitePullConsumer:
    return LitePullConsumer("g", start="first", **options)


EVERY_CONSUMER = pytest.mark.parametrize("make", [push, lite])


@EVERY_CONSUMER
async def test_a_topic_subscribed_to_after_the_start_is_waited_for(
    namesrv_addr: str, make: Callable[..., Any]
) -> None:
    await send(namesrv_addr, "T", 4)
    async with make(namesrv_addr=namesrv_addr) as consumer:
        await consumer.wait_assigned()
        assert consumer.assignment() == []
        assert consumer.subscribe("T") is None
        await consumer.wait_assigned()
        assert consumer.assignment() == QUEUES


@EVERY_CONSUMER
async def test_a_share_that_does_not_come_is_a_client_error_and_a_timeout(make: Callable[..., Any]) -> None:
    async with make(namesrv_addr="127.0.0.1:1", subscription={"T": "*"}) as consumer:
        with pytest.raises(AssignmentTimeout, match=r"no share of T.* within 20 ms") as caught:
            await consumer.wait_assigned(timeout_ms=20)
    assert isinstance(caught.value, ClientError)
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.retriable


async def test_positions_and_lag_of_a_push_consumer_follow_what_is_consumed(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 8)
    async with push(namesrv_addr=namesrv_addr, subscription={"T": "*"}) as consumer:
        await until(lambda: consumer.positions() == dict.fromkeys(QUEUES, 2))
        assert await consumer.lag() == dict.fromkeys(QUEUES, 0)


async def test_positions_and_lag_of_a_lite_pull_consumer_follow_what_is_polled(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 8)
    async with lite(namesrv_addr=namesrv_addr, subscription={"T": "*"}) as consumer:
        await consumer.wait_assigned()
        assert consumer.positions() == dict.fromkeys(QUEUES, 0)
        assert await consumer.lag() == dict.fromkeys(QUEUES, 2)
        polled = 0
        while polled < 8:
            polled += len(await consumer.poll())
        assert consumer.positions() == dict.fromkeys(QUEUES, 2)
        await consumer.seek_to_begin(QUEUES[1])
        assert consumer.positions()[QUEUES[1]] == 0


async def test_queues_assigned_by_hand_show_their_positions_once_they_are_known(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 4)
    async with lite(namesrv_addr=namesrv_addr) as consumer:
        consumer.assign(QUEUES[:2])
        await consumer.wait_assigned()
        assert consumer.assignment() == QUEUES[:2]
        await until(lambda: list(consumer.positions()) == QUEUES[:2])
