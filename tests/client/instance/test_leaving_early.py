"""Clients that leave at an awkward moment: during a rebalance, during their own start, or while sending traces."""

import asyncio
from typing import Any

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import ClientClosed, MessageModel, Producer, PullConsumer, PushConsumer, SendStatus
from pocketmq.client.connections.name_servers import NameServers
from pocketmq.client.hooks.trace_records import decode_traces
from pocketmq.client.instance.client import Client
from pocketmq.client.instance.instance import ClientInstance
from pocketmq.client.pulling.lite_pull_consumer import LitePullConsumer
from pocketmq.protocol.requests.membership import HeartBeat, UnregisterClient
from pocketmq.testing.faults.faults import Faults

from client_waits import Seen, consuming, locked, open_sockets, send, stored
from waiting import until

LONG = 30.0


# -- locks


async def test_a_lock_granted_while_its_member_leaves_is_released(node: Node, faults: Faults) -> None:
    """The broker has granted the lock, and the client has not received the answer."""
    await send(node.namesrv_address, "T", 4)
    answer_lost = faults.silence(code="LOCK_BATCH_MQ", execute=True)
    consumer = consuming(node.namesrv_address, Seen(), orderly=True)
    await consumer.start()
    await until(lambda: answer_lost.hits, LONG)
    assert locked(node)
    await consumer.shutdown()
    assert not locked(node)


async def test_a_lock_of_a_queue_whose_position_is_still_unknown_is_released(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(node.namesrv_address, "T", 4)
    asked = asyncio.Event()

    async def never(*_: object) -> int:
        asked.set()
        return await asyncio.get_running_loop().create_future()

    consumer = consuming(node.namesrv_address, Seen(), orderly=True)
    monkeypatch.setattr("pocketmq.client.push.push_queues.PushQueues.first_position", never)
    await consumer.start()
    await asyncio.wait_for(asked.wait(), LONG)
    assert locked(node)
    await consumer.shutdown()
    assert not locked(node)


async def test_a_member_that_left_requests_no_more_locks(node: Node) -> None:
    await send(node.namesrv_address, "T", 4)
    async with consuming(node.namesrv_address, Seen(), orderly=True) as consumer:
        await consumer.wait_assigned()
        locks = consumer._queues.locks
        queue = consumer.assignment()[0]
        await locks.unlock_all()
        assert not await locks.lock(queue)
        await locks.lock_all()
        assert not locked(node)


# -- heartbeats


@pytest.mark.parametrize("kind", ["producer", "consumer"])
async def test_a_group_is_unregistered_after_the_last_heartbeat_that_names_it(
    node: Node, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(node.namesrv_address, "T", 1)
    client: Client = Producer("p", namesrv_addr=node.namesrv_address, topics=("T",))
    if kind == "consumer":
        client = PushConsumer("g", Seen(), namesrv_addr=node.namesrv_address, subscription={"T": "*"})
    await client.start()
    instance = client._running
    call, order = instance.connections.call, list[str]()
    begun, released = asyncio.Event(), asyncio.Event()

    async def slow(address: str, request: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(request, HeartBeat):
            begun.set()
            await released.wait()
        if isinstance(request, HeartBeat | UnregisterClient):
            order.append(request.name)
        return await call(address, request, *arguments, **options)

    monkeypatch.setattr(instance.connections, "call", slow)
    beat = asyncio.create_task(instance.heartbeats.send())
    await asyncio.wait_for(begun.wait(), LONG)
    leaving = asyncio.create_task(client.shutdown())
    await until(lambda: not instance.groups, LONG)
    for _ in range(10):
        await asyncio.sleep(0)
    released.set()
    await leaving
    assert await beat
    assert order == ["HEART_BEAT", "UNREGISTER_CLIENT"]
    assert node.broker.membership.consumers.find("g", instance.client_id) is None


# -- starts


def clients(namesrv_addr: str) -> list[Client]:
    options = {"namesrv_addr": namesrv_addr, "instance_name": "shared"}
    return [
        Producer("p", enable_trace=True, topics=("T",), **options),
        PushConsumer("g", Seen(), enable_trace=True, subscription={"T": "*"}, **options),
        PushConsumer("o", Seen(), orderly=True, subscription={"T": "*"}, **options),
        LitePullConsumer("l", **options),
        PullConsumer("r", **options),
        broadcasting(namesrv_addr),
    ]


def broadcasting(namesrv_addr: str) -> PushConsumer:
    """Reads a file before anything else."""
    return consuming(
        namesrv_addr, Seen(), group="b", instance_name="shared", message_model=MessageModel.BROADCASTING
    )


@pytest.fixture
def slow_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for name servers takes a moment, as it does with an address server."""

    async def find(_: NameServers) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    monkeypatch.setattr(NameServers, "find_servers", find)


@pytest.mark.usefixtures("slow_start")
@pytest.mark.parametrize(
    "number", range(6), ids=["producer", "push", "ordered", "lite", "pull", "broadcasting"]
)
async def test_a_client_shut_down_at_any_step_of_its_start_leaves_nothing(node: Node, number: int) -> None:
    await send(node.namesrv_address, "T", 4)
    before, sockets = asyncio.all_tasks(), open_sockets()
    for steps in range(40):
        client = clients(node.namesrv_address)[number]
        starting = asyncio.create_task(client.start())
        for _ in range(steps):
            await asyncio.sleep(0)
        was_done = starting.done()
        async with asyncio.timeout(LONG):
            await client.shutdown()
            ended = (await asyncio.gather(starting, return_exceptions=True))[0]
        if steps and not was_done:
            assert isinstance(ended, ClientClosed | None), (steps, ended)
        await client.shutdown()
        await until(lambda: asyncio.all_tasks() <= before, LONG)
        await until(lambda: open_sockets() <= sockets, LONG)
        assert not ClientInstance.by_loop.get(asyncio.get_running_loop()), f"step {steps}"
        assert not locked(node)


@pytest.mark.usefixtures("slow_start")
async def test_a_client_is_started_once_even_at_the_same_moment(namesrv_addr: str) -> None:
    consumer = broadcasting(namesrv_addr)
    ends = await asyncio.gather(consumer.start(), consumer.start(), return_exceptions=True)
    await consumer.shutdown()
    assert sorted(type(end).__name__ for end in ends) == ["ClientClosed", "NoneType"]


async def test_a_client_shut_down_before_its_start_can_be_started(namesrv_addr: str) -> None:
    producer = Producer("p", namesrv_addr=namesrv_addr)
    await producer.shutdown()
    async with producer:
        sent = await producer.send("T", b"x")
    assert sent.status is SendStatus.SEND_OK


# -- traces


async def test_a_trace_batch_that_is_being_sent_at_the_end_is_not_lost(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(node.namesrv_address, "T", 1)
    async with Producer("p", namesrv_addr=node.namesrv_address, enable_trace=True) as producer:
        trace = producer._trace
        assert trace is not None
        leaving, released = asyncio.Event(), asyncio.Event()
        send_trace = trace._sender.send

        async def slow(*arguments: object, **options: object) -> object:
            leaving.set()
            await released.wait()
            return await send_trace(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(trace._sender, "send", slow)
        for number in range(10):
            await producer.send("T", b"%d" % number)
        await asyncio.wait_for(leaving.wait(), LONG)
        asyncio.get_running_loop().call_later(0.02, released.set)
    records = await stored(node.namesrv_address, "RMQ_SYS_TRACE_TOPIC")
    assert sum(len(decode_traces(bytes(record.body).decode())) for record in records) == 10
