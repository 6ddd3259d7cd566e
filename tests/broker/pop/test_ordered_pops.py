"""Orderly pops: when a queue is free, and which entries are kept."""

from collections.abc import Callable

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.broker.pop.ordered_pops import FORGOTTEN_AFTER_MS
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.store import VirtualClock

from broker.pop.pops import a_change, popped
from broker_fakes import ask, store_message


@pytest.mark.parametrize("offset", [0, 1])
async def test_each_message_in_flight_may_get_more_time(filled: Broker, offset: int) -> None:
    answer, _ = await popped(filled, order=True, max_msg_nums=2)
    change = a_change(answer, offset)
    filled.clock.advance(1000)
    changed = await ask(filled, change)
    assert changed.fields["popTime"] == answer.fields["popTime"]
    assert changed.fields["invisibleTime"] == "61000"
    assert changed.fields["reviveQid"] == "999"
    filled.clock.advance(59_999)
    assert (await popped(filled, order=True))[1] == []
    filled.clock.advance(1)
    assert (await popped(filled, order=True))[1] == ["m0", "m1", "m2", "m3"]


@pytest.mark.parametrize(
    ("queues", "passed_ms", "left"),
    [
        (2, 0, {0, 1}),
        (1, 0, {0}),
        (0, 0, set()),
        (2, FORGOTTEN_AFTER_MS, {0, 1}),
        (2, FORGOTTEN_AFTER_MS + 1, set()),
    ],
)
async def test_entries_of_deleted_queues_and_of_yesterday_are_deleted(
    broker: Broker, clock: VirtualClock, queues: int, passed_ms: int, left: set[int]
) -> None:
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=2))
    for queue_id in range(2):
        store_message(broker, "orders", queue_id)
    assert len((await popped(broker, order=True))[1]) == 2
    table = broker.popping.ordered_pops
    table.persist()
    clock.advance(passed_ms)
    queues_of: Callable[[str, str], int] = lambda topic, group: queues  # noqa: E731
    list(table.clean(queues_of))
    assert {queue_id for queue_id in range(2) if table._find("orders", "g", queue_id)} == left
    assert table.dirty == (len(left) < 2), "it is saved only if it changed"
