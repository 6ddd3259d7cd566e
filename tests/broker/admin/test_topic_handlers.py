"""Topic administration, as the official brokers 4.9.7 and 5.5.0 answered the same frames."""

import asyncio
import json
from typing import Any, cast

import pytest
from pocketmq.broker.admin import topic_handlers
from pocketmq.broker.broker import Broker
from pocketmq.broker.cluster.registration import Registration
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.topic import (
    DeleteTopicInBroker,
    GetAllTopicConfig,
    GetSystemTopicListFromBroker,
    GetTopicConfig,
    GetTopicStatsInfo,
    QueryTopicConsumeByWho,
    UpdateAndCreateTopic,
    UpdateAndCreateTopicList,
)
from pocketmq.store import VirtualClock

from broker_fakes import Asked, MakeBroker, ask, store_message

assert topic_handlers  # its handlers are what is tested

UNSET = "not set any response code"
ILLEGAL = "contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"


def change(topic: str, **more: Any) -> UpdateAndCreateTopic:
    fields: dict[str, Any] = {
        "default_topic": "TBW102",
        "read_queue_nums": 4,
        "write_queue_nums": 2,
        "perm": 6,
        "topic_filter_type": "SINGLE_TAG",
    }
    return UpdateAndCreateTopic(topic=topic, **{**fields, **more})


async def change_all(broker: Broker, *configs: dict[str, Any] | str) -> Asked:
    whole = [
        {
            "readQueueNums": 1,
            "writeQueueNums": 1,
            "perm": 6,
            **({"topicName": one} if isinstance(one, str) else one),
        }
        for one in configs
    ]
    return await ask(broker, UpdateAndCreateTopicList(), json.dumps({"topicConfigList": whole}).encode())


# -- 17


async def test_success_carries_the_remark_the_official_handler_forgot_to_clear(
    broker: Broker, broker4: Broker
) -> None:
    for one in (broker, broker4):
        answer = await ask(one, change("t"))
        assert (answer.code, answer.remark) == (0, UNSET)


async def test_a_topic_is_created_as_requested_and_read_back(broker: Broker) -> None:
    await ask(broker, change("t", order=True, topic_sys_flag=1))
    assert (await ask(broker, GetTopicConfig(topic="t"))).body == (
        b'{"attributes":{},"order":true,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG",'
        b'"topicName":"t","topicSysFlag":1,"writeQueueNums":2}'
    )
    answer = await ask(broker, GetTopicConfig(topic="nope"))
    assert (answer.code, answer.remark) == (17, "No topic in this broker. topic: nope")


async def test_4_9_does_not_look_at_order_and_attributes(broker4: Broker) -> None:
    await ask(broker4, change("t", order=True, attributes="+nonsense"))
    topic = broker4.topics.find("t")
    assert topic is not None
    assert (topic.order, topic.attributes) == (False, {})


@pytest.mark.parametrize(
    ("topic", "remark", "remark4"),
    [
        ("  ", "The specified topic is blank.", "The specified topic is blank."),
        ("a b", f"The specified topic: a b, {ILLEGAL}", f"The specified topic {ILLEGAL}"),
        (
            "a" * 128,
            f"The specified topic: {'a' * 128}, is longer than topic max length: 127",
            "The specified topic is longer than topic max length.",
        ),
        ("TBW102", *["The topic[TBW102] is conflict with system topic."] * 2),
        ("rmq_sys_x", *["The topic[rmq_sys_x] is conflict with system topic."] * 2),
        ("DefaultCluster", *["The topic[DefaultCluster] is conflict with system topic."] * 2),
    ],
)
async def test_bad_names_are_refused_in_the_words_of_each_line(
    broker: Broker, broker4: Broker, topic: str, remark: str, remark4: str
) -> None:
    for one, code, words in ((broker, 29, remark), (broker4, 1, remark4)):
        answer = await ask(one, change(topic))
        assert (answer.code, answer.remark) == (code, words)


@pytest.mark.parametrize("member", ["read_queue_nums", "write_queue_nums"])
async def test_a_topic_of_a_million_queues_is_refused(broker: Broker, broker4: Broker, member: str) -> None:
    for one, code in ((broker, 29), (broker4, 1)):
        answer = await ask(one, change("t", **{member: 1_000_000}))
        assert answer.code == code
        assert "at most 16384" in (answer.remark or "")
        assert one.topics.find("t") is None
    listed = {"topicName": "t", "readQueueNums": 1_000_000}
    assert (await change_all(broker, listed)).code == 29
    assert broker.topics.find("t") is None


async def test_an_unknown_filter_type_is_refused(broker: Broker) -> None:
    answer = await ask(broker, change("t", topic_filter_type="X"))
    assert answer.code == 1
    assert answer.remark is not None
    assert answer.remark.endswith("RemotingCommandException: topicFilterType = [X] value invalid")


