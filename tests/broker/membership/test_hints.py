"""The log says once why a group may not get what it expects."""

import logging

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.membership.client import Client
from pocketmq.broker.membership.consumer_groups import ConsumerGroup
from pocketmq.broker.membership.hints import MembershipHints
from pocketmq.broker.said_once import MOST, SaidOnce
from pocketmq.protocol.bodies.client import SubscriptionData

from broker_fakes import connect


def group_of(broker: Broker, members: int) -> ConsumerGroup:
    group = ConsumerGroup("g")
    for number in range(members):
        peer = connect(broker, 50_000 + number)
        group.connections[peer] = Client(peer, f"c{number}", "JAVA", 0, 0)
    return group


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "pocketmq.hints"]


@pytest.fixture
def hints(broker: Broker, caplog: pytest.LogCaptureFixture) -> MembershipHints:
    caplog.set_level(logging.INFO, "pocketmq.hints")
    assert broker.topics.create_for_send("T", "TBW102", 4) is not None
    return MembershipHints(broker.topics)


async def test_members_that_subscribe_differently(
    broker: Broker, hints: MembershipHints, caplog: pytest.LogCaptureFixture
) -> None:
    for before, after in (("a", "b"), ("b", "a")):
        hints.heartbeat(group_of(broker, 2), {"T": before}, [SubscriptionData(topic="T", sub_string=after)])
    assert len(said(caplog)) == 1
    assert "T: 'a' and T: 'b'" in said(caplog)[0]


async def test_one_member_may_change_its_subscription(
    broker: Broker, hints: MembershipHints, caplog: pytest.LogCaptureFixture
) -> None:
    hints.heartbeat(group_of(broker, 1), {"T": "a"}, [SubscriptionData(topic="T", sub_string="b")])
    hints.heartbeat(group_of(broker, 2), {}, [SubscriptionData(topic="T", sub_string="b")])
    hints.heartbeat(group_of(broker, 2), {"T": "b"}, [SubscriptionData(topic="T", sub_string="b")])
    assert said(caplog) == []


async def test_more_members_than_queues(
    broker: Broker, hints: MembershipHints, caplog: pytest.LogCaptureFixture
) -> None:
    config = broker.topics.find("T")
    assert config is not None
    subscription = [SubscriptionData(topic="T", sub_string="*")]
    hints.heartbeat(group_of(broker, config.read_queue_nums), {}, subscription)
    hints.heartbeat(group_of(broker, config.read_queue_nums + 1), {}, subscription, shares_queues=True)
    assert said(caplog) == []
    for _ in range(2):
        hints.heartbeat(group_of(broker, config.read_queue_nums + 1), {"T": "*"}, subscription)
    assert len(said(caplog)) == 1
    assert "one member is idle" in said(caplog)[0]


async def test_a_broadcasting_group_has_no_idle_members(
    broker: Broker, hints: MembershipHints, caplog: pytest.LogCaptureFixture
) -> None:
    group = group_of(broker, 100)
    group.message_model = "BROADCASTING"
    hints.heartbeat(group, {}, [SubscriptionData(topic="T", sub_string="*")])
    assert said(caplog) == []


async def test_a_topic_that_does_not_exist(
    broker: Broker, hints: MembershipHints, caplog: pytest.LogCaptureFixture
) -> None:
    for topic in ("Nowhere", "%RETRY%g"):
        hints.heartbeat(group_of(broker, 1), {}, [SubscriptionData(topic=topic, sub_string="*")])
    assert said(caplog) == ["group g subscribes to topic Nowhere, which does not exist here"]


async def test_a_heartbeat_with_many_topics_logs_few_lines(
    broker: Broker, hints: MembershipHints, caplog: pytest.LogCaptureFixture
) -> None:
    many = [SubscriptionData(topic=f"Nowhere{number}", sub_string="*") for number in range(1_000)]
    hints.heartbeat(group_of(broker, 1), {}, many)
    assert len(said(caplog)) == 3


def test_the_memory_is_bounded() -> None:
    once = SaidOnce()
    assert all(once.first(number) for number in range(MOST + 1))
    assert not once.first(MOST)
    assert once.first(0)
