"""Heartbeats and the last word to many brokers, of which some are dead or silent: none waits for another."""

import asyncio
from typing import Any

import pytest
from pocketmq.client import Producer
from pocketmq.client.connections.pool import ConnectionPool
from pocketmq.client.instance.groups import GroupProducer, GroupTable
from pocketmq.client.instance.heartbeats import GRACE_SECONDS, Heartbeats
from pocketmq.client.instance.route_book import BrokerAddresses
from pocketmq.protocol.requests.membership import HeartBeat, UnregisterClient

from client_network import BLACK_HOLE, NAMESRV, SILENT, Network, broker, cluster, timed

LATE = 0.05


def test_heartbeats_wait_for_no_dead_broker() -> None:
    network = Network()
    addresses = BrokerAddresses()
    for number in range(40):
        network.hosts[f"b{number}:1"] = BLACK_HOLE if number % 4 == 0 else broker()
        addresses.keep({f"b{number}": {0: f"b{number}:1"}})
    groups = GroupTable()

    async def scenario() -> tuple[float, Any]:
        groups.add_producer(GroupProducer("p"))
        heartbeats = Heartbeats("c", groups, addresses, ConnectionPool(), timeout_seconds=3)
        return await timed(heartbeats.send())

    seconds, accepted = network.run(scenario)
    assert (seconds, accepted) == (GRACE_SECONDS, True)
    beats = [at for at, _, code in network.requests if code == HeartBeat.code]
    assert (len(beats), max(beats)) == (30, 0)


def test_heartbeats_to_one_broker_follow_one_another_and_are_shared() -> None:
    network = Network()
    network.hosts["b:1"], network.delays["b:1"] = broker(), 1.0
    addresses, groups = BrokerAddresses(), GroupTable()
    addresses.keep({"b": {0: "b:1"}})

    async def scenario() -> list[tuple[float, Any]]:
        groups.add_producer(GroupProducer("p"))
        heartbeats = Heartbeats("c", groups, addresses, ConnectionPool(), timeout_seconds=3)
        return await asyncio.gather(*(timed(heartbeats.send()) for _ in range(5)))

    outcomes = network.run(scenario)
    assert [(seconds, accepted) for seconds, accepted in outcomes] == [(1, True), *[(2, True)] * 4]
    assert network.count(HeartBeat.code) == 2, "the four others share the one that began after they asked"


@pytest.mark.parametrize(("beside", "longest"), [("healthy", 0.0), ("dead", 0.0), ("silent", 3.0)])
def test_a_client_leaves_all_brokers_at_once_and_waits_for_none_that_is_dead(
    beside: str, longest: float
) -> None:
    names = [f"b{number}" for number in range(4)]
    network, _ = cluster({name: f"{name}:1" for name in names})
    leaving = ("b1:1", "b2:1")

    async def scenario() -> tuple[float, Any]:
        client = Producer("p", namesrv_addr=NAMESRV, client_ip="10.0.0.9", topics=("T",))
        if beside == "dead":
            network.hosts.update(dict.fromkeys(leaving, BLACK_HOLE))
        await client.start()
        beat = asyncio.create_task(client._running.heartbeats.send())
        await asyncio.sleep(0)
        if beside == "silent":
            network.hosts.update(dict.fromkeys(leaving, SILENT))
        seconds = await timed(client.shutdown())
        await asyncio.gather(beat, return_exceptions=True)
        return seconds

    seconds, _ = network.run(scenario)
    assert seconds == pytest.approx(longest, abs=LATE)
    left = [address for _, address, code in network.requests if code == UnregisterClient.code]
    assert {"b0:1", "b3:1"} <= set(left)
