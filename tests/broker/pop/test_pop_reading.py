"""Which messages a pop or a peek reads: from where, in which order, and which are delivered again."""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.requests.pop import PeekMessage

from broker.pop.pops import bodies, pass_time, popped
from broker_fakes import ask, store_message


class Dice:
    """What the broker throws: always the same."""

    def __init__(self, number: int) -> None:
        self.number = number

    def randrange(self, end: int) -> int:
        return self.number


@pytest.mark.parametrize("by_memory", [True, False])
async def test_group_of_mode_1_misses_nothing_that_arrives_after_its_first_pop(
    broker: Broker, by_memory: bool
) -> None:
    broker.config.init_pop_offset_by_check_msg_in_mem = by_memory
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=1, write_queue_nums=1))
    assert (await popped(broker, init_mode=1))[1] == []
    assert broker.offsets.query("orders", "g", 0) == 0
    for number in range(3):
        store_message(broker, "orders", 0, b"m%d" % number)
    assert (await popped(broker, init_mode=1))[1] == ["m0", "m1", "m2"]


@pytest.mark.parametrize(("by_memory", "mode", "first"), [(True, 1, 0), (False, 1, 3), (False, 0, 0)])
async def test_new_group_of_mode_1_begins_with_the_last_message_unless_the_first_is_in_memory(
    filled: Broker, by_memory: bool, mode: int, first: int
) -> None:
    filled.config.init_pop_offset_by_check_msg_in_mem = by_memory
    answer, found = await popped(filled, init_mode=mode)
    assert found == ["m0", "m1", "m2", "m3"][first:]
    assert answer.fields["startOffsetInfo"] == f"0 0 {first}"


async def test_each_message_of_each_pop_is_delivered_again(filled: Broker) -> None:
    assert (await popped(filled, max_msg_nums=1))[1] == ["m0"]
    assert (await popped(filled, max_msg_nums=3))[1] == ["m1", "m2", "m3"]
    pass_time(filled, 16)
    assert sorted((await popped(filled))[1]) == ["m0", "m1", "m2", "m3"]


@pytest.mark.parametrize(
    ("lot", "expected"),
    [
        (0, ["again", "q0", "q1", "q2"]),
        (1, ["q1", "q2", "q0", "again"]),
        (5, ["again", "q2", "q0", "q1"]),
        (99, ["q0", "q1", "q2", "again"]),
    ],
)
async def test_peek_reads_the_queues_in_turn_and_the_retry_topic_first_in_one_of_five(
    broker: Broker, lot: int, expected: list[str]
) -> None:
    broker.state.random = Dice(lot)  # type: ignore[assignment]
    broker.topics.update(TopicConfig(topic_name="orders", read_queue_nums=3, write_queue_nums=3))
    broker.topics.update(TopicConfig(topic_name="%RETRY%g_orders", read_queue_nums=1, write_queue_nums=1))
    for queue_id in range(3):
        store_message(broker, "orders", queue_id, b"q%d" % queue_id)
    store_message(broker, "%RETRY%g_orders", 0, b"again")
    request = PeekMessage(consumer_group="g", topic="orders", queue_id=-1, max_msg_nums=4)
    answer = await ask(broker, request)
    assert bodies(answer) == expected
    numbers = [answer.fields[name] for name in ("popTime", "invisibleTime", "reviveQid", "restNum")]
    assert numbers == ["0", "0", "0", "4"]


@pytest.mark.parametrize(
    ("lot", "order", "expected", "rest"),
    [(0, False, "again0", 3), (19, False, "again0", 3), (20, False, "q0", 1), (0, True, "q0", 1)],
)
async def test_pop_reads_the_retry_topic_once_and_not_if_it_has_enough(
    broker: Broker, lot: int, order: bool, expected: str, rest: int
) -> None:
    """First in one of five, else last; never in orderly pops."""
    broker.state.random = Dice(lot)  # type: ignore[assignment]
    for topic, text in (("orders", b"q%d"), ("%RETRY%g_orders", b"again%d")):
        broker.topics.update(TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1))
        for number in range(2):
            store_message(broker, topic, 0, text % number)
    answer, found = await popped(broker, max_msg_nums=1, order=order)
    assert (found, answer.fields["restNum"]) == ([expected], str(rest))
