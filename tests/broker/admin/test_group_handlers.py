"""Group administration, as the official brokers 4.9.7 and 5.5.0 answered the same frames."""

import json
from typing import Any

import pytest
from pocketmq.broker.admin import group_handlers
from pocketmq.broker.broker import Broker
from pocketmq.broker.membership import client_handlers
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.group import (
    DeleteSubscriptionGroup,
    GetAllSubscriptionGroupConfig,
    GetConsumeStats,
    GetSubscriptionGroupConfig,
    UpdateAndCreateSubscriptionGroup,
    UpdateAndCreateSubscriptionGroupList,
)
from pocketmq.protocol.requests.membership import (
    GetAllProducerInfo,
    GetConsumerConnectionList,
    GetProducerConnectionList,
    HeartBeat,
)
from pocketmq.store import VirtualClock

from broker_fakes import Asked, MakeBroker, ask, connect, store_message

assert client_handlers
assert group_handlers  # their handlers are what is tested

ILLEGAL = "contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
FRESH_GROUP = (
    b'{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,'
    b'"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"g",'
    b'"groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,'
    b'"retryMaxTimes":16,"retryQueueNums":2,"whichBrokerWhenConsumeSlowly":1}'
)


async def update(broker: Broker, **members: Any) -> Asked:
    return await ask(broker, UpdateAndCreateSubscriptionGroup(), json.dumps(members).encode())


# -- settings


async def test_a_group_is_made_and_read_back_in_the_official_form(broker: Broker) -> None:
    answer = await update(broker, groupName="g", consumeEnable=True, retryQueueNums=2)
    assert (answer.code, answer.remark) == (0, None)
    assert (await ask(broker, GetSubscriptionGroupConfig(group="g"))).body == FRESH_GROUP


async def test_a_group_with_a_million_retry_queues_is_refused(broker: Broker, broker4: Broker) -> None:
    for one, code in ((broker, 29), (broker4, 1)):
        answer = await update(one, groupName="g", retryQueueNums=1_000_000)
        assert answer.code == code
        assert "at most 16384" in (answer.remark or "")
        assert "g" not in one.groups


@pytest.mark.parametrize(
    ("name", "remark"),
    [
        (" ", "The specified group is blank."),
        (None, "The specified group is blank."),
        ("a b", f"The specified group: a b, {ILLEGAL}"),
        ("a" * 121, f"The specified group: {'a' * 121}, is longer than group max length: 120"),
    ],
)
async def test_5_x_refuses_bad_names(broker: Broker, name: str | None, remark: str) -> None:
    answer = await update(broker, groupName=name)
    assert (answer.code, answer.remark) == (29, remark)
    several = json.dumps({"groupConfigList": [{"groupName": "fine"}, {"groupName": name}]}).encode()
    answer = await ask(broker, UpdateAndCreateSubscriptionGroupList(), several)
    assert (answer.code, answer.remark) == (29, remark)
    assert "fine" not in broker.groups


async def test_4_9_takes_any_name_but_none(broker4: Broker) -> None:
    for name in (" ", "a b", "a" * 121):
        assert (await update(broker4, groupName=name)).code == 0
        assert name in broker4.groups
    assert (await update(broker4)).code == 1


async def test_an_update_without_body_changes_nothing_in_5_x_and_fails_in_4_9(
    broker: Broker, broker4: Broker
) -> None:
    assert (await ask(broker, UpdateAndCreateSubscriptionGroup())).code == 0
    assert (await ask(broker4, UpdateAndCreateSubscriptionGroup())).code == 1


async def test_an_unknown_attribute_is_refused(broker: Broker) -> None:
    answer = await update(broker, groupName="g", attributes={"+x": "y"})
    assert (answer.code, answer.remark) == (1, "java.lang.RuntimeException: unsupported key: x")
    assert "g" not in broker.groups


async def test_groups_before_one_with_a_bad_attribute_are_made(broker: Broker) -> None:
    groups = [{"groupName": "one"}, {"groupName": "two", "attributes": {"+x": "y"}}]
    body = json.dumps({"groupConfigList": groups}).encode()
    assert (await ask(broker, UpdateAndCreateSubscriptionGroupList(), body)).code == 1
    assert "one" in broker.groups
    assert "two" not in broker.groups


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


