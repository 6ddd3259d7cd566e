"""Results of ordered listeners, compared with what the official service did for the same results."""

import pytest
from pocketmq.client.delivery.ordered_delivery import exhausted, settle, suspend_ms
from pocketmq.client.delivery.send_back import ordered_reconsume_limit
from pocketmq.client.rebalancing.process_queue import ProcessQueue
from pocketmq.client.values.listener_returns import ConsumeOrderlyStatus

from client_vectors import FakeClock, pulled_message, vectors

Status = ConsumeOrderlyStatus


@pytest.mark.parametrize(("asked", "recorded"), vectors("ordered-result"))
def test_results_have_the_same_effect_as_in_java(asked: str, recorded: str):
    auto_commit, status, max_times, sends, tries = asked.split(";")
    queue = ProcessQueue(FakeClock())
    messages = [pulled_message(offset, b"x") for offset in range(10, 14)]
    queue.put(messages)
    queue.take(1)
    batch = queue.take(2)
    for message, times in zip(batch, tries.split(","), strict=True):
        message.reconsume_times = int(times)
    limit = ordered_reconsume_limit(int(max_times))
    to_send = exhausted(batch, limit) if status == "SUSPEND_CURRENT_QUEUE_A_MOMENT" else []
    outcome = settle(
        queue,
        batch,
        Status(status),
        auto_commit=auto_commit == "true",
        max_times=limit,
        not_sent=[] if sends == "true" else to_send,
    )
    sent = ",".join(str(message.queue_offset) for message in to_send)
    stored = f"update {outcome.offset} overwrite" if outcome.offset >= 0 else ""
    cached, taken = (",".join(map(str, sorted(part))) for part in (queue._cached, queue._taken))
    state = f"{queue.count} {queue.cached_bytes} {queue.max_span()} [{cached}] [{taken}]"
    times_after = ",".join(str(message.reconsume_times) for message in messages)
    goes_on = str(not outcome.pauses).lower()
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
