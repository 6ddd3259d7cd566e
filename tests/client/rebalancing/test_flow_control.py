"""Limits that stop the pull loop of a queue."""

import pytest
from pocketmq.client.rebalancing.flow_control import is_over_limit, share_of_topic
from pocketmq.client.rebalancing.process_queue import ProcessQueue
from pocketmq.client.values.message import MessageExt

from client_vectors import FakeClock, pulled_message

MIB = 1024 * 1024


def is_held(messages: list[MessageExt], *, orderly: bool = False) -> bool:
    queue = ProcessQueue(FakeClock())
    queue.put(messages)
    return is_over_limit(queue, count=10, size_mib=2, span=None if orderly else 20)


def test_a_limit_is_exceeded_not_reached():
    assert not is_held([])
    assert not is_held([pulled_message(offset) for offset in range(10)])
    assert is_held([pulled_message(offset) for offset in range(11)])
    assert not is_held([pulled_message(1, b"x" * (3 * MIB - 1))])  # only whole MiB count
    assert is_held([pulled_message(1, b"x" * 3 * MIB)])
    assert not is_held([pulled_message(1), pulled_message(21)])
    assert is_held([pulled_message(1), pulled_message(22)])


def test_a_span_does_not_stop_an_ordered_consumer():
    assert not is_held([pulled_message(1), pulled_message(9999)], orderly=True)


def test_taken_messages_count():
    queue = ProcessQueue(FakeClock())
    queue.put([pulled_message(offset) for offset in range(11)])
    queue.take(5)
    assert is_over_limit(queue, count=10, size_mib=2, span=None)


@pytest.mark.parametrize(
    ("for_topic", "queue_count", "expected"),
    [(-1, 4, 1000), (100, 0, 1000), (100, 4, 25), (100, 3, 33), (3, 4, 1)],
)
def test_queues_share_the_limit_of_the_topic(for_topic: int, queue_count: int, expected: int):
    assert share_of_topic(for_topic, queue_count, 1000) == expected
