"""Heartbeats and membership: limits, notices to other members, and what a heartbeat leaves in the broker.

What 4.9.7 and 5.5.0 answer to one connection, locks too, is in the recorded conversation `administration`.
"""

import json
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.group import UpdateAndCreateSubscriptionGroup
from pocketmq.protocol.requests.membership import CheckClientConfig, HeartBeat, UnregisterClient

from broker_fakes import Asked, FakeConnection, ask, connect


def consumer(
    group: str = "g", *topics: str, model: str = "CLUSTERING", kind: str = "CONSUME_PASSIVELY", **more: Any
) -> dict[str, Any]:
    subscriptions = [{"topic": topic, "subString": "*", "subVersion": 1} for topic in topics]
    return {
        "groupName": group,
        "consumeType": kind,
        "messageModel": model,
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": subscriptions,
        **more,
    }


async def beat(
    broker: Broker, connection: FakeConnection, *consumers: dict[str, Any], client_id: str = "c", **more: Any
) -> Asked:
    body = {
        "clientID": client_id,
        "consumerDataSet": list(consumers),
        "producerDataSet": [{"groupName": "p"}],
        **more,
    }
    return await ask(broker, HeartBeat(), json.dumps(body).encode(), connection=connection)


# -- 34


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"producerDataSet": [{"groupName": f"p{n}"} for n in range(1025)]}, "1025 groups of one connection"),
        ({"consumerDataSet": [consumer("g", *map(str, range(4097)))]}, "4097 subscriptions, at most 4096"),
        ({"clientID": "c" * 1025}, "a name of more than 1024 characters"),
        ({"consumerDataSet": [consumer("g", "t" * 1025)]}, "a name of more than 1024 characters"),
        ({"consumerDataSet": [consumer("g", "t", x="x" * (1 << 20))]}, "bytes, at most 1048576 are allowed"),
    ],
    ids=["groups", "subscriptions", "client id", "topic", "body"],
)
async def test_a_heartbeat_over_a_limit_leaves_nothing(
    broker: Broker, body: dict[str, Any], complaint: str
) -> None:
    refused = await beat(broker, connect(broker), **body)
    assert refused.code == 1
    assert complaint in (refused.remark or "")
    assert len(refused.remark or "") < 200
    assert (broker.membership.consumers.names(), broker.membership.producers.all()) == ([], {})


async def test_the_groups_of_all_heartbeats_of_a_connection_count(broker: Broker) -> None:
    one = connect(broker)
    for first in (0, 500):
        names = [{"groupName": f"p{number}"} for number in range(first, first + 500)]
        assert (await beat(broker, one, producerDataSet=names)).code == 0
        assert (await beat(broker, one, producerDataSet=names)).code == 0
    names = [{"groupName": f"p{number}"} for number in range(1000, 1025)]
    assert (await beat(broker, one, producerDataSet=names)).code == 1
    assert (await beat(broker, connect(broker, 50_001), producerDataSet=names)).code == 0


async def test_the_retry_topic_takes_the_unit_flag_and_in_5_x_the_order_of_what_is_consumed(
    broker: Broker, broker4: Broker
) -> None:
    for one in (broker, broker4):
        one.topics.update(TopicConfig(topic_name="ordered", order=True))
        await beat(one, connect(one), consumer("go", "ordered"), consumer("gu", "t", unitMode=True))
        unit = one.topics.find("%RETRY%gu")
        assert unit is not None
        assert unit.topic_sys_flag == 2
    ordered, ordered4 = broker.topics.find("%RETRY%go"), broker4.topics.find("%RETRY%go")
    assert ordered is not None
    assert ordered4 is not None
    assert (ordered.order, ordered4.order) == (True, False)


async def test_the_switch_of_the_group_silences_its_notices(broker: Broker) -> None:
    broker.groups.update(SubscriptionGroupConfig(group_name="g", notify_consumer_ids_changed_enable=False))
    one = connect(broker)
    await beat(broker, one, consumer("g", "t"))
    await ask(broker, UnregisterClient(client_id="c", consumer_group="g"), connection=one)
    assert one.take_notices() == []


# -- 34, second form


async def test_another_fingerprint_than_the_remembered_one_asks_for_the_subscriptions(broker: Broker) -> None:
    one, two = connect(broker, 1), connect(broker, 2)
    first = await beat(broker, one, consumer("g", "t"), heartbeatFingerprint=7)
    assert first.fields["IS_SUB_CHANGE"] == "false"
    other = await beat(broker, two, consumer("g"), client_id="d", heartbeatFingerprint=8, withoutSub=True)
    assert other.fields["IS_SUB_CHANGE"] == "true"
    back = await beat(broker, one, consumer("g"), heartbeatFingerprint=7, withoutSub=True)
    assert back.fields["IS_SUB_CHANGE"] == "true"


async def test_missing_subscriptions_are_asked_for(broker: Broker) -> None:
    answer = await beat(broker, connect(broker), consumer("g"), heartbeatFingerprint=7, withoutSub=True)
    assert answer.fields["IS_SUB_CHANGE"] == "true"


# -- 46


async def test_a_check_or_a_group_without_body_fails_in_4_9(broker4: Broker) -> None:
    """4.9.7 may close the connection, so this is not recorded."""
    assert (await ask(broker4, CheckClientConfig())).code == 1
    assert (await ask(broker4, UpdateAndCreateSubscriptionGroup())).code == 1
