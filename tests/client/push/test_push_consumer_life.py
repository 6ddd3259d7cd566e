"""The life of a push consumer: broadcasting, requests of tools, shutdown, wrong use."""

import asyncio
from pathlib import Path

import pytest
from pocketmq.broker.node import Node
from pocketmq.client import MessageExt, MessageModel, PushConsumer
from pocketmq.protocol.requests.to_client import ConsumeMessageDirectly

from client_waits import Seen, consuming, send
from waiting import until, until_it_says


async def test_broadcasting_members_get_everything_and_keep_their_offsets_in_a_file(
    namesrv_addr: str, local_offsets: Path
) -> None:
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
    assert (local_offsets / client_id / "g" / "offsets.json").exists()
    async with member("one", again):
        await send(namesrv_addr, "T", 4)  # one a queue: what is older would come before
        await until(lambda: len(again.messages) >= 4)
    assert len(again.messages) == 4


async def test_a_tool_makes_the_consumer_handle_one_message_and_reads_its_running_info(node: Node) -> None:
    seen = Seen()
    await send(node.namesrv_address, "T", 1)
    async with consuming(node.namesrv_address, seen) as consumer:
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


async def test_waiting_for_an_assignment_of_no_queue_ends_at_once(namesrv_addr: str) -> None:
    for topics in ({}, {"Nowhere": "*"}):
        async with PushConsumer("g", Seen(), namesrv_addr=namesrv_addr, subscription=topics) as consumer:
            await consumer.wait_assigned(10_000)
            assert consumer.assignment() == []


@pytest.mark.parametrize("model", [MessageModel.CLUSTERING, MessageModel.BROADCASTING])
async def test_lag_is_the_number_of_messages_this_member_has_not_consumed(
    namesrv_addr: str, model: MessageModel
) -> None:
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
