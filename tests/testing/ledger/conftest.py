"""The topic that most tests read: it has one queue."""

import pytest
from pocketmq.testing import RocketMQ


@pytest.fixture
def topic(one: RocketMQ) -> str:
    return one.topic("orders", queues=1)
