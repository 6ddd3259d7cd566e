"""The first sends of a producer, many at once: neither the topic's route nor a connection is known yet."""

import asyncio
from collections import Counter

import pytest
from pocketmq.client import MessageQueue, SendFailed, SendTimedOut
from pocketmq.client.connections import connection
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.requests.send import SendMessageReply, SendMessageV2
from pocketmq.protocol.wire.command import Command
from pocketmq.protocol.wire.schema import to_fields

from client_network import (
    BLACK_HOLE,
    NAMESRV,
    REFUSING,
    Answer,
    Network,
    broker,
    in_network,
    passed,
    producer,
    reply,
    timed,
)

ROUTE = GetRouteInfoByTopic.code


class Stored:
    """The bodies that each queue of the topic T got on brokers of a network, as they arrived."""

    def __init__(self, network: Network, *brokers: str, queues: int = 4) -> None:
        self.bodies: dict[str, list[int]] = {}
        network.cluster(*brokers, queues=queues)
        for name in brokers:
            network.hosts[f"{name}:1"] = broker({SendMessageV2.code: self._store})

    def _store(self, asked: Command) -> Answer:
        fields = asked.fields or {}
        queue = f"{fields['n']} {fields['e']}" if "n" in fields else fields["e"]
        self.bodies.setdefault(queue, []).append(int(asked.body or b""))
        stored = SendMessageReply(msg_id="0" * 32, queue_id=int(fields["e"]), queue_offset=0)
        return reply(to_fields(stored))

    def in_order(self) -> list[int]:
        """Everything that was stored; fails unless each queue got it in the order of the calls."""
        for bodies in self.bodies.values():
            assert bodies == sorted(bodies)
        return sorted(body for bodies in self.bodies.values() for body in bodies)


def kinds(results: list[object]) -> Counter[str]:
    return Counter(type(result).__name__ for result in results)


@pytest.mark.parametrize("way", ["send_nowait", "send", "send_oneway"])
@in_network
async def test_a_burst_is_stored_in_the_order_of_the_calls_after_one_question(
    network: Network, way: str
) -> None:
    stored, count = Stored(network, "a", "b"), 20_000 if way == "send_nowait" else 5_000
    network.delays[NAMESRV] = 0.5
    async with producer() as one:
        await asyncio.gather(*[getattr(one, way)("T", b"%d" % number) for number in range(count)])
    assert stored.in_order() == list(range(count))
    assert network.count(ROUTE) == 1
    assert Counter(network.connects) == {NAMESRV: 1, "a:1": 1, "b:1": 1}


@in_network
async def test_a_burst_needs_no_task_for_each_send(network: Network) -> None:
    network.cluster("a")
    async with producer() as one:
        sends = [one.send_nowait("T", b"1") for _ in range(1_000)]
        assert len(asyncio.all_tasks()) < 10
        await asyncio.gather(*sends)


@in_network
async def test_sends_with_a_sharding_key_keep_their_order_among_later_ones(network: Network) -> None:
    stored = Stored(network, "a")
    async with producer() as one:
        sends = [one.send_nowait("T", b"%d" % number, sharding_key="k") for number in range(2_000)]
        while not stored.bodies:  # some have left, others wait still
            await asyncio.sleep(0)
            sends.append(one.send_nowait("T", b"%d" % len(sends), sharding_key="k"))
        await asyncio.gather(*sends)
    assert len(stored.bodies) == 1
    assert len(stored.in_order()) > 2_000


@in_network
async def test_each_send_keeps_its_own_time_while_the_name_server_is_late(network: Network) -> None:
    stored = Stored(network, "a")
    network.delays[NAMESRV] = 2.0
    async with producer() as one:
        short = [one.send_nowait("T", b"1", timeout_ms=1_000) for _ in range(100)]
        long = [one.send_nowait("T", b"2") for _ in range(100)]
        seconds, failed = await timed(asyncio.gather(*short, return_exceptions=True))
        await asyncio.gather(*long)
    assert (seconds, kinds(failed)) == (pytest.approx(1.0), {"SendTimedOut": 100})
    assert stored.in_order() == [2] * 100


