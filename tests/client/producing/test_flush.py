"""What flush waits for: sends of before, their repeats, and what waits for a batch."""

import asyncio

import pytest
from pocketmq.client import Producer, SendBufferFull
from pocketmq.client.producing import async_sends

from client_network import Network, broker, name_server, passed, route, timed


def cluster(*addresses: str) -> Network:
    """A name server with the topic T on these brokers."""
    network = Network()
    network.hosts["ns:1"] = name_server({"T": route({address: address for address in addresses})})
    for address in addresses:
        network.hosts[address] = broker()
    return network


def producer(*, auto_batch: bool = False) -> Producer:
    return Producer(
        "p", namesrv_addr="ns:1", client_ip="10.0.0.9", auto_batch=auto_batch, batch_max_delay_ms=30_000
    )


def test_flush_waits_for_the_sends_of_before_and_for_no_later_one() -> None:
    network = cluster("b:1")

    async def scenario() -> tuple[float, list[bool], bool]:
        async with producer() as sender:
            await sender.send("T", b"x")
            network.delays["b:1"] = 1.0
            before = [sender.send_nowait("T", b"x") for _ in range(3)]
            flush = asyncio.create_task(timed(sender.flush()))
            await passed(0.5)
            later = sender.send_nowait("T", b"x")
            seconds, _ = await flush
            return seconds, [sent.done() for sent in before], later.done()

    assert network.run(scenario) == (pytest.approx(1.0, abs=0.05), [True] * 3, False)


def test_flush_waits_for_repeats_and_for_what_waits_for_a_batch() -> None:
    network = cluster("a:1", "b:1")

    async def scenario() -> list[bool]:
        done = []
        for batches in (False, True):
            async with producer(auto_batch=batches) as sender:
                await sender.send("T", b"x", queue_id=0, timeout_ms=1_000)
                network.delays["b:1"] = network.delays["a:1"] = 0.2
                sends = [sender.send_nowait("T", b"x") for _ in range(4)]
                network.drop("a:1")
                await sender.flush()
                done += [sent.done() for sent in sends]
                await asyncio.gather(*sends, return_exceptions=True)
        return done

    assert network.run(scenario) == [True] * 8


def test_sends_that_cannot_leave_yet_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one turn of the loop the first send asks for the route, and all others wait with it."""
    monkeypatch.setattr(async_sends, "MAX_CALLS", 50)
    network = cluster("b:1")

    async def scenario() -> int:
        async with producer() as sender:
            sends = [sender.send_nowait("T", b"x") for _ in range(50)]
            with pytest.raises(SendBufferFull, match="50 sends wait to leave"):
                sender.send_nowait("T", b"x")
            await sender.flush()
            sends.append(sender.send_nowait("T", b"x"))
            return len(await asyncio.gather(*sends))

    assert network.run(scenario) == 51
