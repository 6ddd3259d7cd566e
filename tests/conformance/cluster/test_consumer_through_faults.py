"""An unmodified Java push consumer on a `RocketMQCluster` whose brokers are killed, started, cut off and healed.

What the ledger says is the claim: nothing is lost, nothing is out of order, and everything is read. The brokers' time
stands still meanwhile, and moves once, for a delayed message.
"""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.testing import RocketMQCluster

from conformance.official.beside import START_S, BesideClients
from waiting import wait_until

SEEN = r"^SEEN \d+ \d+ 0 "
EACH = 20


@pytest.fixture(params=["4.9", "5.5"])
def version(request: pytest.FixtureRequest, peers: None) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[BesideClients]:
    running = BesideClients(tmp_path)
    yield running
    running.close()


def send(cluster: RocketMQCluster, broker: str, count: int = EACH, **words: object) -> None:
    """Through the HTTP port of the cluster."""
    address = f"{cluster.admin_url}/brokers/{broker}/api/topics/orders/messages"
    for number in range(count):
        body = json.dumps({"text": f"order {number}", **words}).encode()
        with urllib.request.urlopen(urllib.request.Request(address, body), timeout=10) as answer:
            assert answer.status == 201


def test_a_java_consumer_goes_through_a_kill_and_a_partition(clients: BesideClients, version: str) -> None:
    emulate = "4.9" if version == "4.9" else "5"
    with RocketMQCluster(brokers=2, emulate=emulate, virtual_time=True, seed=1, admin_port=0) as cluster:
        cluster.grow("orders", queues=2)
        consumer = clients.java(
            version,
            "LedgerMember",
            cluster.namesrv_addr,
            "orders",
            "billing",
            "concurrent",
            "one",
            "0",
            "1000",
        )

        def consumed(count: int, what: str) -> None:
            wait_until(lambda: len(consumer.said(SEEN)) >= count, what, START_S)

        for broker in ("b0", "b1"):
            send(cluster, broker)
        consumed(2 * EACH, "both brokers are read")

        cluster.broker("b0").kill()
        send(cluster, "b1")
        consumed(3 * EACH, "the other broker is read while one is dead")
        cluster.broker("b0").start()
        send(cluster, "b0")
        consumed(4 * EACH, "the broker that was killed is read again")

        cluster.partition(["b0"], ["b1", "n0"])
        send(cluster, "b1")
        consumed(5 * EACH, "the broker that the name server knows is read")
        cluster.heal()
        send(cluster, "b0")
        consumed(6 * EACH, "both are known again")

        send(cluster, "b1", 1, delay_level=17)
        cluster.clock.advance("1h")
        consumed(6 * EACH + 1, "an hour later")
        consumer.leave()
        verdict = cluster.ledger.verdict("orders", "billing")
        cluster.ledger.assert_clean("orders", "billing", allow=("duplicated",))
        assert {finding.broker for finding in verdict.duplicated} <= {"b0"}, str(verdict)
        assert 0 <= len(consumer.said(SEEN)) - (6 * EACH + 1) <= len(verdict.duplicated)
