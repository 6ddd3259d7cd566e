"""Our own 30001. What 4.9.7 and 5.5.0 answer to 14, 15 and 29 to 32 is in the recorded conversations."""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.offset import ExplainFirstPosition, Verdict
from pocketmq.protocol.text import fastjson

from broker_fakes import MakeBroker, ask, store_message


@pytest.fixture(params=[4, 5])
async def either(request: pytest.FixtureRequest, broker_maker: MakeBroker) -> Broker:
    """A broker of each line that knows the topic T and the group G."""
    broker = broker_maker(emulate=request.param)
    broker.topics.update(TopicConfig(topic_name="T", read_queue_nums=3, write_queue_nums=3))
    broker.groups.find_or_create("G")
    return broker


async def test_there_is_a_verdict_for_each_read_queue(either: Broker) -> None:
    store_message(either, "T", 1)
    either.offsets.commit("T", "G", 1, 1)
    answer = await ask(either, ExplainFirstPosition(consumer_group="G", topic="T"))
    verdicts = fastjson.decode(answer.body, list[Verdict])
    assert [verdict.queue_id for verdict in verdicts] == [0, 1, 2]
    assert [verdict.rule for verdict in verdicts] == ["B6", "B1", "B6"]


async def test_an_unknown_topic_is_said_so(either: Broker) -> None:
    answer = await ask(either, ExplainFirstPosition(consumer_group="G", topic="Unknown"))
    assert (answer.code, answer.remark) == (17, "topic[Unknown] not exist")
