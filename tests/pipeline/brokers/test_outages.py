"""Reads while brokers of a cluster stop, die and lag: nothing is declared lost that a master still has."""

from collections.abc import Iterator

import pytest
from pocketmq.pipeline.errors import SourceUnreachable, TopicMissing
from pocketmq.pipeline.tables.brokers.broker_client import ROUTE_SECONDS, BrokerClient
from pocketmq.pipeline.tables.brokers.read_planner import Planner
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.pipeline.tables.planning.ranges import QueueBounds, Range
from pocketmq.pipeline.tables.planning.topic_options import read_source_options
from pocketmq.testing import RocketMQCluster

from pipeline.brokers.cluster_sends import send_to
from pipeline.brokers.reading import options, read

FIRST = Queue("T", "b0", 0)


class Seconds:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def one_broker() -> Iterator[RocketMQCluster]:
    with RocketMQCluster(brokers=1) as cluster:
        cluster.grow("T", queues=1)
        yield cluster


@pytest.fixture
def two_brokers_and_slaves() -> Iterator[RocketMQCluster]:
    with RocketMQCluster(brokers=2, slaves=1) as cluster:
        cluster.grow("T", queues=1)
        yield cluster


@pytest.mark.parametrize("way", ["subscribe", "assign"])
def test_known_queues_wait_for_a_broker_that_restarts_and_unknown_ones_do_not(
    one_broker: RocketMQCluster, way: str
) -> None:
    names = {"subscribe": "T", "assign": '{"T":{"b0":[0]}}'}
    texts = {"nameServer": one_broker.namesrv_addr, way: names[way], "retryTimeoutMs": "5000"}
    chosen = read_source_options(texts, is_stream=True)
    clock = Seconds()
    with BrokerClient(one_broker.namesrv_addr).closing() as client:
        planner = Planner(client, chosen, clock=clock)
        assert planner.queues() == [FIRST]
        one_broker.broker("b0").stop()
        with pytest.raises(TopicMissing, match="does not exist"):
            planner.queues()
        assert planner.queues([FIRST]) == []
        clock.now += 5
        assert planner.queues([FIRST]) == []
        clock.now += 0.5
        with pytest.raises(SourceUnreachable, match="T b0 queue 0 has had no route for 6 s"):
            planner.queues([FIRST])
        one_broker.broker("b0").start()
        assert planner.queues([FIRST]) == [FIRST]
        one_broker.broker("b0").stop()
        assert planner.queues([FIRST]) == [], "the time begins anew"


def test_what_a_lagging_slave_does_not_hold_is_not_lost(two_brokers_and_slaves: RocketMQCluster) -> None:
    cluster = two_brokers_and_slaves
    send_to(cluster, FIRST, 0, 3)
    cluster.wait_replicated()
    cluster.partition(["b0-1"], ["b0"])
    send_to(cluster, FIRST, 3, 2)
    cluster.broker("b0").stop()
    with BrokerClient(cluster.namesrv_addr).closing() as client:
        assert client.bounds([FIRST], 5_000) == {FIRST: QueueBounds(0, 3, is_of_slave=True)}
        end = '{"T":{"b0":{"0":5},"b1":{"0":0}}}'
        for tolerates in ("true", "false"):
            chosen = options(cluster, "T", endingOffsets=end, failOnDataLoss=tolerates, retryTimeoutMs="150")
            assert Planner(client, chosen).batch() == [Range(FIRST, 0, 5)]
            with pytest.raises(
                SourceUnreachable, match=r"no master in its route, and the slave holds \[0, 3\)"
            ):
                read(client, chosen)
        beyond = '{"T":{"b0":{"0":5},"b1":{"0":0}}}'
        assert read(client, options(cluster, "T", startingOffsets=beyond)) == []
        cluster.heal()
        cluster.broker("b0").start()
        assert read(client, options(cluster, "T", endingOffsets=end)) == [f"m{n}" for n in range(5)]


def test_a_route_is_requested_again_after_half_a_minute_and_kept_while_no_name_server_answers(
    one_broker: RocketMQCluster,
) -> None:
    clock = Seconds()
    with BrokerClient(one_broker.namesrv_addr, clock=clock).closing() as client:

        def queues() -> int:
            return len(client.run(client.route("T")).queues)

        assert queues() == 1
        one_broker.grow("T", queues=3)
        assert queues() == 1
        clock.now += ROUTE_SECONDS
        assert queues() == 3
        one_broker.name_server("n0").stop()
        clock.now += ROUTE_SECONDS
        assert queues() == 3


def test_a_broker_whose_address_cannot_be_reached_is_found_at_the_mapped_one(
    one_broker: RocketMQCluster,
) -> None:
    send_to(one_broker, FIRST, 0, 2)
    reachable = one_broker.broker("b0").addr
    with BrokerClient(one_broker.namesrv_addr).closing() as client:
        route = client.run(client.route("T"))
        route.addresses["b0"][0] = "10.255.255.1:10911"
        mapped = options(
            one_broker, "T", **{"rocketmq.broker.address.map": f"10.255.255.1:10911={reachable}"}
        )
    with BrokerClient(one_broker.namesrv_addr, mapped.access).closing() as client:
        client.remember("T", route)
        assert client.bounds([FIRST], 1_000) == {FIRST: QueueBounds(0, 2)}
