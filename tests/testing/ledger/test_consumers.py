"""Clean runs of our own consumers have clean verdicts; retries are no duplicates; a test can be strict."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pocketmq.client import PushConsumer
from pocketmq.testing import EmbeddedServer, NotRunningError, RocketMQ

SERVER = {"ledger": True, "newGroupsStartAt": "first", "enablePropertyFilter": True}


pytest_plugins = ["pytester"]


class Seen:
    """Counts what was consumed."""

    def __init__(self, wanted: int) -> None:
        self.count = 0
        self._wanted = wanted
        self.all = asyncio.Event()

    def __call__(self, message: Any) -> None:
        self.count += 1
        if self.count == self._wanted:
            self.all.set()


async def test_deliveries_are_listed_with_their_times(one: RocketMQ) -> None:
    orders, billing = one.topic("orders", queues=1), one.group("billing")
    sent = one.send(orders, "order 17")
    seen = Seen(1)
    one.faults.delay(code="PULL_MESSAGE", topic=orders, seconds=0.2)
    async with PushConsumer(billing, seen, namesrv_addr=one.namesrv_addr, subscription={orders: "*"}):
        await asyncio.wait_for(seen.all.wait(), 5)
    [delivery] = await asyncio.to_thread(one.ledger.deliveries)
    assert (delivery.group, delivery.queue.topic, delivery.offset) == (billing, orders, sent.queue_offset)
    assert delivery.delivered_ms - delivery.store_timestamp >= 200


async def is_clean(one: RocketMQ, make: Callable[..., PushConsumer], **words: Any) -> None:
    topic, group = one.topic("orders"), one.group("billing")
    for number in range(20):
        one.send(topic, str(number), queue_id=number % 4)
    seen = Seen(20)
    async with make(group, seen, namesrv_addr=one.namesrv_addr, subscription={topic: "*"}, **words):
        await asyncio.wait_for(seen.all.wait(), 5)
    await asyncio.to_thread(one.ledger.assert_clean, topic, group)
    await asyncio.to_thread(one.ledger.assert_all_clean)
    [first, *_] = one.messages(topic)
    history = await asyncio.to_thread(one.ledger.message, first.message_id or "")
    assert (len(history.deliveries), history.acknowledged) == (1, True)


async def test_a_push_consumer_is_clean(one: RocketMQ) -> None:
    await is_clean(one, PushConsumer)


async def test_an_ordered_consumer_is_clean(one: RocketMQ) -> None:
    await is_clean(one, PushConsumer, orderly=True)


def test_a_server_without_a_ledger_says_how_to_have_one() -> None:
    with EmbeddedServer() as server, pytest.raises(NotRunningError, match="ledger=True"):
        _ = server.ledger


def test_a_strict_test_fails_if_a_group_is_not_clean(pytester: pytest.Pytester) -> None:
    pytester.makeini(
        "[pytest]\naddopts = -p no:hypothesispytest\nasyncio_default_fixture_loop_scope = function\n"
    )
    pytester.makepyfile(
        """
        import pytest
        from pocketmq.protocol.requests.offset import UpdateConsumerOffset

        def commit_beyond(rocketmq):
            orders = rocketmq.topic("orders", queues=1)
            rocketmq.send(orders, "x")
            rocketmq.make_group("g")
            request = UpdateConsumerOffset(consumer_group="g", topic=orders, queue_id=0, commit_offset=1)
            rocketmq.server.exchange(request)
            return orders

        @pytest.mark.rocketmq(strict=True)
        def test_bad(rocketmq):
            commit_beyond(rocketmq)

        def test_without(rocketmq):
            commit_beyond(rocketmq)
            assert rocketmq.server.watched.ledger is None

        @pytest.mark.rocketmq(ledger=True)
        def test_ledger(rocketmq):
            [lost] = rocketmq.ledger.verdict(commit_beyond(rocketmq), "g").lost
            assert lost.queue_offset == 0

        @pytest.mark.rocketmq(strict="yes")
        def test_wrong(rocketmq):
            pass
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1, passed=2, errors=1)
    result.stdout.fnmatch_lines(["*not clean: group g, topic *"])
    result.stdout.fnmatch_lines(["*strict must be True or False, got 'yes'*"])
