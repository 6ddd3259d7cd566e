"""OFFSET_MOVED_EVENT. The message was read from the log of an official 4.9.7; 5.5.0 wrote none."""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.topics import OFFSET_MOVED_TOPIC

from broker_fakes import ask, pull_request, record_at, store_message

BODY = (
    b'{"consumerGroup":"TOOLS_CONSUMER","messageQueue":{"brokerName":"broker-a","queueId":0,"topic":"admin_topic"},'
    b'"offsetNew":3,"offsetRequest":99}'
)
PROPERTIES = b"KEYS\x01TOOLS_CONSUMER\x02DELAY\x010\x02TAGS\x01TOOLS_CONSUMER"


async def pull(broker: Broker, offset: int) -> int:
    """The response code of a pull from a queue of three messages."""
    if "admin_topic" not in broker.topics:
        broker.topics.update(TopicConfig(topic_name="admin_topic", read_queue_nums=1, write_queue_nums=1))
        for _ in range(3):
            store_message(broker, "admin_topic")
    request = pull_request(offset, consumer_group="TOOLS_CONSUMER", topic="admin_topic")
    return (await ask(broker, request)).code


async def test_line_4_writes_down_a_corrected_pull(broker4: Broker) -> None:
    assert await pull(broker4, 99) == 21
    written = record_at(broker4, OFFSET_MOVED_TOPIC)
    assert bytes(written.body) == BODY
    assert bytes(written.properties) == PROPERTIES


@pytest.mark.parametrize("offset", [0, 3])
async def test_a_pull_with_a_valid_offset_leaves_no_event(broker4: Broker, offset: int) -> None:
    await pull(broker4, offset)
    assert broker4.store.max_offset(OFFSET_MOVED_TOPIC, 0) == 0


async def test_line_5_writes_nothing(broker: Broker) -> None:
    assert await pull(broker, 99) == 21
    assert broker.store.max_offset(OFFSET_MOVED_TOPIC, 0) == 0
