"""A broker with messages to pop."""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.topic_config import TopicConfig

from broker_fakes import store_message


@pytest.fixture
def filled(broker: Broker) -> Broker:
    """Four messages m0 to m3 in queue 0 of a topic with one queue; the timer is started."""
    broker.delayed.timer.start()
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1))
    for number in range(4):
        store_message(broker, "orders", 0, f"m{number}".encode(), {"TAGS": "AB"[number % 2]})
    return broker
