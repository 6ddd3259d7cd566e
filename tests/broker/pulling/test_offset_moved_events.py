"""OFFSET_MOVED_EVENT. The message was read from the log of an official 4.9.7; 5.5.0 wrote none."""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.flags import PULL_SUBSCRIPTION
from pocketmq.protocol.message.record import Record, decode_record
from pocketmq.protocol.message.topics import OFFSET_MOVED_TOPIC
from pocketmq.protocol.requests.pull import PullMessage

from broker_fakes import ask, store_message

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
    request = PullMessage(
        consumer_group="TOOLS_CONSUMER",
        topic="admin_topic",
        queue_id=0,
        queue_offset=offset,
        max_msg_nums=32,
        sys_flag=PULL_SUBSCRIPTION,
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription="*",
        sub_version=0,
    )
    return (await ask(broker, request)).code


def event(broker: Broker) -> Record:
    entry = broker.store.queue_unit(OFFSET_MOVED_TOPIC, 0, 0)
    assert entry is not None
    record = broker.store.read_record(entry[0], entry[1])
    assert record is not None
    return decode_record(record)


async def test_line_4_writes_down_a_corrected_pull(broker4: Broker) -> None:
    assert await pull(broker4, 99) == 21
    written = event(broker4)
    assert bytes(written.body) == BODY
    assert bytes(written.properties) == PROPERTIES


@pytest.mark.parametrize("offset", [0, 3])
async def test_a_pull_with_a_valid_offset_leaves_no_event(broker4: Broker, offset: int) -> None:
    await pull(broker4, offset)
    assert broker4.store.max_offset(OFFSET_MOVED_TOPIC, 0) == 0


async def test_line_5_writes_nothing(broker: Broker) -> None:
    assert await pull(broker, 99) == 21
    assert broker.store.max_offset(OFFSET_MOVED_TOPIC, 0) == 0
