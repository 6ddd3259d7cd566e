"""Rebalance as decisions (official RebalanceImpl, step by step)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client.errors import AllocationFailed
from pocketmq.client.rebalancing.plan import (
    Table,
    allocate,
    is_balanced,
    plan_additions,
    plan_removals,
    split_assignments,
)
from pocketmq.client.rebalancing.process_queue import ProcessQueue
from pocketmq.client.settings.allocation import AllocateMessageQueueAveragely
from pocketmq.protocol.bodies.client import MessageQueueAssignment
from pocketmq.protocol.message.message_queue import MessageQueue

from client_vectors import FakeClock


def queues(*ids: int, topic: str = "t") -> list[MessageQueue]:
    return [MessageQueue(topic, "b", queue_id) for queue_id in ids]


def table(*held: MessageQueue, clock: FakeClock | None = None) -> Table:
    return {queue: ProcessQueue(clock or FakeClock()) for queue in held}


@given(st.permutations(queues(*range(8))), st.permutations(["C0", "C1", "C2"]))
def test_members_agree_for_any_order_of_queues_and_clients(shuffled: list[MessageQueue], ids: list[str]):
    strategy = AllocateMessageQueueAveragely()
    assert allocate(strategy, "g", "C1", shuffled, ids) == set(queues(3, 4, 5))


def test_a_client_the_broker_does_not_list_gets_nothing():
    assert allocate(AllocateMessageQueueAveragely(), "g", "new", queues(0, 1), ["C0"]) == set()


def test_a_failing_strategy_decides_nothing():
    with pytest.raises(AllocationFailed):
        allocate(AllocateMessageQueueAveragely(), "g", "C0", [], ["C0"])


def test_queues_assigned_to_others_are_dropped_and_other_topics_kept():
    held = table(*queues(0, 1, 2), *queues(0, topic="u"))
    removals = plan_removals("t", set(queues(1)), held)
    assert removals == queues(0, 2)


def test_a_queue_whose_pull_loop_is_lost_is_dropped_and_added_again():
    clock = FakeClock()
    held = dict(table(*queues(0, 1), clock=clock))
    clock.now_ms += 120_001
    held[queues(1)[0]].note_pull()
    removals = plan_removals("t", queues(0, 1), held)
    assert removals == queues(0)
    for queue in removals:
        del held[queue]
    assert plan_additions(queues(0, 1), held) == queues(0)


def test_a_pull_consumers_idle_queue_is_no_lost_loop():
    clock = FakeClock()
    held = table(*queues(0), clock=clock)
    clock.now_ms += 999_999
    assert plan_removals("t", queues(0), held, consume_passively=False) == []


def test_a_dropped_queue_that_could_not_be_removed_is_not_added_again():
    held = table(*queues(0))
    held[queues(0)[0]].dropped = True
    assert plan_additions(queues(1, 0), held) == queues(1)
    assert not is_balanced("t", queues(0), held)


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_a_round_without_refusals_ends_balanced(before: set[int], after: set[int]):
    held = dict(table(*queues(*before), *queues(0, 1, topic="u")))
    target = set(queues(*after))
    for queue in plan_removals("t", target, held):
        del held[queue]
    additions = plan_additions(target, held)
    assert additions == sorted(additions)
    held |= table(*additions)
    assert is_balanced("t", target, held)
    assert set(queues(0, 1, topic="u")) <= set(held)
    assert plan_removals("t", target, held) == plan_additions(target, held) == []


def test_an_assignment_of_the_broker_has_queues_to_pull_and_to_pop():
    pull, pop = queues(0)[0], queues(-1)[0]
    assignments = [
        MessageQueueAssignment(message_queue=pull),
        MessageQueueAssignment(message_queue=pop, mode="POP"),
        MessageQueueAssignment(message_queue=None),
    ]
    assert split_assignments(assignments) == ({pull}, {pop})