@pytest.mark.parametrize(
    ("attributes", "code", "remark"),
    [
        ("+nope=1", 1, "unsupported key: nope"),
        ("nope", 1, "delete attribute format is wrong: nope"),
        ("+nope", 1, "delete attribute format is wrong: +nope"),
        ("+message.type=MIXED", 29, "MIXED message type is not supported."),
        ("-message.type", 1, "only add attribute is supported while creating topic. key: message.type"),
    ],
)
async def test_bad_attributes_are_refused_and_make_no_topic(
    broker: Broker, attributes: str, code: int, remark: str
) -> None:
    answer = await ask(broker, change("t", attributes=attributes))
    assert (answer.code, answer.remark) == (code, remark)
    assert "t" not in broker.topics


async def test_attributes_are_added_and_removed(broker: Broker) -> None:
    await ask(broker, change("t", attributes="+message.type=FIFO"))
    topic = broker.topics.find("t")
    assert topic is not None
    assert topic.attributes == {"message.type": "FIFO"}
    assert (await ask(broker, change("t", attributes="-message.type"))).code == 0
    answer = await ask(broker, change("t", attributes="-message.type"))
    assert (answer.code, answer.remark) == (1, "attempt to delete a nonexistent key: message.type")


async def test_the_same_topic_again_is_no_new_edition_in_5_x_but_one_in_4_9(
    broker: Broker, broker4: Broker
) -> None:
    for one, editions in ((broker, 0), (broker4, 1)):
        await ask(one, change("t"))
        counter = one.topics.data_version.counter
        await ask(one, change("t"))
        assert one.topics.data_version.counter - counter == editions


async def test_a_slave_refuses_changes_in_4_9_only(broker_maker: MakeBroker) -> None:
    slave4 = broker_maker(emulate=4, store={"broker_role": "SLAVE"})
    for request in (change("t"), DeleteTopicInBroker(topic="t")):
        answer = await ask(slave4, request)
        assert answer.code == 1
        assert answer.remark is not None
        assert answer.remark.startswith("Can't modify topic or subscription group from slave broker")
    assert (await ask(broker_maker(store={"broker_role": "SLAVE"}), change("t"))).code == 0


class SlowNameServers:
    """Registration that settles when the test says so."""

    def __init__(self) -> None:
        self.known = asyncio.Event()

    async def settled(self) -> None:
        await self.known.wait()

    def topics_changed(self) -> None:
        """Nothing is sent to anybody."""


async def test_success_is_answered_when_the_name_servers_know_the_topic(broker: Broker) -> None:
    name_servers = SlowNameServers()
    broker.cluster.registration = cast(Registration, name_servers)
    for request in (ask(broker, change("t")), change_all(broker, "u")):
        name_servers.known.clear()
        asked = asyncio.ensure_future(request)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not asked.done()
        name_servers.known.set()
        assert (await asked).code == 0


# -- 18


async def test_several_topics_are_made_at_once(broker: Broker) -> None:
    answer = await change_all(broker, "one", {"topicName": "two", "attributes": {"+message.type": "FIFO"}})
    assert (answer.code, answer.remark) == (0, UNSET)
    two = broker.topics.find("two")
    assert two is not None
    assert two.attributes == {"message.type": "FIFO"}
    assert "one" in broker.topics


async def test_one_topic_that_already_exists_ends_the_list_without_a_change(broker: Broker) -> None:
    await change_all(broker, "one")
    assert (await change_all(broker, "one", "two")).code == 0
    assert (await change_all(broker, "two", "one")).code == 0
    assert "two" not in broker.topics


async def test_one_bad_name_ends_the_list_without_a_change(broker: Broker) -> None:
    answer = await change_all(broker, "one", "a b")
    assert (answer.code, answer.remark) == (29, f"The specified topic: a b, {ILLEGAL}")
    assert "one" not in broker.topics
    assert (await ask(broker, UpdateAndCreateTopicList())).code == 1


# -- 215


async def test_a_deleted_topic_loses_queues_offsets_and_pop_retry_topics(broker: Broker) -> None:
    await change_all(broker, "t", "%RETRY%g_t", "%RETRY%g")
    store_message(broker, "t")
    broker.offsets.commit("t", "g", 0, 1)
    answer = await ask(broker, DeleteTopicInBroker(topic="t"))
    assert (answer.code, answer.remark) == (0, None)
    assert "t" not in broker.topics
    assert "%RETRY%g_t" not in broker.topics
    assert "%RETRY%g" in broker.topics
    assert broker.offsets.query("t", "g", 0) == -1
    assert broker.store.max_offset("t", 0) == 0
    assert (await ask(broker, DeleteTopicInBroker(topic="t"))).code == 0


async def test_4_9_leaves_the_offsets(broker4: Broker) -> None:
    await ask(broker4, change("t"))
    store_message(broker4, "t")
    broker4.offsets.commit("t", "g", 0, 1)
    await ask(broker4, DeleteTopicInBroker(topic="t"))
    assert broker4.offsets.query("t", "g", 0) == 1
    assert broker4.store.max_offset("t", 0) == 0


async def test_what_cannot_be_deleted(broker: Broker, broker4: Broker) -> None:
    blank, system = "The specified topic is blank.", "The topic[TBW102] is conflict with system topic."
    for one, code in ((broker, 29), (broker4, 1)):
        for topic, remark in ((" ", blank), ("TBW102", system)):
            answer = await ask(one, DeleteTopicInBroker(topic=topic))
            assert (answer.code, answer.remark) == (code, remark)
    assert (
        await ask(broker, DeleteTopicInBroker(topic="a b"))
    ).code == 0  # 5.x does not look at the characters
    assert (await ask(broker4, DeleteTopicInBroker(topic="a b"))).code == 1


