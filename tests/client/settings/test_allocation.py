"""Shares of queues, compared with the results of Java's strategies for the same lists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client.errors import AllocationFailed
from pocketmq.client.settings.allocation import (
    AllocateMessageQueueAveragely,
    AllocateMessageQueueAveragelyByCircle,
    AllocateMessageQueueConsistentHash,
    AllocateMessageQueueStrategy,
    ring_hash,
)
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.queue_allocation import sort_client_ids, sort_queues

from client_vectors import plain, refusal, vectors

AVERAGELY = AllocateMessageQueueAveragely()
CIRCLE = AllocateMessageQueueAveragelyByCircle()
STRATEGIES: dict[str, AllocateMessageQueueStrategy] = {
    strategy.name: strategy for strategy in (AVERAGELY, CIRCLE, AllocateMessageQueueConsistentHash())
}


def queues_of(text: str) -> list[MessageQueue]:
    parts = [part.rpartition(":") for part in text.split(",") if part]
    return [MessageQueue("TopicTest", broker_name, int(queue_id)) for broker_name, _, queue_id in parts]


@pytest.mark.parametrize(("asked", "recorded"), vectors("allocate"))
def test_shares_are_javas(asked: str, recorded: str):
    name, queue_text, ids, asking = asked.split(";")
    queues = queues_of(queue_text)
    client_ids = [part for part in ids.split(",") if part]
    assert sort_queues(queues) == queues
    assert sort_client_ids(client_ids) == client_ids
    for client_id, expected in zip(asking.split(","), recorded.split(";"), strict=True):
        refused = refusal(expected)
        if refused is None:
            assert STRATEGIES[name].allocate("g", client_id, queues, client_ids) == queues_of(expected)
        else:
            with pytest.raises(AllocationFailed) as caught:
                STRATEGIES[name].allocate("g", client_id, queues, client_ids)
            assert str(caught.value) == refused[1]


@pytest.mark.parametrize(("key", "place"), vectors("ring-hash"))
def test_ring_hash_is_javas(key: str, place: str):
    assert ring_hash(plain(key)) == int(place)


@pytest.mark.parametrize(("virtual_nodes", "expected"), vectors("virtual-nodes"))
def test_number_of_virtual_nodes_shapes_the_ring_as_in_java(virtual_nodes: str, expected: str):
    queues = queues_of("broker-a:0,broker-a:1,broker-a:2,broker-a:3")
    strategy = AllocateMessageQueueConsistentHash(int(virtual_nodes))
    assert strategy.allocate("g", "C0", queues, ["C0", "C1"]) == queues_of(expected)


def test_a_negative_number_of_virtual_nodes_is_refused():
    with pytest.raises(AllocationFailed, match="illegal virtualNodeCnt :-1"):
        AllocateMessageQueueConsistentHash(-1)


def test_a_hash_function_of_the_user_replaces_the_ring_hash():
    queues = queues_of("b:0,b:1")
    strategy = AllocateMessageQueueConsistentHash(1, lambda key: 5 if key == "C1-0" else 9)
    # Points: C0 at 9, C1 at 5; both queues at 9.
    assert strategy.allocate("g", "C0", queues, ["C0", "C1"]) == queues
    assert strategy.allocate("g", "C1", queues, ["C0", "C1"]) == []


def test_texts_sort_by_utf16_unit_as_in_java():
    """U+1F600 is written with surrogates, which sort below U+FF5E in UTF-16 and above it by code point."""
    assert sort_client_ids(["\uff5e", "\U0001f600"]) == ["\U0001f600", "\uff5e"]


sharing = st.sampled_from([AVERAGELY, CIRCLE, AllocateMessageQueueConsistentHash()])


@given(sharing, st.integers(1, 40), st.integers(1, 12))
def test_every_queue_belongs_to_exactly_one_client(
    strategy: AllocateMessageQueueStrategy, queue_count: int, client_count: int
):
    queues = sort_queues(MessageQueue("t", f"b{number % 3}", number) for number in range(queue_count))
    client_ids = sort_client_ids(f"10.0.0.{number}@{number}" for number in range(client_count))
    shares = [strategy.allocate("g", client_id, queues, client_ids) for client_id in client_ids]
    assert sorted(queue for share in shares for queue in share) == sorted(queues)
    if not isinstance(strategy, AllocateMessageQueueConsistentHash):
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
