"""What flush waits for: sends of before, their repeats, and what waits for a batch."""

import asyncio

import pytest
from pocketmq.client import SendBufferFull
from pocketmq.client.producing import async_sends

from client_network import Network, in_network, passed, producer, timed


@in_network
async def test_flush_waits_for_the_sends_of_before_and_for_no_later_one(network: Network) -> None:
    network.cluster("b")
    async with producer() as sender:
        await sender.send("T", b"x")
        network.delays["b:1"] = 1.0
        before = [sender.send_nowait("T", b"x") for _ in range(3)]
        flush = asyncio.create_task(timed(sender.flush()))
        await passed(0.5)
        later = sender.send_nowait("T", b"x")
        assert await flush == (pytest.approx(1.0, abs=0.05), None)
        assert ([sent.done() for sent in before], later.done()) == ([True] * 3, False)


@pytest.mark.parametrize("batches", [False, True])
@in_network
async def test_flush_waits_for_repeats_and_for_what_waits_for_a_batch(
    network: Network, batches: bool
) -> None:
    network.cluster("a", "b")
    async with producer(auto_batch=batches, batch_max_delay_ms=30_000) as sender:
        await sender.send("T", b"x", queue_id=0, timeout_ms=1_000)
        network.delays["b:1"] = network.delays["a:1"] = 0.2
        sends = [sender.send_nowait("T", b"x") for _ in range(4)]
        network.drop("a:1")
        await sender.flush()
        assert all(sent.done() for sent in sends)
        await asyncio.gather(*sends, return_exceptions=True)


@in_network
async def test_sends_that_cannot_leave_yet_are_bounded_too(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one turn of the loop the first send asks for the route, and all others wait with it."""
    monkeypatch.setattr(async_sends, "MAX_CALLS", 50)
    network.cluster("b")
    async with producer() as sender:
        sends = [sender.send_nowait("T", b"x") for _ in range(50)]
        with pytest.raises(SendBufferFull, match="50 sends wait to leave"):
            sender.send_nowait("T", b"x")
        await sender.flush()
        await asyncio.gather(*sends, sender.send_nowait("T", b"x"))
