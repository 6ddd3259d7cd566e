"""Limits that stop the pull loop of a queue."""

import pytest
from pocketmq.client.rebalancing.flow_control import Hold, hold_back, share_of_topic
from pocketmq.client.rebalancing.process_queue import ProcessQueue
from pocketmq.client.values.message import MessageExt

from client_vectors import FakeClock, pulled_message

MIB = 1024 * 1024


def hold(messages: list[MessageExt], *, orderly: bool = False) -> Hold | None:
    queue = ProcessQueue(FakeClock())
    queue.put(messages)
    return hold_back(queue, max_count=10, max_size_mib=2, max_span=20, orderly=orderly)


def test_a_limit_is_exceeded_not_reached():
    assert hold([]) is None
    assert hold([pulled_message(offset) for offset in range(10)]) is None
    assert hold([pulled_message(offset) for offset in range(11)]) is Hold.COUNT
    assert hold([pulled_message(1, b"x" * (3 * MIB - 1))]) is None  # only whole MiB count
    assert hold([pulled_message(1, b"x" * 3 * MIB)]) is Hold.SIZE
    assert hold([pulled_message(1), pulled_message(21)]) is None
    assert hold([pulled_message(1), pulled_message(22)]) is Hold.SPAN


def test_a_span_does_not_stop_an_ordered_consumer():
    assert hold([pulled_message(1), pulled_message(9999)], orderly=True) is None


def test_taken_messages_count():
    queue = ProcessQueue(FakeClock())
    queue.put([pulled_message(offset) for offset in range(11)])
    queue.take(5)
    assert hold_back(queue, max_count=10, max_size_mib=2, max_span=20, orderly=True) is Hold.COUNT


@pytest.mark.parametrize(
    ("for_topic", "queue_count", "expected"),
    [(-1, 4, 1000), (100, 0, 1000), (100, 4, 25), (100, 3, 33), (3, 4, 1)],
)
def test_queues_share_the_limit_of_the_topic(for_topic: int, queue_count: int, expected: int):
    assert share_of_topic(for_topic, queue_count, 1000) == expected
