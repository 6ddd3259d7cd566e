"""Waits for groups that pop: a message is consumed when it is acknowledged, not when it was handed out."""

import asyncio

import pytest
from pocketmq.testing import MessagesMissingError, RocketMQ

from grpc_client import GrpcClient
from grpc_companion import acked, announce, companion, given_up, handle_of, hidden, received, sent


async def not_consumed(mq: RocketMQ, count: int, total: int) -> None:
    with pytest.raises(
        MessagesMissingError, match=rf"^billing has not acknowledged {count} of {total} messages of orders"
    ):
        await mq.aio.wait_consumed("orders", "billing", timeout_seconds=0.05)
    with pytest.raises(
        MessagesMissingError, match=rf"^billing has not acknowledged {count} of {total} messages of orders"
    ):
        await mq.aio.wait_idle("billing", timeout_seconds=0.05)


async def test_received_and_not_acknowledged_is_not_consumed() -> None:
    async with companion() as mq, GrpcClient.connected(mq.grpc_endpoint) as client:
        await announce(client)
        for number in range(3):
            await client.ask(sent(b"%d" % number))
        messages = await received(client)
        assert len(messages) == 3
        await not_consumed(mq, 3, 3)
        assert mq.lag("orders", "billing") == 3
        await client.ask(acked([handle_of(messages[0]), handle_of(messages[1])]))
        await not_consumed(mq, 1, 3)
        await client.ask(acked([handle_of(messages[1]), handle_of(messages[0])]))  # once more: it counts once
        await not_consumed(mq, 1, 3)
        await client.ask(acked([handle_of(messages[2])]))
        await mq.aio.wait_consumed("orders", "billing")
        await mq.aio.wait_idle("billing")
        assert mq.lag("orders", "billing") == 0


async def test_a_message_that_waits_for_its_next_delivery_is_not_consumed() -> None:
    """Hidden for longer, then back in the retry topic, then given up."""
    async with companion(virtual_time=True) as mq, GrpcClient.connected(mq.grpc_endpoint) as client:
        await announce(client)
        await client.ask(sent(b"one"))
        [message] = await received(client)
        await client.ask(hidden(message, 60_000))
        await not_consumed(mq, 1, 1)
        await mq.clock.aio.advance("70s")
        with pytest.raises(
            MessagesMissingError, match=r"^billing has not consumed 1 of 1 messages of %RETRY%"
        ):
            await mq.aio.wait_consumed("orders", "billing", timeout_seconds=0.05)
        [again] = await received(client)
        with pytest.raises(
            MessagesMissingError, match=r"^billing has not acknowledged 1 of 1 messages of %RETRY"
        ):
            await mq.aio.wait_consumed("orders", "billing", timeout_seconds=0.05)
        await client.ask(given_up(again))
        await mq.aio.wait_consumed("orders", "billing")
        assert [letter.text for letter in mq.dead_letters("billing")] == ["one"]


async def test_what_a_test_popped_is_forgotten_with_it() -> None:
    async with companion() as mq, GrpcClient.connected(mq.grpc_endpoint) as client:
        await announce(client)
        mark = await asyncio.to_thread(mq.server.mark)
        await client.ask(sent(b"one"))
        assert len(await received(client)) == 1
        await asyncio.to_thread(mq.server.reset, mark)
        await mq.aio.wait_consumed("orders", "billing")
        assert mq.lag("orders", "billing") == 0


async def test_a_server_with_a_kept_store_still_knows_what_is_not_acknowledged(tmp_path) -> None:
    async with companion(store=tmp_path / "store") as mq, GrpcClient.connected(mq.grpc_endpoint) as client:
        await announce(client)
        await client.ask(sent(b"one"))
        [message] = await received(client)
    async with companion(store=tmp_path / "store") as mq, GrpcClient.connected(mq.grpc_endpoint) as client:
        await announce(client)
        await not_consumed(mq, 1, 1)
        await client.ask(acked([handle_of(message)]))
        await mq.aio.wait_consumed("orders", "billing")
