"""The life of a push consumer: restarted servers, broadcasting, requests of tools, shutdown, wrong use."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pocketmq.broker.node import Node
from pocketmq.client.producing.producer import Producer
from pocketmq.client.push.push_consumer import PushConsumer
from pocketmq.client.values.message import MessageExt
from pocketmq.protocol.bodies.client import MessageModel
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.to_client import ConsumeMessageDirectly

from client_waits import Seen, consuming, make_node, open_sockets, send
from ports import fixed_port
from waiting import WAIT_SECONDS, until, until_it_says


async def test_consumption_continues_after_broker_and_name_server_restart(tmp_path: Path) -> None:
    ports = fixed_port(), fixed_port()
    node = make_node(tmp_path / "store", port=ports[0], namesrv_port=ports[1])
    await node.start()
    namesrv_addr = node.namesrv_address
    await send(namesrv_addr, "T", 4)
    seen = Seen()
    reconnected: list[str] = []
    options: dict[str, Any] = {"on_reconnect": reconnected.append, "pull_time_delay_mills_when_exception": 50}
    async with consuming(namesrv_addr, seen, **options):
        await until(lambda: len(seen.messages) == 4)
        await node.stop()
        node = make_node(tmp_path / "store", port=ports[0], namesrv_port=ports[1])
        await node.start()
        await send(namesrv_addr, "T", 8)
        await until(lambda: len({message.message_id for message in seen.messages}) == 12)
    await node.stop()
    assert reconnected


async def test_broadcasting_members_get_everything_and_keep_their_offsets_in_a_file(
    namesrv_addr: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCKETMQ_CLIENT_LOCAL_OFFSET_STORE_DIR", str(tmp_path / "offsets"))
    await send(namesrv_addr, "T", 1)

    def member(name: str, seen: Seen) -> PushConsumer:
        return consuming(namesrv_addr, seen, message_model=MessageModel.BROADCASTING, instance_name=name)

    first, second, again = Seen(), Seen(), Seen()
    async with member("one", first) as one, member("two", second) as two:
        await one.wait_assigned()
        await two.wait_assigned()
        await send(namesrv_addr, "T", 20)
        await until(lambda: len(first.messages) == 21 and len(second.messages) == 21)
        client_id = one.client_id
    assert (tmp_path / "offsets" / client_id / "g" / "offsets.json").exists()
    async with member("one", again):
        await send(namesrv_addr, "T", 4)  # one a queue: what is older would come before
        await until(lambda: len(again.messages) >= 4)
    assert len(again.messages) == 4


async def test_a_tool_makes_the_consumer_handle_one_message_and_reads_its_running_info(node: Node) -> None:
    seen = Seen()
    await send(node.namesrv_address, "T", 1)
    async with PushConsumer(
        "g", seen, namesrv_addr=node.namesrv_address, subscription={"T": "*"}
    ) as consumer:
        await until(lambda: seen.messages)
        member = node.broker.membership.consumers.find("g", consumer.client_id)
        assert member is not None
        question = ConsumeMessageDirectly(
            consumer_group="g", client_id=consumer.client_id, msg_id=seen.messages[0].offset_message_id
        )
        result = await consumer._running.connections.call_for_body(node.broker_address, question)
        assert b'"consumeResult":"CR_SUCCESS"' in result
        info = await consumer._queues.running_info()
    assert len(seen.messages) == 2
    assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
    assert info.properties["PROP_CONSUMEORDERLY"] == "false"
    assert {queue.topic for queue in info.mq_table} == {"T", "%RETRY%g"}
    assert info.status_table["T"].consume_ok_tps > 0


async def test_callbacks_get_queues_without_the_namespace(namesrv_addr: str) -> None:
    assigned: list[MessageQueue] = []
    async with Producer("p", namesrv_addr=namesrv_addr, namespace="N") as producer:
        await producer.send("T", b"x")
    async with consuming(namesrv_addr, Seen(), namespace="N", on_assigned=assigned.extend) as consumer:
        await until(lambda: len(assigned) == 4)
        assert assigned == consumer.assignment()
    assert {queue.topic for queue in assigned} == {"T"}


async def test_waiting_for_an_assignment_of_no_queue_ends_at_once(namesrv_addr: str) -> None:
    for topics in ({}, {"Nowhere": "*"}):
        async with PushConsumer("g", Seen(), namesrv_addr=namesrv_addr, subscription=topics) as consumer:
            await consumer.wait_assigned(10_000)
            assert consumer.assignment() == []


@pytest.mark.parametrize("model", [MessageModel.CLUSTERING, MessageModel.BROADCASTING])
async def test_lag_is_the_number_of_messages_this_member_has_not_consumed(
    namesrv_addr: str, model: MessageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCKETMQ_CLIENT_LOCAL_OFFSET_STORE_DIR", str(tmp_path / "offsets"))
    await send(namesrv_addr, "T", 5, queue_id=1)
    going_on = asyncio.Event()

    async def listener(message: MessageExt) -> None:
        await going_on.wait()

    async with PushConsumer(
        "g", listener, namesrv_addr=namesrv_addr, subscription={"T": "*"}, message_model=model
    ) as consumer:
        await consumer.wait_assigned()
        # A new topic is read from its start, but a broadcasting member does not count older messages.
        before = 5 if model is MessageModel.CLUSTERING else 0
        assert list((await consumer.lag()).values()) == [0, before, 0, 0]
        await send(namesrv_addr, "T", 2, queue_id=1)
        assert (await consumer.lag())[consumer.assignment()[1]] == before + 2
        going_on.set()
        await until_it_says(consumer.lag, dict.fromkeys(consumer.assignment(), 0))


async def test_shutdown_and_cancellation_leave_no_task_and_no_socket(namesrv_addr: str) -> None:
    await send(namesrv_addr, "T", 4)
    before, sockets = asyncio.all_tasks(), open_sockets()

    hanging = asyncio.Event()

    async def hang(message: MessageExt) -> None:
        hanging.set()
        await asyncio.Event().wait()

    async def consume() -> None:
        async with consuming(namesrv_addr, hang, await_termination_millis_when_shutdown=0) as consumer:
            await consumer.wait_assigned()
            await asyncio.Event().wait()

    task = asyncio.create_task(consume())
    await asyncio.wait_for(hanging.wait(), WAIT_SECONDS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: open_sockets() <= sockets)  # the broker closes its side in the next turns of the loop
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize(("subscription", "warned"), [({}, True), ({"T": "*"}, False)])
async def test_a_consumer_without_subscription_is_warned_of(
    namesrv_addr: str, caplog: pytest.LogCaptureFixture, subscription: dict[str, str], warned: bool
) -> None:
    async with PushConsumer("g", Seen(), namesrv_addr=namesrv_addr, subscription=subscription):
        assert ("g subscribes to no topic and reads nothing" in caplog.text) is warned


async def test_run_consumes_until_it_is_cancelled(namesrv_addr: str) -> None:
    """Also a consumer that was not started: it is shut down at the end."""
    await send(namesrv_addr, "T", 4)
    seen = Seen()
    consumer = consuming(namesrv_addr, seen)
    running = asyncio.create_task(consumer.run())
    await until(lambda: len(seen.messages) == 4)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert repr(consumer) == "<PushConsumer 'g' shut down>"


async def test_run_ends_with_the_consumer(namesrv_addr: str) -> None:
    async with PushConsumer("g", Seen(), namesrv_addr=namesrv_addr, subscription={"T": "*"}) as consumer:
        running = asyncio.create_task(consumer.run())
        await asyncio.sleep(0)
        assert not running.done()
    await running
