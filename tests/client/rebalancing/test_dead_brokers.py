"""A consumer starts beside brokers that do not answer: what it reads from healthy ones does not wait for them."""

from collections import defaultdict
from typing import Any

import pytest
from pocketmq.client import PushConsumer
from pocketmq.client.instance.heartbeats import GRACE_SECONDS
from pocketmq.protocol.bodies.client import (
    GetConsumerListByGroupResponseBody,
    LockBatchRequestBody,
    LockBatchResponseBody,
)
from pocketmq.protocol.requests.membership import GetConsumerListByGroup, LockBatchMq
from pocketmq.protocol.requests.offset import QueryConsumerOffset
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.protocol.wire.command import Command

from client_network import (
    BLACK_HOLE,
    NAMESRV,
    SILENT,
    Answer,
    Host,
    Network,
    broker,
    in_network,
    name_server,
    passed,
    reply,
    route,
    timed,
)
from client_waits import Seen, consuming

MEMBER = "10.0.0.9@one"
TOPICS = ("T0", "T1", "T2")
SOON = 0.6
"""Seconds: the grace of the heartbeats, and a moment."""


class Cluster(Network):
    """Topics whose queues are on two healthy brokers and c, which a test sets; a pull is held for ever."""

    def __init__(self) -> None:
        super().__init__()
        brokers = {"a": "a:1", "b": "b:1", "c": "c:1"}
        routes = {topic: route(brokers, queues=4) for topic in TOPICS}
        self.pulled: defaultdict[str, list[float]] = defaultdict(list)
        """Topic to the times of its first pulls."""
        self.hosts = {NAMESRV: name_server(routes)}
        for address in ("a:1", "b:1"):
            self.hosts[address] = broker(
                {
                    GetConsumerListByGroup.code: self.list_members,
                    QueryConsumerOffset.code: lambda asked: reply({"offset": "5"}),
                    PullMessage.code: self.pull,
                    LockBatchMq.code: self.lock,
                }
            )

    def list_members(self, asked: Command) -> Answer:
        return reply(body=GetConsumerListByGroupResponseBody(consumer_id_list=[MEMBER]).encode())

    def pull(self, asked: Command) -> Answer:
        self.pulled[(asked.fields or {})["topic"]].append(self.requests[-1][0])
        return None

    def lock(self, asked: Command) -> Answer:
        wanted = LockBatchRequestBody.decode(bytes(asked.body or b"")).mq_set
        return reply(body=LockBatchResponseBody(lock_ok_mq_set=wanted).encode())


def consumer(**options: Any) -> PushConsumer:
    words = {"client_ip": "10.0.0.9", "instance_name": "one", "subscription": dict.fromkeys(TOPICS, "*")}
    return consuming(NAMESRV, Seen(), **words, **options)


@pytest.fixture
def network() -> Cluster:
    return Cluster()


@pytest.mark.parametrize("third", [BLACK_HOLE, SILENT])
@in_network
async def test_a_start_does_not_wait_for_a_dead_broker(network: Cluster, third: Host) -> None:
    network.hosts["c:1"] = third
    one = consumer()
    assert await timed(one.start()) == (pytest.approx(GRACE_SECONDS, abs=0.05), None)
    await one.shutdown()


@pytest.mark.parametrize("orderly", [False, True])
@in_network
async def test_queues_of_healthy_brokers_are_read_at_once(network: Cluster, orderly: bool) -> None:
    network.hosts["c:1"] = BLACK_HOLE
    async with consumer(orderly=orderly):
        await passed(10)
    first_pulls = {topic: sorted(times) for topic, times in network.pulled.items()}
    assert {topic: len(times) for topic, times in first_pulls.items()} == dict.fromkeys(TOPICS, 8)
    assert first_pulls["T0"][-1] <= SOON
    assert max(times[-1] for times in first_pulls.values()) <= SOON + 3.1, (
        "the dead broker is asked once a round"
    )
