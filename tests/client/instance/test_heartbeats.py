"""Heartbeats and the last word to many brokers, of which some are dead or silent: none waits for another."""

import asyncio

import pytest
from pocketmq.client.connections.pool import ConnectionPool
from pocketmq.client.instance.groups import GroupProducer, GroupTable
from pocketmq.client.instance.heartbeats import GRACE_SECONDS, Heartbeats
from pocketmq.client.instance.route_book import BrokerAddresses
from pocketmq.protocol.requests.membership import HeartBeat, UnregisterClient

from client_network import BLACK_HOLE, SILENT, Network, broker, in_network, producer, timed


def heartbeats(*brokers: str) -> Heartbeats:
    """Of a producer, to these brokers."""
    addresses, groups = BrokerAddresses(), GroupTable()
    for name in brokers:
        addresses.keep({name: {0: f"{name}:1"}})
    groups.add_producer(GroupProducer("p"))
    return Heartbeats("c", groups, addresses, ConnectionPool(), timeout_seconds=3)


@in_network
async def test_heartbeats_wait_for_no_dead_broker(network: Network) -> None:
    names = [f"b{number}" for number in range(40)]
    network.hosts = {f"{name}:1": broker() for name in names} | {
        f"{name}:1": BLACK_HOLE for name in names[::4]
    }
    assert await timed(heartbeats(*names).send()) == (GRACE_SECONDS, True)
    beats = [at for at, _, code in network.requests if code == HeartBeat.code]
    assert (len(beats), max(beats)) == (30, 0)


@in_network
async def test_heartbeats_to_one_broker_follow_one_another_and_are_shared(network: Network) -> None:
    network.hosts["b:1"], network.delays["b:1"] = broker(), 1.0
    shared = heartbeats("b")
    outcomes = await asyncio.gather(*(timed(shared.send()) for _ in range(5)))
    assert outcomes == [(1, True), *[(2, True)] * 4]
    assert network.count(HeartBeat.code) == 2, "the four others share the one that began after they asked"


@pytest.mark.parametrize(("beside", "longest"), [("healthy", 0.0), ("dead", 0.0), ("silent", 3.0)])
@in_network
async def test_a_client_leaves_all_brokers_at_once_and_waits_for_none_that_is_dead(
    network: Network, beside: str, longest: float
) -> None:
    network.cluster("b0", "b1", "b2", "b3")
    leaving = ("b1:1", "b2:1")
    client = producer(topics=("T",))
    if beside == "dead":
        network.hosts.update(dict.fromkeys(leaving, BLACK_HOLE))
    await client.start()
    beat = asyncio.create_task(client._running.heartbeats.send())
    await asyncio.sleep(0)
    if beside == "silent":
        network.hosts.update(dict.fromkeys(leaving, SILENT))
    seconds, _ = await timed(client.shutdown())
    await asyncio.gather(beat, return_exceptions=True)
    assert seconds == pytest.approx(longest, abs=0.05)
    left = [address for _, address, code in network.requests if code == UnregisterClient.code]
    assert {"b0:1", "b3:1"} <= set(left)
