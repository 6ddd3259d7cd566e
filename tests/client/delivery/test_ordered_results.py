"""Results of ordered listeners, compared with what the official service did for the same results."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pocketmq.client import ConsumeOrderlyContext, ConsumeOrderlyStatus, MessageExt, MessageQueue
from pocketmq.client.delivery.ordered_delivery import OrderedDelivery, suspend_ms
from pocketmq.client.delivery.send_back import SendBack, ordered_reconsume_limit
from pocketmq.client.offsets.offset_store import OffsetMemory
from pocketmq.client.rebalancing.process_queue import ProcessQueue

from client_vectors import FakeClock, pulled_message, vectors

Status = ConsumeOrderlyStatus
QUEUE = MessageQueue("t", "b", 0)


class Bench(OffsetMemory):
    """A delivery whose broker and offset store are this object."""

    def __init__(self, max_times: int, *, sends: bool) -> None:
        super().__init__()
        self.sent: list[int] = []
        self._sends = sends
        settings = SimpleNamespace(
            max_reconsume_times=max_times, suspend_current_queue_time_millis=1000, consume_thread_min=1
        )
        context: Any = SimpleNamespace(group="g", settings=settings, offsets=self)
        self.delivery = OrderedDelivery(context, cast(Any, None), cast(SendBack, self), None)

    async def send_to_dead_letters(self, message: MessageExt) -> bool:
        self.sent.append(message.queue_offset)
        return self._sends


@pytest.mark.parametrize(("asked", "recorded"), vectors("ordered-result"))
async def test_results_have_the_same_effect_as_in_java(asked: str, recorded: str) -> None:
    auto_commit, status, max_times, sends, tries = asked.split(";")
    bench, queue = Bench(int(max_times), sends=sends == "true"), ProcessQueue(FakeClock())
    messages = [pulled_message(offset, b"x") for offset in range(10, 14)]
    queue.put(messages)
    queue.take(1)
    batch = queue.take(2)
    for message, times in zip(batch, tries.split(","), strict=True):
        message.reconsume_times = int(times)
    context = ConsumeOrderlyContext(QUEUE, auto_commit=auto_commit == "true")
    pause_ms = await bench.delivery._settle(batch, context.message_queue, queue, Status(status), context)
    sent = ",".join(map(str, bench.sent))
    stored = f"update {bench.read(QUEUE)} overwrite" if bench.of_topic() else ""
    cached, taken = (",".join(map(str, sorted(part))) for part in (queue._cached, queue._taken))
    state = f"{queue.count} {queue.cached_bytes} {queue.max_span()} [{cached}] [{taken}]"
    times_after = ",".join(str(message.reconsume_times) for message in messages)
    goes_on = str(pause_ms is None).lower()
    assert f"{goes_on}|{sent}|{stored}|{state}|{times_after}" == recorded


@pytest.mark.parametrize(
    ("context_ms", "setting_ms", "expected_ms"),
    [
        (-1, 1000, 1000),
        (-1, 5, 10),
        (-1, -1, 10),
        (0, 1000, 10),
        (-2, 1000, 10),
        (500, 1000, 500),
        (30_001, 1000, 30_000),
        (-1, 99_999, 30_000),
    ],
)
def test_pauses_stay_between_10_ms_and_30_s(context_ms: int, setting_ms: int, expected_ms: int):
    assert suspend_ms(context_ms, setting_ms) == expected_ms


def test_tries_are_unlimited_by_default():
    assert [ordered_reconsume_limit(setting) for setting in (-1, 0, 5)] == [2**31 - 1, 0, 5]
