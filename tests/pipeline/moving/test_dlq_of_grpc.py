"""Dead letters of gRPC clients: attempts and origin, also after retries in a topic of their own, and the way back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pocketmq.pipeline.jobs.moving.dead_letters import group_of, origin_of
from pocketmq.testing import RocketMQ

from grpc_client import GrpcClient
from grpc_companion import announce, companion, given_up, hidden, received, sent
from pipeline.moving.dlq_runs import tables


@pytest.fixture
async def rocketmq() -> AsyncIterator[RocketMQ]:
    async with companion(virtual_time=True) as rocketmq:
        yield rocketmq


@pytest.fixture
async def client(rocketmq: RocketMQ) -> AsyncIterator[GrpcClient]:
    async with GrpcClient.connected(rocketmq.grpc_endpoint) as client:
        await announce(client)
        yield client


async def give_up(rocketmq: RocketMQ, client: GrpcClient, *, deliveries: int) -> None:
    """The group gives up on the next message after so many deliveries."""
    for number in range(deliveries):
        (message,) = await received(client)
        if number == deliveries - 1:
            assert (await client.ask(given_up(message))).status.code == 20000
        else:
            await client.ask(hidden(message, 1_000))
            await asyncio.to_thread(rocketmq.clock.advance, 60)


@pytest.mark.parametrize("deliveries", [1, 3])
async def test_attempts_and_origin_of_a_message_that_a_grpc_client_gave_up(
    rocketmq: RocketMQ, client: GrpcClient, tmp_path: Path, deliveries: int
) -> None:
    await client.ask(sent(b"hopeless"))
    await give_up(rocketmq, client, deliveries=deliveries)
    found = await asyncio.to_thread(tables, rocketmq, tmp_path)
    (row,) = found["groups"]
    assert (row["consumerGroup"], row["originTopic"], row["messages"]) == ("billing", "orders", 1)
    assert (row["leastAttempts"], row["mostAttempts"]) == (deliveries, deliveries)
    assert len((await asyncio.to_thread(tables, rocketmq, tmp_path, "--origin", "orders"))["messages"]) == 1
    found = await asyncio.to_thread(tables, rocketmq, tmp_path, "--send-back", "origin", "--dry-run")
    assert [(one["target"], one["messages"]) for one in found["sent"]] == [("orders", 1)]
    if deliveries > 1:  # before its first retry a group of gRPC clients has no retry topic that it reads
        await asyncio.to_thread(tables, rocketmq, tmp_path, "--send-back", "group")
        (again,) = await received(client)
        assert (again.body, again.system_properties.message_id) == (b"hopeless", "IDb'hopeless'")
        assert [one.text for one in await asyncio.to_thread(rocketmq.messages, "orders")] == ["hopeless"]


def test_groups_and_origins_of_names() -> None:
    existing = {"orders", "new_orders", "%RETRY%a_b"}
    assert group_of("%DLQ%a_b", existing) == ("a_b", None)
    assert group_of("%RETRY%a_b", existing) == ("a_b", None)
    assert group_of("%RETRY%billing_orders", existing) == ("billing", "orders")
    assert group_of("%RETRY%bil_ling_new_orders", existing) == ("bil_ling", "new_orders")
    assert group_of("%RETRY%billing+gone", existing) == ("billing", "gone")
    for stored in ("orders", "%RETRY%billing_orders", "%RETRY%billing+orders"):
        assert origin_of({"RETRY_TOPIC": stored}, "billing") == "orders"
    assert origin_of({"RETRY_TOPIC": "%RETRY%billing2"}, "billing") == "%RETRY%billing2"
    assert origin_of({}, "billing") is None