@in_network
async def test_a_broker_that_never_accepts_keeps_up_only_its_own_sends(network: Network) -> None:
    network.cluster("a", "b")
    network.hosts["b:1"] = BLACK_HOLE
    async with producer() as one:
        ends = {
            name: asyncio.gather(
                *[
                    one.send_nowait("T", b"1", queue=MessageQueue("T", name, 0), timeout_ms=2_000)
                    for _ in range(5_000)
                ],
                return_exceptions=True,
            )
            for name in ("a", "b")
        }
        seconds, sent = await timed(ends["a"])
        assert (seconds, kinds(sent)) == (pytest.approx(0.0), {"SendResult": 5_000})
        seconds, failed = await timed(ends["b"])
        assert (seconds, kinds(failed)) == (pytest.approx(2.0), {"SendTimedOut": 5_000})


@in_network
async def test_a_burst_to_a_broker_that_refuses_is_repeated_to_the_other_one(network: Network) -> None:
    stored = Stored(network, "a", "b")
    network.hosts["b:1"] = REFUSING
    async with producer() as one:
        await asyncio.gather(*[one.send_nowait("T", b"%d" % number) for number in range(2_000)])
    assert sorted(body for bodies in stored.bodies.values() for body in bodies) == list(range(2_000))


@in_network
async def test_a_future_that_is_cancelled_drops_only_its_send(network: Network) -> None:
    stored = Stored(network, "a")
    async with producer() as one:
        sends = [one.send_nowait("T", b"%d" % number) for number in range(100)]
        for send in sends[::2]:
            send.cancel()
        results = await asyncio.gather(*sends, return_exceptions=True)
    assert kinds(results) == {"CancelledError": 50, "SendResult": 50}
    assert stored.in_order() == list(range(1, 100, 2))


@in_network
async def test_a_topic_without_a_route_gives_each_send_its_own_error(network: Network) -> None:
    network.cluster("a")
    async with producer() as one:
        sends = [one.send_nowait("absent", b"1") for _ in range(1_000)]
        failures = await asyncio.gather(*sends, return_exceptions=True)
    assert {(type(failure), failure.code) for failure in failures} == {(SendFailed, 10005)}
    assert len({id(failure) for failure in failures}) == 1_000
    assert network.count(ROUTE) == 2  # the topic, and its template


@in_network
async def test_a_connection_full_of_requests_makes_a_burst_wait(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_CALLS", 100)
    stored = Stored(network, "a")
    network.delays["a:1"] = 0.1
    async with producer() as one:
        await asyncio.gather(*[one.send_nowait("T", b"%d" % number) for number in range(1_000)])
    assert stored.in_order() == list(range(1_000))


@in_network
async def test_shutdown_waits_for_queued_sends_no_longer_than_their_time(network: Network) -> None:
    network.hosts[NAMESRV] = BLACK_HOLE
    one = producer()
    await one.start()
    sends = [one.send_nowait("T", b"1", timeout_ms=500) for _ in range(100)]
    await passed(0.1)
    seconds, _ = await timed(one.shutdown())
    assert seconds == pytest.approx(0.4, abs=0.01)
    assert {type(send.exception()) for send in sends} == {SendTimedOut}


@in_network
async def test_a_shutdown_that_is_cancelled_ends_queued_sends_at_once(network: Network) -> None:
    network.hosts[NAMESRV] = BLACK_HOLE
    one = producer()
    await one.start()
    sends = [one.send_nowait("T", b"1") for _ in range(100)]
    leaving = asyncio.create_task(one.shutdown())
    await passed(0.1)
    leaving.cancel()
    seconds, failures = await timed(asyncio.gather(*sends, return_exceptions=True))
    assert (seconds, kinds(failures)) == (pytest.approx(0.0), {"SendFailed": 100})