async def test_asking_for_a_group_makes_it_where_groups_make_themselves(broker_maker: MakeBroker) -> None:
    assert (await ask(broker_maker(), GetSubscriptionGroupConfig(group="new"))).code == 0
    strict = broker_maker(auto_create_subscription_group=False)
    answer = await ask(strict, GetSubscriptionGroupConfig(group="new"))
    assert (answer.code, answer.remark) == (26, "No group in this broker")


async def test_a_deleted_group_keeps_its_offsets_without_the_flag(broker: Broker, broker4: Broker) -> None:
    for one, flag in ((broker, "clean_offset"), (broker4, "remove_offset")):
        other = "remove_offset" if flag == "clean_offset" else "clean_offset"
        one.groups.update(SubscriptionGroupConfig(group_name="g"))
        one.offsets.commit("t", "g", 0, 5)
        await ask(one, DeleteSubscriptionGroup(group_name="g", **{other: True}))
        assert one.offsets.query("t", "g", 0) == 5
        assert (await ask(one, DeleteSubscriptionGroup(group_name="g", **{flag: True}))).code == 0
        assert "g" not in one.groups
        assert one.offsets.query("t", "g", 0) == -1


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


# -- 201


async def test_the_whole_table_goes_to_callers_that_name_no_page(broker: Broker) -> None:
    answer = await ask(broker, GetAllSubscriptionGroupConfig())
    assert answer.fields == {"totalGroupNum": str(len(broker.groups))}
    assert answer.json.keys() == {"dataVersion", "forbiddenTable", "subscriptionGroupTable"}
    assert answer.json["subscriptionGroupTable"].keys() == broker.groups.groups.keys()


async def test_pages_follow_each_other_until_the_total(broker: Broker) -> None:
    for number in range(5):
        broker.groups.update(SubscriptionGroupConfig(group_name=f"g{number}"))
    version = json.dumps((await ask(broker, GetAllSubscriptionGroupConfig())).json["dataVersion"])
    names: list[str] = []
    while True:
        page = GetAllSubscriptionGroupConfig(group_seq=len(names), data_version=version, max_group_num=4)
        answer = await ask(broker, page)
        names += sorted(answer.json["subscriptionGroupTable"])
        if len(names) >= int(answer.fields["totalGroupNum"]):
            break
    assert names == sorted(broker.groups.groups)


async def test_a_page_of_another_edition_starts_over(broker: Broker) -> None:
    first = sorted(broker.groups.groups)[:2]
    for version in ("", "{}", None):
        page = GetAllSubscriptionGroupConfig(group_seq=2, data_version=version, max_group_num=2)
        assert sorted((await ask(broker, page)).json["subscriptionGroupTable"]) == first


async def test_4_9_knows_no_pages(broker4: Broker) -> None:
    answer = await ask(broker4, GetAllSubscriptionGroupConfig(group_seq=0, max_group_num=1))
    assert answer.fields == {}
    assert len(answer.json["subscriptionGroupTable"]) == len(broker4.groups)


# -- members


async def online(broker: Broker, client_id: str, port: int, *topics: str, language: str = "JAVA") -> None:
    wanted = {"subString": "A", "tagsSet": ["A"], "codeSet": [65], "subVersion": 2}
    subscriptions = [{"topic": topic, **wanted} for topic in topics]
    body = {
        "clientID": client_id,
        "producerDataSet": [{"groupName": "p"}],
        "consumerDataSet": [
            {
                "groupName": "g",
                "consumeType": "CONSUME_PASSIVELY",
                "messageModel": "CLUSTERING",
                "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                "subscriptionDataSet": subscriptions,
            }
        ],
    }
    await ask(
        broker,
        HeartBeat(),
        json.dumps(body).encode(),
        connection=connect(broker, port),
        language=language,
        version=317,
    )


async def test_consumer_connections_carry_address_language_version_and_subscriptions(broker: Broker) -> None:
    await online(broker, "c", 4001, "t", language="GO")
    answer = await ask(broker, GetConsumerConnectionList(consumer_group="g"))
    assert answer.body == (
        b'{"connectionSet":[{"clientAddr":"127.0.0.1:4001","clientId":"c","language":"GO","version":317}],'
        b'"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY",'
        b'"messageModel":"CLUSTERING","subscriptionTable":{"t":{"classFilterMode":false,"codeSet":[65],'
        b'"expressionType":"TAG","subString":"A","subVersion":2,"tagsSet":["A"],"topic":"t"}}}'
    )
    answer = await ask(broker, GetConsumerConnectionList(consumer_group="nope"))
    assert (answer.code, answer.remark) == (206, "the consumer group[nope] not online")


