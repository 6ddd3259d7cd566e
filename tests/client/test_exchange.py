"""Whole exchanges by way of a broker: replies, namespaces, queues that the broker assigns, pops, other connections.

`conformance/clients/test_client_suite.py` runs the same on official brokers.
"""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from pocketmq.client import (
    AdminClient,
    LitePullConsumer,
    Message,
    Producer,
    PushConsumer,
    Requester,
    RetryLater,
)
from pocketmq.client.errors import RequestTimeout
from pocketmq.client.producing.transaction import LocalTransactionState, TransactionProducer
from pocketmq.client.values.message import MessageExt

import any_server
from client_certificates import SHOWS, TRUSTS
from client_waits import Seen, consuming, send
from waiting import until

CLUSTER = "DefaultCluster"
INVISIBLE_MS = 10_000
VERDICTS = {b"commit": LocalTransactionState.COMMIT_MESSAGE, b"drop": LocalTransactionState.ROLLBACK_MESSAGE}


@pytest.mark.parametrize("namespace", ["", "N"])
async def test_requests_get_their_replies(namesrv_addr: str, namespace: str) -> None:
    await send(namesrv_addr, f"{namespace}%T" if namespace else "T", 1)
    seen = Seen()
    async with (
        Producer("answers", namesrv_addr=namesrv_addr, namespace=namespace) as producer,
        Requester("asks", namesrv_addr=namesrv_addr, namespace=namespace) as requester,
    ):

        async def listener(message: MessageExt) -> None:
            await seen(message)
            if message.body == b"ask":
                await producer.reply(message, b"answer")

        async with consuming(namesrv_addr, listener, namespace=namespace) as consumer:
            await consumer.wait_assigned()
            reply = await requester.request("T", b"ask", timeout_ms=10_000)
            with pytest.raises(RequestTimeout) as raised:
                await requester.request("T", b"silence", timeout_ms=500)
    assert raised.value.code == 10006
    assert (reply.body, {message.topic for message in seen.messages}) == (b"answer", {"T"})


async def test_half_messages_within_a_namespace_end_by_their_verdict(namesrv_addr: str) -> None:
    await send(namesrv_addr, "N%T", 1)

    def execute(message: Message, arg: object) -> LocalTransactionState:
        return LocalTransactionState[arg]  # type: ignore[misc,no-any-return]

    seen = Seen()
    options = {"namesrv_addr": namesrv_addr, "namespace": "N"}
    async with (
        TransactionProducer("t", lambda message: LocalTransactionState.UNKNOW, **options) as producer,
        consuming(listener=seen, **options),
    ):
        await producer.send_in_transaction("T", b"drop", execute, "ROLLBACK_MESSAGE")
        sent = await producer.send_in_transaction("T", b"keep", execute, "COMMIT_MESSAGE")
        await until(lambda: b"keep" in seen.bodies)
    assert {message.topic for message in seen.messages} | {sent.result.queue.topic} == {"T"}
    assert b"drop" not in seen.bodies


async def test_a_transaction_without_a_verdict_ends_by_the_brokers_check(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 1)
    seen, checked = Seen(), set[bytes]()

    def execute(message: Message, arg: object) -> LocalTransactionState:
        if message.body == b"fails":
            raise ValueError(arg)
        return VERDICTS.get(message.body, LocalTransactionState.UNKNOW)

    def checker(message: MessageExt) -> LocalTransactionState:
        checked.add(message.body)
        return LocalTransactionState.COMMIT_MESSAGE

    async with (
        TransactionProducer("t", checker, namesrv_addr=namesrv_addr) as producer,
        consuming(namesrv_addr, seen),
    ):
        bodies = (b"commit", b"drop", b"open", b"fails")
        sent = [await producer.send_in_transaction("T", body, execute, "why") for body in bodies]
        await until(lambda: {b"commit", b"open", b"fails"} <= {*seen.bodies}, 60)
    assert [one.state.name for one in sent] == ["COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW", "UNKNOW"]
    assert checked == {b"open", b"fails"}
    assert b"drop" not in seen.bodies


async def test_a_timed_message_is_recalled(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 1)
    seen = Seen()
    async with Producer("p", namesrv_addr=namesrv_addr) as producer, consuming(namesrv_addr, seen):
        gone = await producer.send("T", b"gone", delay=timedelta(seconds=2))
        await producer.send("T", b"kept", delay=timedelta(seconds=3))
        assert gone.recall_handle is not None
        assert await producer.recall("T", gone.recall_handle) == gone.message_id
        await until(lambda: b"kept" in seen.bodies, 30)
    assert b"gone" not in seen.bodies


async def test_brokers_without_a_namespace_setting_ignore_the_namespace_field(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 1)
    seen = Seen()
    async with (
        Producer("p", namesrv_addr=namesrv_addr, namespace_v2="N") as producer,
        consuming(namesrv_addr, seen, namespace_v2="N"),
    ):
        await producer.send("T", b"hello")
        await until(lambda: b"hello" in seen.bodies)
    assert {message.topic for message in seen.messages} == {"T"}


async def test_one_name_in_two_namespaces_and_in_none_is_three_topics(namesrv_addr: str) -> None:
    for namespace in ("", "N1", "N2"):
        topic = f"{namespace}%T" if namespace else "T"
        async with Producer("p", namesrv_addr=namesrv_addr) as producer:
            await producer.send(topic, namespace or "none")
    for namespace in ("", "N1", "N2"):
        seen = Seen()
        async with consuming(namesrv_addr, seen, namespace=namespace) as consumer:
            await consumer.wait_assigned()
            await send(namesrv_addr, "T", 1, namespace=namespace)
            await until(lambda seen=seen: len(seen.bodies) == 2)  # type: ignore[misc]
        assert sorted(seen.bodies) == [b"0", namespace.encode() or b"none"]


