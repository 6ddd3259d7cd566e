"""Groups that read in other ways: broadcasting, by an SQL92 expression, in order while queues change hands."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pocketmq.client import AdminClient, MessageModel, PushConsumer
from pocketmq.protocol.bodies.client import ConsumerData, HeartbeatData, SubscriptionData
from pocketmq.protocol.wire.command import RESPONSE_FLAG
from pocketmq.testing import RocketMQ
from pocketmq.testing.fixtures.one_test import LOCAL_OFFSETS

from frames_client import Raw, raw
from testing_acts import Texts, consuming
from waiting import until

from .planted import commit, found, pull, sent

SERVER = {"ledger": True, "newGroupsStartAt": "first", "enablePropertyFilter": True}


HEARTBEAT = 34


def join(client: Raw, client_id: str, *, model: str = "BROADCASTING", **subscription: Any) -> None:
    data = SubscriptionData(topic="orders", **({"sub_string": "*"} | subscription))
    consumer = ConsumerData("g", "CONSUME_PASSIVELY", model, "CONSUME_FROM_FIRST_OFFSET", [data])
    client.send(HEARTBEAT, body=HeartbeatData(client_id, [], [consumer]).encode())
    while not (answer := client.receive()).flag & RESPONSE_FLAG:  # the broker says that the group has changed
        pass
    assert answer.code == 0


def test_each_member_of_a_broadcasting_group_gets_everything_once(one: RocketMQ, topic: str) -> None:
    sent(one, topic, 2)
    with raw(one.server.broker_addr) as first, raw(one.server.broker_addr) as second:
        for client, name in ((first, "a"), (second, "b")):
            join(client, name)
            pull(client, topic, 0)
            pull(client, topic, 2)
    assert found(one.ledger.verdict(topic, "g")) == {}


def test_what_a_member_of_a_broadcasting_group_skips_is_lost_for_it(one: RocketMQ, topic: str) -> None:
    sent(one, topic, 4)
    with raw(one.server.broker_addr) as first, raw(one.server.broker_addr) as second:
        join(first, "a")
        join(second, "b")
        pull(first, topic, 0)
        pull(second, topic, 0, most=1)
        pull(second, topic, 2, most=1)
    verdict = one.ledger.verdict(topic, "g")
    assert found(verdict) == {"lost": [1]}
    [lost] = verdict.lost
    assert (lost.client_id, lost.requests[-1].fields["queueOffset"]) == ("b", "2")


def test_a_member_that_joins_later_lost_nothing_from_before(one: RocketMQ, topic: str) -> None:
    sent(one, topic, 2)
    with raw(one.server.broker_addr) as first, raw(one.server.broker_addr) as second:
        join(first, "a")
        pull(first, topic, 0)
        join(second, "b")
        pull(second, topic, 2)
        sent(one, topic, 1)
        for client in (first, second):
            pull(client, topic, 2)
            pull(client, topic, 3)
    assert found(one.ledger.verdict(topic, "g")) == {}


def test_what_one_member_got_twice_names_the_member(one: RocketMQ, topic: str) -> None:
    sent(one, topic, 1)
    with raw(one.server.broker_addr) as first, raw(one.server.broker_addr) as second:
        for client, name in ((first, "a"), (second, "b")):
            join(client, name)
            pull(client, topic, 0)
        pull(second, topic, 0)
    verdict = one.ledger.verdict(topic, "g")
    assert found(verdict) == {"duplicated": [0]}
    assert [request.client_id for request in verdict.duplicated[0].requests] == ["b", "b"]


def test_messages_that_an_sql_expression_leaves_out_are_not_lost(one: RocketMQ, topic: str) -> None:
    for price in ("5", "50", "500"):
        one.send(topic, price, queue_id=0, properties={"price": price})
    with raw(one.server.broker_addr) as client:
        join(client, "a", model="CLUSTERING", sub_string="price > 20", expression_type="SQL92", sub_version=1)
        commit(client, topic, 2)
    assert found(one.ledger.verdict(topic, "g")) == {"lost": [1], "unread": [2]}


def test_what_an_sql_expression_lets_through_is_clean(one: RocketMQ, client: Raw, topic: str) -> None:
    for price in ("5", "50", "500"):
        one.send(topic, price, queue_id=0, properties={"price": price})
    join(client, "a", model="CLUSTERING", sub_string="price > 20", expression_type="SQL92", sub_version=1)
    pull(client, topic, 0, sysFlag=0, subVersion=1, expressionType="SQL92")
    commit(client, topic, 3)
    assert found(one.ledger.verdict(topic, "g")) == {}
    histories = [one.ledger.message(message.message_id or "") for message in one.messages(topic)]
    assert [len(history.deliveries) for history in histories] == [0, 1, 1]


async def test_our_broadcasting_consumers_are_clean(
    one: RocketMQ, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOCAL_OFFSETS, str(tmp_path))
    sent(one, topic, 5)
    seen = [Texts(), Texts()]

    def member(number: int) -> PushConsumer:
        return consuming(
            one,
            "g",
            seen[number],
            topic,
            message_model=MessageModel.BROADCASTING,
            instance_name=str(number),
        )

    async with member(0), member(1):
        await until(lambda: [len(one) for one in seen] == [5, 5])
    assert found(await asyncio.to_thread(one.ledger.verdict, topic, "g")) == {}


async def test_our_pop_consumers_are_clean(one: RocketMQ) -> None:
    topic, group = one.topic("orders"), one.group("g")
    async with AdminClient(namesrv_addr=one.namesrv_addr) as admin:
        await admin.set_consume_mode(topic, group, "POP", cluster="DefaultCluster")
    for number in range(20):
        one.send(topic, str(number))
    seen = Texts()

    def member(name: str) -> PushConsumer:
        return consuming(one, group, seen, topic, client_rebalance=False, instance_name=name)

    async with member("a"), member("b"):
        await until(lambda: len(seen) == 20)
    assert one.requests.count(code="POP_MESSAGE") > 0
    assert found(await asyncio.to_thread(one.ledger.verdict, topic, group)) == {}


async def test_a_queue_that_changes_hands_in_order_has_a_verdict_of_its_own(one: RocketMQ) -> None:
    """The second member gets what the first one had in hand: delivered twice, but neither lost nor out of order."""
    topic, group = one.topic("orders", queues=1), one.group("g")
    for number in range(20):
        one.send(topic, str(number), queue_id=0)
    seen: dict[str, list[int]] = {"a": [], "b": []}

    def member(name: str) -> PushConsumer:
        async def consume(message: Any) -> None:
            seen[name].append(message.queue_offset)
            await asyncio.sleep(0.01)

        return consuming(one, group, consume, topic, orderly=True, instance_name=name)

    first = member("a")
    await first.start()
    async with member("b"):
        await until(lambda: len(seen["a"]) >= 4)
        await first.shutdown()
        await until(lambda: 19 in seen["b"])
    assert seen["a"] == list(range(len(seen["a"])))
    assert seen["b"] == list(range(seen["b"][0], 20)), "nothing is missing, and all in order"
    verdict = await asyncio.to_thread(one.ledger.verdict, topic, group)
    assert (verdict.lost, verdict.unread, verdict.out_of_order, verdict.offset_moved_back) == ([], [], [], [])
    assert {finding.queue_offset for finding in verdict.duplicated} <= set(seen["b"])
    for finding in verdict.duplicated:
        before, after = (request.client_id or "" for request in finding.requests)
        assert (before.endswith("@a"), after.endswith("@b")) == (True, True)
    broker = one.server.broker.config.broker_name
    assert verdict.by_queue()[broker, 0].duplicated == verdict.duplicated != []
