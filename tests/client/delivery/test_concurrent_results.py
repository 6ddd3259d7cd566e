"""Results of concurrent listeners, compared with what the official service did for the same results."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client.delivery.send_back import concurrent_reconsume_limit
from pocketmq.client.delivery.settlement import (
    batches,
    finish,
    first_failed,
    to_send_back,
)
from pocketmq.client.rebalancing.process_queue import ProcessQueue
from pocketmq.client.values.listener_returns import ConsumeConcurrentlyStatus
from pocketmq.protocol.bodies.client import MessageModel

from client_vectors import FakeClock, pulled_message, vectors

Status = ConsumeConcurrentlyStatus


@pytest.mark.parametrize(("asked", "recorded"), vectors("concurrent-result"))
def test_results_have_the_same_effect_as_in_java(asked: str, recorded: str):
    sends_back, model, status, ack_index, gone = asked.split(";")
    queue = ProcessQueue(FakeClock())
    messages = [pulled_message(offset, b"x") for offset in range(10, 15)]
    queue.put(messages)
    if gone != "-1":
        queue.remove([messages[int(gone)]])
    batch = messages[:3]
    failed = to_send_back(
        queue, batch, Status(status), ack_index=int(ack_index), message_model=MessageModel(model)
    )
    offset = finish(queue, batch, [] if sends_back == "true" else failed)
    sent = ",".join(str(message.queue_offset) for message in failed)
    cached = ",".join(map(str, sorted(queue._cached)))
    times = ",".join(str(message.reconsume_times) for message in messages)
    state = f"{queue.count} {queue.cached_bytes} {queue.max_span()} [{cached}] []"
    assert f"{sent}|update {offset} increase|{state}|{times}" == recorded


@given(st.integers(1, 20), st.integers(-5, 30), st.sampled_from(Status))
def test_a_batch_splits_into_done_and_failed(size: int, ack_index: int, status: Status):
    failed = first_failed(status, ack_index, size)
    assert 0 <= failed <= size
    if status is Status.RECONSUME_LATER:
        assert failed == 0
    else:
        assert failed == min(max(ack_index + 1, 0), size)


def test_a_finished_batch_of_an_empty_queue_stores_nothing():
    queue = ProcessQueue(FakeClock())
    assert finish(queue, [pulled_message(1)]) == -1


def test_tries_are_16_by_default():
    assert [concurrent_reconsume_limit(setting) for setting in (-1, 0, 5)] == [16, 0, 5]


@given(st.lists(st.integers(), max_size=50), st.integers(1, 10))
def test_batches_are_the_pulled_messages_in_order(offsets: list[int], size: int):
    messages = [pulled_message(offset) for offset in offsets]
    cut = batches(messages, size)
    assert [message for batch in cut for message in batch] == messages
    assert all(len(batch) == size for batch in cut[:-1])
    assert all(len(batch) <= size for batch in cut)
