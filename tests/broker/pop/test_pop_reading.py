"""From where a group pops a queue for the first time, and which offsets it is left with."""

import pytest
from pocketmq.broker.broker import Broker
from pocketmq.protocol.bodies.topic_config import TopicConfig

from broker.pop.pops import popped
from broker_fakes import store_message


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
