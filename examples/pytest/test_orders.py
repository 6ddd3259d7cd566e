"""Tests of the order service: each has a server that is empty, and names that no other test has."""

import asyncio
from collections.abc import Callable

import pytest
from pocketmq.client import Producer

from orders import Shop, billing, shipping

pytestmark = pytest.mark.asyncio


async def until(is_true: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not is_true():  # noqa: ASYNC110 - what the server has is no event of this loop
            await asyncio.sleep(0.005)


@pytest.mark.rocketmq(strict=True)  # every group has a clean verdict at the end
async def test_an_order_that_was_reserved_is_billed_once(rocketmq):
    orders, group = rocketmq.topic("orders"), rocketmq.group("billing")
    charged = []

    async def charge(number):
        charged.append(number)

    async with Shop(orders, {"book": 1}) as shop:
        assert await shop.place("17", "book")
        assert not await shop.place("18", "book")  # sold out: rolled back
        async with billing(orders, group, charge):
            await rocketmq.aio.wait_consumed(orders, group)

    assert charged == ["17"]
    assert rocketmq.half_messages == []


@pytest.mark.rocketmq(virtual_time=True)
async def test_a_verdict_that_was_lost_is_asked_for_later(rocketmq):
    orders = rocketmq.topic("orders")
    lost = rocketmq.faults.silence(code="END_TRANSACTION")
    async with Shop(orders, {"book": 1}) as shop:
        await shop.place("17", "book")
        await until(lambda: lost.hits)
        assert rocketmq.messages(orders) == []
        await rocketmq.clock.aio.advance("2m")  # the broker asks after a minute
        await until(lambda: rocketmq.messages(orders))


@pytest.mark.rocketmq(virtual_time=True)
async def test_a_payment_that_fails_is_tried_again_after_half_a_minute(rocketmq):
    orders, group = rocketmq.topic("orders"), rocketmq.group("billing")
    attempts = []

    async def charge(number):
        attempts.append(rocketmq.clock.now_ms())
        if len(attempts) == 1:
            raise ConnectionError("the bank is closed")

    rocketmq.send(orders, '{"number": "17"}')
    async with billing(orders, group, charge):
        await until(lambda: rocketmq.delayed)
        await rocketmq.clock.aio.advance("29s")
        assert len(attempts) == 1
        await rocketmq.clock.aio.advance("1s")
        await until(lambda: len(attempts) == 2)

    assert attempts[1] - attempts[0] == 30_000


@pytest.mark.rocketmq(virtual_time=True)
async def test_an_order_that_cannot_be_billed_is_a_dead_letter(rocketmq):
    orders, group = rocketmq.topic("orders"), rocketmq.group("billing")

    async def charge(number):
        raise ConnectionError("the bank is closed")

    rocketmq.send(orders, '{"number": "17"}')
    async with billing(orders, group, charge):
        for _ in range(2):
            await until(lambda: rocketmq.delayed)
            await rocketmq.clock.aio.advance_to_next()
        await until(lambda: rocketmq.dead_letters(group))

    [letter] = rocketmq.dead_letters(group)
    assert letter.text == '{"number": "17"}'


@pytest.mark.rocketmq(strict=True)
async def test_steps_of_an_order_are_shipped_in_order(rocketmq):
    steps, group = rocketmq.topic("steps"), rocketmq.group("shipping")
    shipped = []
    async with Producer("shop") as producer:
        for step in ("packed", "weighed", "sent"):
            for order in ("17", "18", "19"):
                await producer.send(steps, f"{order} {step}".encode(), sharding_key=order)
    async with shipping(steps, group, shipped.append):
        await rocketmq.aio.wait_consumed(steps, group)

    for order in ("17", "18", "19"):
        assert [text for text in shipped if text.startswith(order)] == [
            f"{order} packed",
            f"{order} weighed",
            f"{order} sent",
        ]


async def test_a_broker_that_is_busy_twice_is_asked_a_third_time(rocketmq):
    orders = rocketmq.topic("orders")
    busy = rocketmq.faults.refuse(code="SEND_MESSAGE_V2", topic=orders, response="SYSTEM_BUSY", times=2)
    async with Shop(orders, {"book": 1}) as shop:
        assert await shop.place("17", "book")
    assert len(busy.hits) == 2
    assert len(rocketmq.messages(orders)) == 1
