"""14 and 30 to 32: memory and times; and our own 30001.

What 4.9.7 and 5.5.0 answer to 14, 15 and 29 to 32 is in the recorded conversations `administration` and `queries`.
"""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.offset import (
    ExplainFirstPosition,
    GetEarliestMsgStoreTime,
    GetMaxOffset,
    GetMinOffset,
    QueryConsumerOffset,
    Verdict,
)
from pocketmq.protocol.text import fastjson
from pocketmq.store import VirtualClock

from broker_fakes import Asked, MakeBroker, ask, store_message


@pytest.fixture(params=[4, 5])
async def either(request: pytest.FixtureRequest, broker_maker: MakeBroker) -> Broker:
    """A broker of each line that knows the topic T and the group G."""
    return known(broker_maker(emulate=request.param))


def known(broker: Broker) -> Broker:
    broker.topics.update(TopicConfig(topic_name="T", read_queue_nums=3, write_queue_nums=3))
    broker.groups.find_or_create("G")
    return broker


async def query(broker: Broker) -> Asked:
    return await ask(broker, QueryConsumerOffset(consumer_group="G", topic="T", queue_id=0))


class TestQuery:
    async def test_asking_stores_nothing(self, either: Broker) -> None:
        store_message(either, "T")
        await query(either)
        assert either.offsets.query("T", "G", 0) == -1

    async def test_a_cold_first_message_is_not_found(self, broker_maker: MakeBroker) -> None:
        for emulate in (4, 5):
            one = known(broker_maker(emulate=emulate, store={"memory_size_bytes": 10_000}))
            store_message(one, "T")
            assert (await query(one)).fields == {"offset": "0"}
            store_message(one, "Other", body=bytes(4000))  # 30 per cent of memory is 3000
            assert (await query(one)).code == 22

    async def test_always_hot_never_is(self, broker_maker: MakeBroker) -> None:
        one = known(broker_maker(store={"memory_size_bytes": 0, "residency": "always-hot"}))
        store_message(one, "T")
        assert (await query(one)).fields == {"offset": "0"}


class TestQueueLimits:
    async def test_both_ends_of_a_queue(self, either: Broker, clock: VirtualClock) -> None:
        first_ms = clock.now_ms()
        store_message(either, "T", 1)
        clock.advance(1000)
        store_message(either, "T", 1)
        assert (await ask(either, GetMaxOffset(topic="T", queue_id=1))).fields == {"offset": "2"}
        assert (await ask(either, GetMinOffset(topic="T", queue_id=1))).fields == {"offset": "0"}
        answer = await ask(either, GetEarliestMsgStoreTime(topic="T", queue_id=1))
        assert answer.fields == {"timestamp": str(first_ms)}


class TestExplain:
    async def test_there_is_a_verdict_for_each_read_queue(self, either: Broker) -> None:
        store_message(either, "T", 1)
        either.offsets.commit("T", "G", 1, 1)
        answer = await ask(either, ExplainFirstPosition(consumer_group="G", topic="T"))
        verdicts = fastjson.decode(answer.body, list[Verdict])
        assert [verdict.queue_id for verdict in verdicts] == [0, 1, 2]
        assert [verdict.rule for verdict in verdicts] == ["B6", "B1", "B6"]

    async def test_an_unknown_topic_is_said_so(self, either: Broker) -> None:
        answer = await ask(either, ExplainFirstPosition(consumer_group="G", topic="Unknown"))
        assert (answer.code, answer.remark) == (17, "topic[Unknown] not exist")