# -- 21


async def test_the_whole_table_goes_to_callers_that_name_no_page(broker: Broker) -> None:
    answer = await ask(broker, GetAllTopicConfig())
    assert answer.fields == {"totalTopicNum": str(len(broker.topics))}
    assert answer.json.keys() == {
        "dataVersion",
        "mappingDataVersion",
        "topicConfigTable",
        "topicQueueMappingDetailMap",
        "topicQueueMappingInfoMap",
    }
    assert answer.json["topicConfigTable"].keys() == broker.topics.topics.keys()


async def test_pages_follow_each_other_until_the_total(broker: Broker) -> None:
    version = json.dumps((await ask(broker, GetAllTopicConfig())).json["dataVersion"])
    names: list[str] = []
    while True:
        page = GetAllTopicConfig(topic_seq=len(names), data_version=version, max_topic_num=4)
        answer = await ask(broker, page)
        names += sorted(answer.json["topicConfigTable"])
        if len(names) >= int(answer.fields["totalTopicNum"]):
            break
    assert names == sorted(broker.topics.topics)
    beyond = GetAllTopicConfig(topic_seq=9999, data_version=version, max_topic_num=4)
    assert (await ask(broker, beyond)).json["topicConfigTable"] == {}


async def test_a_page_of_another_edition_starts_over(broker: Broker) -> None:
    page = GetAllTopicConfig(topic_seq=3, data_version="", max_topic_num=3)
    assert sorted((await ask(broker, page)).json["topicConfigTable"]) == sorted(broker.topics.topics)[:3]


async def test_4_9_knows_no_pages(broker4: Broker) -> None:
    answer = await ask(broker4, GetAllTopicConfig(topic_seq=0, max_topic_num=1))
    assert answer.fields == {}
    assert len(answer.json["topicConfigTable"]) == len(broker4.topics)


# -- 202, 300, 305


async def test_topic_stats_cover_read_and_write_queues_with_the_time_of_the_last_message(
    broker: Broker, clock: VirtualClock
) -> None:
    await ask(broker, change("t"))
    store_message(broker, "t")
    clock.advance(5000)
    store_message(broker, "t")
    answer = await ask(broker, GetTopicStatsInfo(topic="t"))
    table = answer.json["offsetTable"]
    assert sorted(queue.queue_id for queue in table) == [0, 1, 2, 3]
    first, second = MessageQueue("t", "broker-a", 0), MessageQueue("t", "broker-a", 1)
    assert table[first] == {"lastUpdateTimestamp": clock.now_ms(), "maxOffset": 2, "minOffset": 0}
    assert table[second] == {"lastUpdateTimestamp": 0, "maxOffset": 0, "minOffset": 0}
    assert answer.json["topicPutTps"] == 0.0


async def test_4_9_topic_stats_cover_write_queues_only(broker4: Broker) -> None:
    await ask(broker4, change("t"))
    answer = await ask(broker4, GetTopicStatsInfo(topic="t"))
    assert answer.json.keys() == {"offsetTable"}
    assert sorted(queue.queue_id for queue in answer.json["offsetTable"]) == [0, 1]


async def test_stats_of_an_unknown_topic(broker: Broker) -> None:
    answer = await ask(broker, GetTopicStatsInfo(topic="nope"))
    assert (answer.code, answer.remark) == (17, "topic[nope] not exist")


async def test_consumers_of_a_topic_are_groups_online_and_groups_with_offsets(broker: Broker) -> None:
    broker.offsets.commit("t", "stored", 0, 1)
    broker.offsets.commit("u", "other", 0, 1)
    assert (await ask(broker, QueryTopicConsumeByWho(topic="t"))).body == b'{"groupList":["stored"]}'
    assert (await ask(broker, QueryTopicConsumeByWho(topic="nope"))).body == b'{"groupList":[]}'


async def test_system_topics_of_5_x(broker: Broker) -> None:
    assert (await ask(broker, GetSystemTopicListFromBroker())).json == {
        "topicList": [
            "BenchmarkTest",
            "CHECKPOINT_TOPIC",
            "DefaultCluster",
            "DefaultCluster_REPLY_TOPIC",
            "OFFSET_MOVED_EVENT",
            "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
            "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC",
            "RMQ_SYS_TRACE_TOPIC",
            "RMQ_SYS_TRANS_HALF_TOPIC",
            "RMQ_SYS_TRANS_OP_HALF_TOPIC",
            "SCHEDULE_TOPIC_XXXX",
            "SELF_TEST_TOPIC",
            "TBW102",
            "TRANS_CHECK_MAX_TIME_TOPIC",
            "broker-a",
            "rmq_sys_REVIVE_LOG_DefaultCluster",
            "rmq_sys_SYNC_BROKER_MEMBER_broker-a",
            "rmq_sys_wheel_timer",
        ]
    }
