"""The ledger and the calls PullMessage and UpdateOffset: a pull delivers, an offset commit acknowledges."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pocketmq.grpc_endpoint import messages as m
from pocketmq.testing import RocketMQ

from grpc_client import GrpcClient
from grpc_companion import G, T, companion, sent

QUEUE = m.MessageQueue(topic=T, id=0)


@pytest.fixture
async def rocketmq() -> AsyncIterator[RocketMQ]:
    async with companion(ledger=True) as rocketmq:
        yield rocketmq


@pytest.fixture
async def client(rocketmq: RocketMQ) -> AsyncIterator[GrpcClient]:
    """Two messages are stored, `one` with the tag A and `two` with B."""
    async with GrpcClient.connected(rocketmq.grpc_endpoint) as client:
        await client.ask(sent(b"one", tag="A"))
        await client.ask(sent(b"two", tag="B"))
        yield client


async def pulled(client: GrpcClient, offset: int = 0, *, tags: str = "*") -> list[bytes]:
    request = m.PullMessageRequest(
        group=G,
        message_queue=QUEUE,
        offset=offset,
        filter_expression=m.FilterExpression(type=m.FilterType.TAG, expression=tags),
    )
    replies = await client.open("PullMessage", request).all()
    return [reply.message.body for reply in replies if reply.message is not None]


async def commit(client: GrpcClient, offset: int) -> m.Status:
    request = m.UpdateOffsetRequest(group=G, message_queue=QUEUE, offset=offset)
    status: m.Status = (await client.ask(request)).status
    return status


async def verdict(rocketmq: RocketMQ) -> Any:
    return await asyncio.to_thread(rocketmq.ledger.verdict, "orders", "billing")


async def history(rocketmq: RocketMQ, body: bytes) -> Any:
    return await asyncio.to_thread(rocketmq.ledger.message, f"ID{body!r}")


async def test_a_pull_delivers_and_an_offset_commit_acknowledges(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    assert await pulled(client) == [b"one", b"two"]
    assert (await verdict(rocketmq)).is_clean(), "delivered, not acknowledged"
    first = await history(rocketmq, b"one")
    assert (first.deliveries, first.acknowledged) == ([("billing", "test@1@0@a")], False)
    assert await commit(client, 1) == m.OK
    assert (await history(rocketmq, b"one")).acknowledged
    assert not (await history(rocketmq, b"two")).acknowledged
    (logged,) = rocketmq.requests.find(code="PullMessage")
    assert logged.reply_fields["messages"] == "2"


async def test_messages_that_the_offset_passed_without_a_pull_are_lost(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    """Only what the group wants: it pulls the tag A."""
    rocketmq.faults.silence(code="PullMessage", execute=True)
    swallowed = client.open(
        "PullMessage",
        m.PullMessageRequest(
            group=G, message_queue=QUEUE, filter_expression=m.FilterExpression(expression="A")
        ),
    )
    await client.ping()
    swallowed.cancel()
    assert [one.message_id for one in (await verdict(rocketmq)).unread] == ["IDb'one'"]
    await commit(client, 2)
    found = await verdict(rocketmq)
    assert [one.message_id for one in found.lost] == ["IDb'one'"]
    assert [one.name for one in found.lost[0].requests][-1] == "UpdateOffset"
    assert found.unread == []


async def test_a_message_that_is_pulled_twice_is_duplicated(rocketmq: RocketMQ, client: GrpcClient) -> None:
    await pulled(client)
    assert await pulled(client, 1) == [b"two"]
    found = await verdict(rocketmq)
    assert [one.message_id for one in found.duplicated] == ["IDb'two'"]
    assert [one.name for one in found.duplicated[0].requests] == ["PullMessage", "PullMessage"]


async def test_messages_that_are_pulled_backwards_are_out_of_order(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    assert await pulled(client, 1) == [b"two"]
    assert await pulled(client, tags="A") == [b"one"]
    found = await verdict(rocketmq)
    assert [one.message_id for one in found.out_of_order] == ["IDb'one'"]


async def test_a_commit_behind_the_one_before_is_an_offset_moved_back(
    rocketmq: RocketMQ, client: GrpcClient
) -> None:
    await pulled(client)
    for offset in (2, 1):
        assert await commit(client, offset) == m.OK
    found = await verdict(rocketmq)
    assert [(one.queue_id, one.queue_offset) for one in found.offset_moved_back] == [(0, 1)]
    assert [one.name for one in found.offset_moved_back[0].requests] == ["UpdateOffset", "UpdateOffset"]


async def test_a_refused_commit_acknowledges_nothing(rocketmq: RocketMQ, client: GrpcClient) -> None:
    await pulled(client)
    assert (await commit(client, -1)).code == m.Code.ILLEGAL_OFFSET
    rocketmq.faults.refuse(code="UpdateOffset", response="TOO_MANY_REQUESTS")
    assert (await commit(client, 2)).code == m.Code.TOO_MANY_REQUESTS
    assert not (await history(rocketmq, b"one")).acknowledged
    assert (await verdict(rocketmq)).offset_moved_back == []
