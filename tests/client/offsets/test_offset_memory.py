"""Offsets in memory: raising, replacing, freezing, and what is persisted (official ControllableOffset and stores)."""

from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client.offsets.offset_store import NO_OFFSET, OffsetMemory
from pocketmq.protocol.message.message_queue import MessageQueue

A, B, OTHER = MessageQueue("t", "b", 0), MessageQueue("t", "b", 1), MessageQueue("u", "b", 0)


def test_a_queue_without_entry_has_no_offset():
    assert OffsetMemory().read(A) == NO_OFFSET


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1))
def test_increase_only_never_lowers_and_the_rest_replaces(updates: list[tuple[int, bool]]):
    memory = OffsetMemory()
    expected = NO_OFFSET
    for offset, increase_only in updates:
        memory.update(A, offset, increase_only=increase_only)
        expected = max(expected, offset) if increase_only else offset
        assert memory.read(A) == expected


def test_a_frozen_offset_takes_no_update_until_it_is_removed():
    memory = OffsetMemory()
    memory.update(A, 7)
    memory.update_and_freeze(A, 3)
    memory.update(A, 9)
    memory.update(A, 9, increase_only=True)
    assert memory.read(A) == 3
    memory.update_and_freeze(A, 4)
    assert memory.read(A) == 4
    memory.remove(A)
    assert memory.read(A) == NO_OFFSET
    memory.update(A, 1)
    assert memory.read(A) == 1


def test_persisting_drops_queues_that_are_no_longer_assigned():
    memory = OffsetMemory()
    for queue, offset in ((A, 1), (B, 2), (OTHER, 3)):
        memory.update(queue, offset)
    memory.update_and_freeze(B, 5)
    assert memory.to_persist([]) == {}
    assert memory.to_persist({A, OTHER}) == {A: 1, OTHER: 3}
    assert memory.to_persist({A, OTHER}) == {A: 1, OTHER: 3}
    assert memory.read(B) == NO_OFFSET
    memory.update(B, 6)
    assert memory.read(B) == 6


def test_one_topic_can_be_copied():
    memory = OffsetMemory()
    memory.update(A, 1)
    memory.update(OTHER, 3)
    assert memory.of_topic("t") == {A: 1}
    copy = memory.of_topic()
    copy.clear()
    assert memory.of_topic() == {A: 1, OTHER: 3}
