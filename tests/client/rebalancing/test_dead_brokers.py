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
    SILENT,
    Answer,
    Host,
    Network,
    broker,
    name_server,
    passed,
    reply,
    route,
    timed,
)

NAMESRV = "ns:9876"
MEMBER = "10.0.0.9@one"
SOON = 0.6
"""Seconds: the grace of the heartbeats, and a moment."""


class Cluster(Network):
    """Topics whose queues are on two healthy brokers and a third; a pull is held for ever."""

    def __init__(self, third: Host, topics: int = 1) -> None:
        super().__init__()
        brokers = {"a": "a:1", "b": "b:1", "c": "c:1"}
        self.topics = [f"T{number}" for number in range(topics)]
        self.routes = {topic: route(brokers, queues=4) for topic in self.topics}
        self.pulled: defaultdict[str, list[float]] = defaultdict(list)
        """Topic to the times of its first pulls."""
        self.hosts = {NAMESRV: name_server(self.routes), "c:1": third}
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

    def consumer(self, **options: Any) -> PushConsumer:
        async def listener(message: object) -> None:
            """Nothing is delivered."""

        return PushConsumer(
            "g",
            listener,
            namesrv_addr=NAMESRV,
            client_ip="10.0.0.9",
            instance_name="one",
            subscription=dict.fromkeys(self.topics, "*"),
            **options,
        )


@pytest.mark.parametrize("third", [BLACK_HOLE, SILENT])
def test_a_start_does_not_wait_for_a_dead_broker(third: Host) -> None:
    network = Cluster(third)

    async def scenario() -> tuple[float, None]:
        consumer = network.consumer()
        took: tuple[float, None] = await timed(consumer.start())
        await consumer.shutdown()
        return took

    assert network.run(scenario) == (pytest.approx(GRACE_SECONDS, abs=0.05), None)


@pytest.mark.parametrize("orderly", [False, True])
def test_queues_of_healthy_brokers_are_read_at_once(orderly: bool) -> None:
    network = Cluster(BLACK_HOLE, topics=3)

    async def scenario() -> None:
        async with network.consumer(orderly=orderly):
            await passed(10)

    network.run(scenario)
    first_pulls = {topic: sorted(times) for topic, times in network.pulled.items()}
    assert {topic: len(times) for topic, times in first_pulls.items()} == dict.fromkeys(network.topics, 8)
    assert first_pulls["T0"][-1] <= SOON
    assert max(times[-1] for times in first_pulls.values()) <= SOON + 3.1, (
        "the dead broker is asked once a round"
    )
