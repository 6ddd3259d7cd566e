"""Long work leaves turns of the loop to others, and its text is made in a thread."""

import asyncio
import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.time import slices
from pocketmq.broker.time.slices import ITEMS_ENCODED_AT_ONCE, SLICE_SECONDS, encode_json, in_slices
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.group import GetBrokerConsumeStats, GetConsumeStats
from pocketmq.protocol.requests.topic import GetTopicStatsInfo, QueryConsumeTimeSpan

from broker_fakes import ask, turns


async def turns_during(work: Callable[[], Any]) -> int:
    """How often another task runs until the work is done."""
    task = asyncio.ensure_future(work())
    turns = 0
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    await task
    return turns


async def test_items_come_in_slices_of_a_few_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0.0, SLICE_SECONDS / 8)  # each look at the clock is an eighth of a slice later
    monkeypatch.setattr(slices, "perf_counter", lambda: next(clock))
    seen: list[int] = []

    async def work() -> None:
        seen.extend([item async for item in in_slices(range(100))])

    assert 8 <= await turns_during(work) <= 20
    assert seen == list(range(100))


@pytest.mark.parametrize(
    ("items", "is_here"), [(ITEMS_ENCODED_AT_ONCE, True), (ITEMS_ENCODED_AT_ONCE + 1, False)]
)
async def test_a_long_text_is_made_in_a_thread(
    items: int, is_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def dumps(value: Any) -> bytes:
        threads.append(threading.current_thread())
        return b"text"

    monkeypatch.setattr(slices.fastjson, "dumps", dumps)
    assert await encode_json([0] * items, items) == b"text"
    assert (threads == [threading.current_thread()]) is is_here


@pytest.mark.parametrize(
    "request_",
    [
        QueryConsumeTimeSpan(topic="t", group="g"),
        GetTopicStatsInfo(topic="t"),
        GetConsumeStats(consumer_group="g", topic="t"),
        GetBrokerConsumeStats(),
    ],
    ids=lambda request: request.name,
)
async def test_a_report_about_many_queues_leaves_turns_to_others(broker: Broker, request_: Any) -> None:
    """Each was one turn of the loop: four seconds for 303 of 65,536 queues."""
    broker.topics.update(TopicConfig(topic_name="t", read_queue_nums=5000, write_queue_nums=5000))
    broker.groups.find_or_create("g")
    broker.offsets.commit("t", "g", 4999, 7)
    answers = []

    async def report() -> None:
        answers.append(await ask(broker, request_))

    assert await turns_during(report) >= 4
    assert b'"queueId":4999' in answers[0].body
    if isinstance(request_, GetConsumeStats):
        assert answers[0].json["offsetTable"][MessageQueue("t", "broker-a", 4999)]["consumerOffset"] == 7


async def test_two_reports_are_made_at_once(broker: Broker) -> None:
    broker.topics.update(TopicConfig(topic_name="t", read_queue_nums=5000, write_queue_nums=5000))
    async with broker.reports, broker.reports:
        report = asyncio.ensure_future(ask(broker, GetTopicStatsInfo(topic="t")))
        await turns(100)
        assert not report.done()
    assert (await report).code == 0