async def test_producer_connections_and_the_table_of_all(broker: Broker, clock: VirtualClock) -> None:
    await online(broker, "c", 4001, "t")
    answer = await ask(broker, GetProducerConnectionList(producer_group="p"))
    assert answer.body == (
        b'{"connectionSet":[{"clientAddr":"127.0.0.1:4001","clientId":"c","language":"JAVA","version":317}]}'
    )
    answer = await ask(broker, GetProducerConnectionList(producer_group="nope"))
    assert (answer.code, answer.remark) == (1, "the producer group[nope] not exist")
    answer = await ask(broker, GetAllProducerInfo())
    assert answer.body == (
        b'{"data":{"p":[{"clientId":"c","language":"JAVA","lastUpdateTimestamp":%d,'
        b'"remoteIP":"/127.0.0.1:4001","version":317}]}}' % clock.now_ms()
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


async def test_consume_stats_name_offsets_and_the_time_of_the_last_consumed_message(
    broker: Broker, clock: VirtualClock
) -> None:
    first_ms = fill(broker, clock)
    broker.offsets.commit("t", "g", 0, 2)
    broker.offsets.commit_pull("t", "g", 0, 3)
    answer = await ask(broker, GetConsumeStats(consumer_group="g"))
    row = {"brokerOffset": 3, "consumerOffset": 2, "lastTimestamp": first_ms + 1000, "pullOffset": 3}
    empty = {"brokerOffset": 0, "consumerOffset": 0, "lastTimestamp": 0, "pullOffset": 0}
    assert answer.json == {"consumeTps": 0.0, "offsetTable": {queue("t", 0): row, queue("t", 1): empty}}


async def test_4_9_does_not_tell_where_the_last_pull_ended(broker4: Broker, clock: VirtualClock) -> None:
    fill(broker4, clock)
    answer = await ask(broker4, GetConsumeStats(consumer_group="g", topic="t"))
    row = {"brokerOffset": 3, "consumerOffset": 0, "lastTimestamp": 0}
    assert answer.json["offsetTable"][queue("t", 0)] == row


async def test_an_online_group_reports_only_topics_it_subscribes_to_unless_they_are_listed(
    broker: Broker, clock: VirtualClock
) -> None:
    fill(broker, clock)
    broker.topics.update(TopicConfig(topic_name="u", read_queue_nums=1, write_queue_nums=1))
    await online(broker, "c", 4001, "t")
    for topic in ("t", "u", "unknown"):
        broker.offsets.commit(topic, "g", 0, 1)

    async def topics(**fields: Any) -> set[str]:
        answer = await ask(broker, GetConsumeStats(consumer_group="g", **fields))
        return {mq.topic for mq in answer.json["offsetTable"]}

    assert await topics() == {"t"}
    assert await topics(topic="u") == set()
    assert await topics(topic_list="u;unknown") == {"u"}
    assert await topics(topic_list="u", topic="t") == {"u"}


async def test_an_unknown_group_has_no_rows(broker: Broker) -> None:
    answer = await ask(broker, GetConsumeStats(consumer_group="nope"))
    assert answer.body == b'{"consumeTps":0.0,"offsetTable":{}}'


async def test_consume_tps_adds_up_the_topics(broker: Broker, clock: VirtualClock) -> None:
    for topic in ("t", "u"):
        broker.topics.update(TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1))
        broker.offsets.commit(topic, "g", 0, 1)
        broker.statistics.message_got(topic, "g", 0, 0)
    for _ in range(30):  # ten a second in t, twenty a second in u
        clock.advance(1000)
        broker.statistics.message_got("t", "g", 10, 1000)
        broker.statistics.message_got("u", "g", 20, 1000)
        list(broker.statistics.sample(clock.now_ms()))
    tps = (await ask(broker, GetConsumeStats(consumer_group="g"))).json["consumeTps"]
    assert tps == pytest.approx(30.0, rel=0.1)
