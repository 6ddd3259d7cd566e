"""Group administration: limits, what the tables hold afterwards, languages, times and rates.

What 4.9.7 and 5.5.0 answer to each request is in the recorded conversations `administration` and `queries`.
"""

import json
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.group import (
    DeleteSubscriptionGroup,
    GetAllSubscriptionGroupConfig,
    GetConsumeStats,
    UpdateAndCreateSubscriptionGroup,
)
from pocketmq.protocol.requests.membership import GetConsumerConnectionList, HeartBeat
from pocketmq.store import VirtualClock

from broker_fakes import Asked, MakeBroker, ask, connect, store_message


async def update(broker: Broker, **members: Any) -> Asked:
    return await ask(broker, UpdateAndCreateSubscriptionGroup(), json.dumps(members).encode())


# -- settings


async def test_a_group_with_a_million_retry_queues_is_refused(broker: Broker, broker4: Broker) -> None:
    for one, code in ((broker, 29), (broker4, 1)):
        answer = await update(one, groupName="g", retryQueueNums=1_000_000)
        assert answer.code == code
        assert "at most 16384" in (answer.remark or "")
        assert "g" not in one.groups


async def test_a_retry_policy_of_a_thousand_delays_is_the_longest(broker: Broker) -> None:
    for count, code in ((1000, 0), (1001, 29)):
        policy = {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [1000] * count}}
        assert (await update(broker, groupName=f"g{count}", groupRetryPolicy=policy)).code == code
    assert "g1000" in broker.groups
    assert "g1001" not in broker.groups


async def test_a_slave_refuses_changes_in_4_9_only(broker_maker: MakeBroker) -> None:
    slave4 = broker_maker(emulate=4, store={"broker_role": "SLAVE"})
    refusal = await update(slave4, groupName="g")
    assert refusal.code == 1
    assert refusal.remark == (
        "Can't modify topic or subscription group from slave broker, please execute it from master broker."
    )
    assert (await ask(slave4, DeleteSubscriptionGroup(group_name="g"))).code == 1
    slave5 = broker_maker(store={"broker_role": "SLAVE"})
    assert (await update(slave5, groupName="g")).code == 0


@pytest.mark.parametrize(
    ("emulate", "created", "is_there"), [(5, True, True), (5, False, False), (4, True, False)]
)
async def test_5_x_creates_a_deleted_group_anew_where_its_offsets_stay(
    broker_maker: MakeBroker, emulate: int, created: bool, is_there: bool
) -> None:
    """As 5.5.0: `getConsumerConfig` then prints a group with the default settings. 4.9.7 does not."""
    broker = broker_maker(emulate=emulate, auto_create_subscription_group=created)
    broker.groups.update(SubscriptionGroupConfig(group_name="g", retry_max_times=5))
    assert (await ask(broker, DeleteSubscriptionGroup(group_name="g"))).code == 0
    table = (await ask(broker, GetAllSubscriptionGroupConfig())).json["subscriptionGroupTable"]
    assert ("g" in table) is is_there
    if is_there:
        assert table["g"]["retryMaxTimes"] == 16


# -- members


async def test_consumer_connections_carry_address_language_version_and_subscriptions(broker: Broker) -> None:
    subscription = {"topic": "t", "subString": "A", "tagsSet": ["A"], "codeSet": [65], "subVersion": 2}
    consumer: dict[str, Any] = {"groupName": "g", "consumeType": "CONSUME_PASSIVELY"}
    consumer |= {"messageModel": "CLUSTERING", "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET"}
    beat = {"clientID": "c", "consumerDataSet": [{**consumer, "subscriptionDataSet": [subscription]}]}
    body = json.dumps(beat).encode()
    await ask(broker, HeartBeat(), body, connection=connect(broker, 4001), language="GO", version=317)
    answer = await ask(broker, GetConsumerConnectionList(consumer_group="g"))
    assert answer.body == (
        b'{"connectionSet":[{"clientAddr":"127.0.0.1:4001","clientId":"c","language":"GO","version":317}],'
        b'"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY",'
        b'"messageModel":"CLUSTERING","subscriptionTable":{"t":{"classFilterMode":false,"codeSet":[65],'
        b'"expressionType":"TAG","subString":"A","subVersion":2,"tagsSet":["A"],"topic":"t"}}}'
    )


# -- 208


def queue(topic: str, queue_id: int) -> MessageQueue:
    return MessageQueue(topic, "broker-a", queue_id)


def fill(broker: Broker, clock: VirtualClock) -> int:
    """Topic t of two read queues, three messages in queue 0, one second apart; returns the time of the first."""
    broker.topics.update(TopicConfig(topic_name="t", read_queue_nums=2, write_queue_nums=1))
    first_ms = clock.now_ms()
    for _ in range(3):
        store_message(broker, "t")
        clock.advance(1000)
    return first_ms


async def test_consume_stats_name_offsets_and_the_time_of_the_last_consumed_message(broker: Broker) -> None:
    first_ms = fill(broker, broker.clock)
    broker.offsets.commit("t", "g", 0, 2)
    broker.offsets.commit_pull("t", "g", 0, 3)
    answer = await ask(broker, GetConsumeStats(consumer_group="g"))
    row = {"brokerOffset": 3, "consumerOffset": 2, "lastTimestamp": first_ms + 1000, "pullOffset": 3}
    empty = {"brokerOffset": 0, "consumerOffset": 0, "lastTimestamp": 0, "pullOffset": 0}
    assert answer.json == {"consumeTps": 0.0, "offsetTable": {queue("t", 0): row, queue("t", 1): empty}}


async def test_consume_tps_adds_up_the_topics(broker: Broker, clock: VirtualClock) -> None:
    for topic in ("t", "u"):
        broker.topics.update(TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1))
        broker.offsets.commit(topic, "g", 0, 1)
        broker.statistics.message_got(topic, "g", 0, 0)
    for _ in range(30):  # ten a second in t, twenty a second in u
        clock.advance(1000)
        broker.statistics.message_got("t", "g", 10, 1000)
        broker.statistics.message_got("u", "g", 20, 1000)
        list(broker.statistics.sample())
    tps = (await ask(broker, GetConsumeStats(consumer_group="g"))).json["consumeTps"]
    assert tps == pytest.approx(30.0, rel=0.1)
