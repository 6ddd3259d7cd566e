"""Which queues a round gives up and adds (official RebalanceImpl)."""

from hypothesis import given
from hypothesis import strategies as st
from pocketmq.client.push.push_queues import split_assignments
from pocketmq.client.rebalancing.process_queue import ProcessQueue, QueueTable
from pocketmq.protocol.bodies.client import MessageQueueAssignment
from pocketmq.protocol.message.message_queue import MessageQueue

from client_vectors import FakeClock


def queues(*ids: int, topic: str = "t") -> list[MessageQueue]:
    return [MessageQueue(topic, "b", queue_id) for queue_id in ids]


def table(*held: MessageQueue, clock: FakeClock | None = None) -> QueueTable:
    return QueueTable({queue: ProcessQueue(clock or FakeClock()) for queue in held})


def test_queues_assigned_to_others_are_dropped_and_other_topics_kept():
    held = table(*queues(0, 1, 2), *queues(0, topic="u"))
    removals = held.lost("t", set(queues(1)), with_dead_loops=True)
    assert removals == queues(0, 2)


def test_a_queue_whose_pull_loop_is_lost_is_dropped_and_added_again():
    clock = FakeClock()
    held = table(*queues(0, 1), clock=clock)
    clock.now_ms += 120_001
    held[queues(1)[0]].note_pull()
    removals = held.lost("t", queues(0, 1), with_dead_loops=True)
    assert removals == queues(0)
    for queue in removals:
        del held[queue]
    assert held.missing(queues(0, 1)) == queues(0)


def test_a_pull_consumers_idle_queue_is_no_lost_loop():
    clock = FakeClock()
    held = table(*queues(0), clock=clock)
    clock.now_ms += 999_999
    assert held.lost("t", queues(0), with_dead_loops=False) == []


def test_a_dropped_queue_that_could_not_be_removed_is_not_added_again():
    held = table(*queues(0))
    held[queues(0)[0]].dropped = True
    assert held.missing(queues(1, 0)) == queues(1)
    assert not held.is_balanced("t", queues(0))


@given(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9)))
def test_a_round_without_refusals_ends_balanced(before: set[int], after: set[int]):
    held = table(*queues(*before), *queues(0, 1, topic="u"))
    target = set(queues(*after))
    for queue in held.lost("t", target, with_dead_loops=True):
        del held[queue]
    additions = held.missing(target)
    assert additions == sorted(additions)
    held |= table(*additions)
    assert held.is_balanced("t", target)
    assert set(queues(0, 1, topic="u")) <= set(held)
    assert held.lost("t", target, with_dead_loops=True) == held.missing(target) == []


def test_an_assignment_of_the_broker_has_queues_to_pull_and_to_pop():
    pull, pop = queues(0)[0], queues(-1)[0]
    assignments = [
        MessageQueueAssignment(message_queue=pull),
        MessageQueueAssignment(message_queue=pop, mode="POP"),
        MessageQueueAssignment(message_queue=None),
    ]
    assert split_assignments(assignments) == ({pull}, {pop})
