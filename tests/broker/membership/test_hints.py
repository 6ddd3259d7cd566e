"""The log says once why a group may not get what it expects."""

import logging

import pytest
from pocketmq.broker.bounded_cache import MAX_REASONS, SaidOnce
from pocketmq.broker.broker import Broker
from pocketmq.broker.membership.consumer_groups import Client, ConsumerGroup
from pocketmq.broker.membership.hints import MembershipHints
from pocketmq.protocol.bodies.client import SubscriptionData

from broker_fakes import connect


def group_of(broker: Broker, members: int) -> ConsumerGroup:
    group = ConsumerGroup("g")
    for number in range(members):
        peer = connect(broker, 50_000 + number)
        group.connections[peer] = Client(peer, f"c{number}", "JAVA", 0, 0)
    return group


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says, as it grows."""
    caplog.set_level(logging.INFO, "pocketmq.hints")
    lines: list[str] = []
    caplog.handler.addFilter(
        lambda record: record.name != "pocketmq.hints" or lines.append(record.getMessage()) is None
    )
    return lines


@pytest.fixture
def hints(broker: Broker) -> MembershipHints:
    assert broker.topics.create_for_send("T", "TBW102", 4) is not None
    return MembershipHints(broker.topics)


def to(topic: str, expression: str = "*") -> list[SubscriptionData]:
    return [SubscriptionData(topic=topic, sub_string=expression)]


async def test_members_that_subscribe_differently(
    broker: Broker, hints: MembershipHints, said: list[str]
) -> None:
    hints.heartbeat(group_of(broker, 1), {"T": "a"}, to("T", "b"))  # one member may change its subscription
    hints.heartbeat(group_of(broker, 2), {}, to("T", "b"))
    hints.heartbeat(group_of(broker, 2), {"T": "b"}, to("T", "b"))
    assert said == []
    for before, after in (("a", "b"), ("b", "a")):
        hints.heartbeat(group_of(broker, 2), {"T": before}, to("T", after))
    assert len(said) == 1
    assert "T: 'a' and T: 'b'" in said[0]


async def test_more_members_than_queues(broker: Broker, hints: MembershipHints, said: list[str]) -> None:
    hints.heartbeat(group_of(broker, 4), {}, to("T"))
    hints.heartbeat(group_of(broker, 5), {}, to("T"), shares_queues=True)
    broadcasting = group_of(broker, 100)
    broadcasting.message_model = "BROADCASTING"
    hints.heartbeat(broadcasting, {}, to("T"))
    assert said == []
    for _ in range(2):
        hints.heartbeat(group_of(broker, 5), {"T": "*"}, to("T"))
    assert len(said) == 1
    assert "one member is idle" in said[0]


async def test_topics_that_do_not_exist_are_a_few_lines(
    broker: Broker, hints: MembershipHints, said: list[str]
) -> None:
    for topic in ("Nowhere", "%RETRY%g"):
        hints.heartbeat(group_of(broker, 1), {}, to(topic))
    assert said == ["group g subscribes to topic Nowhere, which does not exist here"]
    hints.heartbeat(group_of(broker, 1), {}, [one for number in range(1000) for one in to(f"N{number}")])
    assert len(said) == 1 + 3


def test_the_memory_is_bounded() -> None:
    once = SaidOnce()
    assert all(once.first(number) for number in range(MAX_REASONS + 1))
    assert not once.first(MAX_REASONS)
    assert once.first(0)
