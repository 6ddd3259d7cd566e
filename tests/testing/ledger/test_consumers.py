"""Clean runs of our own consumers have clean verdicts; retries are no duplicates."""

import asyncio

import pytest
from pocketmq.testing import EmbeddedServer, NotRunningError, RocketMQ

from testing_acts import consuming
from waiting import until

SERVER = {"ledger": True, "newGroupsStartAt": "first", "enablePropertyFilter": True}


async def test_deliveries_are_listed_with_their_times(one: RocketMQ, topic: str) -> None:
    billing, sent = one.group("billing"), one.send(topic, "order 17")
    seen: list[object] = []
    one.faults.delay(code="PULL_MESSAGE", topic=topic, seconds=0.2)
    async with consuming(one, billing, seen.append, topic):
        await until(lambda: seen)
    [delivery] = await asyncio.to_thread(one.ledger.deliveries)
    assert (delivery.group, delivery.queue.topic, delivery.offset) == (billing, topic, sent.queue_offset)
    assert delivery.delivered_ms - delivery.store_timestamp >= 200


@pytest.mark.parametrize("orderly", [False, True])
async def test_our_consumers_are_clean(one: RocketMQ, orders: str, orderly: bool) -> None:
    billing, seen = one.group("billing"), list[object]()
    for number in range(20):
        one.send(orders, str(number), queue_id=number % 4)
    async with consuming(one, billing, seen.append, orders, orderly=orderly):
        await until(lambda: len(seen) == 20)
    await asyncio.to_thread(one.ledger.assert_clean, orders, billing)
    await asyncio.to_thread(one.ledger.assert_all_clean)
    [first, *_] = one.messages(orders)
    history = await asyncio.to_thread(one.ledger.message, first.message_id or "")
    assert (len(history.deliveries), history.acknowledged) == (1, True)


def test_a_server_without_a_ledger_says_how_to_have_one() -> None:
    with EmbeddedServer() as server, pytest.raises(NotRunningError, match="ledger=True"):
        _ = server.ledger
