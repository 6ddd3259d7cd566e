"""Results of concurrent listeners, compared with what the official service did for the same results."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client import ConsumeConcurrentlyStatus, MessageExt, MessageModel, MessageQueue
from pocketmq.client.delivery.send_back import SendBack, concurrent_reconsume_limit
from pocketmq.client.delivery.settlement import PulledSettlement, batches, first_failed
from pocketmq.client.offsets.offset_store import OffsetMemory
from pocketmq.client.rebalancing.process_queue import ProcessQueue

from client_vectors import FakeClock, pulled_message, vectors

Status = ConsumeConcurrentlyStatus
QUEUE = MessageQueue("t", "b", 0)


class Bench(OffsetMemory):
    """The settlement of one queue, whose broker and offset store are this object."""

    def __init__(self, model: MessageModel = MessageModel.CLUSTERING, *, sends_back: bool = True) -> None:
        super().__init__()
        self.sent: list[int] = []
        self._sends_back = sends_back
        self.queue = ProcessQueue(FakeClock())
        context: Any = SimpleNamespace(settings=SimpleNamespace(message_model=model), offsets=self)
        self.settlement = PulledSettlement(context, cast(SendBack, self), QUEUE, self.queue)

    async def send_back(self, message: MessageExt, delay_level: int) -> bool:
        self.sent.append(message.queue_offset)
        return self._sends_back


@pytest.mark.parametrize(("asked", "recorded"), vectors("concurrent-result"))
async def test_results_have_the_same_effect_as_in_java(asked: str, recorded: str) -> None:
    sends_back, model, status, ack_index, gone = asked.split(";")
    bench = Bench(MessageModel(model), sends_back=sends_back == "true")
    queue = bench.queue
    messages = [pulled_message(offset, b"x") for offset in range(10, 15)]
    queue.put(messages)
    if gone != "-1":
        queue.remove([messages[int(gone)]])
    await bench.settlement.settle(messages[:3], first_failed(Status(status), int(ack_index), 3), 0)
    sent = ",".join(map(str, bench.sent))
    cached = ",".join(map(str, sorted(queue._cached)))
    times = ",".join(str(message.reconsume_times) for message in messages)
    state = f"{queue.count} {queue.cached_bytes} {queue.max_span()} [{cached}] []"
    assert f"{sent}|update {bench.read(QUEUE)} increase|{state}|{times}" == recorded


@given(st.integers(1, 20), st.integers(-5, 30), st.sampled_from(Status))
def test_a_batch_splits_into_done_and_failed(size: int, ack_index: int, status: Status):
    failed = first_failed(status, ack_index, size)
    assert 0 <= failed <= size
    if status is Status.RECONSUME_LATER:
        assert failed == 0
    else:
        assert failed == min(max(ack_index + 1, 0), size)


def test_a_finished_batch_of_an_empty_queue_stores_nothing():
    bench = Bench()
    bench.settlement.finish([pulled_message(1)])
    assert bench.of_topic() == {}


def test_tries_are_16_by_default():
    assert [concurrent_reconsume_limit(setting) for setting in (-1, 0, 5)] == [16, 0, 5]


@given(st.lists(st.integers(), max_size=50), st.integers(1, 10))
def test_batches_are_the_pulled_messages_in_order(offsets: list[int], size: int):
    messages = [pulled_message(offset) for offset in offsets]
    cut = batches(messages, size)
    assert [message for batch in cut for message in batch] == messages
    assert all(len(batch) == size for batch in cut[:-1])
    assert all(len(batch) <= size for batch in cut)
