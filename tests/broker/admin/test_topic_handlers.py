"""Topic administration: limits, editions of the table, times, slaves, and when success is answered.

What 4.9.7 and 5.5.0 answer to each request is in the recorded conversations `administration` and `queries`.
"""

import asyncio
import json
from typing import Any, cast

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.cluster.registration import Registration
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.topic import (
    DeleteTopicInBroker,
    GetTopicStatsInfo,
    UpdateAndCreateTopic,
    UpdateAndCreateTopicList,
)
from pocketmq.store import VirtualClock

from broker_fakes import Asked, MakeBroker, ask, store_message


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


async def test_4_9_does_not_look_at_order_and_attributes(broker4: Broker) -> None:
    await ask(broker4, change("t", order=True, attributes="+nonsense"))
    topic = broker4.topics.find("t")
    assert topic is not None
    assert (topic.order, topic.attributes) == (False, {})


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

    async def wait_until_sent(self) -> None:
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