def assigned(namesrv_addr: str, listener: object, **options: object) -> PushConsumer:
    """A member that leaves it to the broker which queues it pulls or pops."""
    return consuming(namesrv_addr, listener, client_rebalance=False, **options)  # type: ignore[arg-type]


async def test_members_share_the_queues_as_the_broker_says(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 1)
    one, other = Seen(), Seen()
    async with assigned(namesrv_addr, one) as first, assigned(namesrv_addr, other) as second:
        await until(lambda: len(first.assignment()) == 2 == len(second.assignment()))
        assert len({*first.assignment(), *second.assignment()}) == 4
        await send(namesrv_addr, "T", 40)
        await until(lambda: len({*one.bodies, *other.bodies}) == 40)
    assert min(len(one.messages), len(other.messages)) > 5


@pytest.mark.slow  # longer than the invisible time and its revival
async def test_popped_messages_are_gone_once_their_listener_succeeded(
    namesrv_addr: str, admin: AdminClient
) -> None:
    await send(namesrv_addr, "T", 1)
    await admin.set_consume_mode("T", "g", "POP", cluster=CLUSTER)
    seen = Seen()

    async def listener(message: MessageExt) -> None:
        await seen(message)
        if message.body == b"7" and message.reconsume_times == 0:
            raise RetryLater

    options = {"subscription": {"T": "a || b"}, "pop_invisible_time": INVISIBLE_MS}
    async with (
        Producer("p", namesrv_addr=namesrv_addr) as producer,
        assigned(namesrv_addr, listener, **options) as consumer,
    ):
        await until(consumer.assignment)
        for number in range(60):
            await producer.send("T", b"%d" % number, tags=("a", "b", "c")[number % 3])
        await until(lambda: seen.bodies.count(b"7") == 2, 30)
        await asyncio.sleep(1.5 * INVISIBLE_MS / 1000)  # what is not acknowledged is delivered again
        assert {queue.queue_id for queue in consumer.assignment()} == {-1}
        info = await admin.consumer_running_info("g", consumer.client_id)
    assert [one.wait_ack_count for one in info.mq_pop_table.values()] == [0]
    assert (len(seen.bodies), len(set(seen.bodies))) == (41, 40)
    assert [message.reconsume_times for message in seen.messages if message.body == b"7"] == [0, 1]
    assert {message.topic for message in seen.messages} == {"T"}


@pytest.mark.slow  # longer than the invisible time and its revival
async def test_a_popping_group_goes_back_to_pull_and_loses_nothing(
    namesrv_addr: str, admin: AdminClient
) -> None:
    await send(namesrv_addr, "T", 64)
    await admin.set_consume_mode("T", "g", "POP", cluster=CLUSTER)
    batches: list[list[bytes]] = []

    async def listener(messages: list[MessageExt]) -> None:
        batches.append([message.body for message in messages])

    async with assigned(
        namesrv_addr,
        None,
        batch_listener=listener,
        consume_message_batch_max_size=16,
        pop_invisible_time=INVISIBLE_MS,
    ) as consumer:
        await until(lambda: len({body for batch in batches for body in batch}) == 64)
        await asyncio.sleep(1.5 * INVISIBLE_MS / 1000)  # what is not acknowledged is delivered again
        assert sum(map(len, batches)) == 64
        assert max(map(len, batches)) > 1
        await admin.set_consume_mode("T", "g", "PULL", cluster=CLUSTER)
        await until(lambda: len(consumer.assignment()) == 4)
        async with Producer("p", namesrv_addr=namesrv_addr) as producer:
            await producer.send("T", b"pulled")
        await until(lambda: [b"pulled"] in batches)


WAYS: dict[str, dict[str, Any]] = {
    "vip": {"vip_channel_enabled": True},
    "heartbeat_v2": {"use_heartbeat_v2": True},
    "tls": {"use_tls": True},
    "certificates": {"use_tls": True, "tls_test_mode_enable": False, **TRUSTS, **SHOWS},
}


@pytest.mark.parametrize("way", WAYS)
async def test_an_exchange_by_another_way(namesrv_addr: str, way: str) -> None:
    if way == "certificates" and not any_server.CHECKS_CERTIFICATES:
        pytest.skip("the server's certificate is not one of certificates/; see test_tls.py")
    await send(namesrv_addr, "T", 1)
    seen, polled = Seen(), list[MessageExt]()
    options = {"namesrv_addr": namesrv_addr, **WAYS[way]}
    async with (
        Producer("p", **options) as producer,
        consuming(listener=seen, **options) as consumer,
        LitePullConsumer("l", start="first", **options) as lite,
    ):
        results = await asyncio.gather(*(producer.send("T", b"%d" % n, tags="t") for n in range(1, 40)))
        await until(lambda: len(seen.messages) == 40, 30)
        lite.subscribe("T", "t")
        async with asyncio.timeout(30):
            while len(polled) < 39:
                polled += await lite.poll(1_000)
        assert len(await consumer.lag()) == 4
    assert len({(result.queue, result.queue_offset) for result in results}) == 39
    assert sorted(seen.bodies) == sorted(b"%d" % n for n in range(40))
