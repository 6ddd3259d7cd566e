"""One rebalance round as decisions: what a topic's queues should be, which to give up, which to add, in which order.

For each subscribed topic (the group's retry topic among them):

    1. `round_of`            what to ask for (`held_queues.py`); CLUSTERING asks a broker for the members' ids
    2. `allocate`            the share of this client
    3. `plan_removals`       mark these dropped, all of them, before anything is awaited; then give up each: persist,
                             forget its offset, unlock. A refusal (ordered, listener running) leaves it in the table
    4. `plan_additions`      one after the other: lock (ordered CLUSTERING), forget the memory offset, new process queue
                             that counts as locked, first position; a failure leaves the queue out until a later round
    5. start the pulls of the new ones, after FIRST_PULL_DELAY_MS; no lock: RETRY_AFTER_NO_LOCK_MS, then a new round
    6. anything changed: listener, new subscription version, heartbeat; `is_balanced` decides when the next round comes

and once, at the end, for topics no longer subscribed: their queues are dropped and removed without persisting and
without unlocking. A dropped queue that stays in the table cannot be added again until its removal succeeds.

4.9 clients lock ordered queues of BROADCASTING groups too, start pulls at once, do not retry early, and know neither
"no queues" nor "balanced". Nothing is asked or awaited here. When a round is due is decided in
`instance/rebalance_service.py`. Official class: RebalanceImpl.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from pocketmq.protocol.bodies.client import MessageQueueAssignment
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.queue_allocation import sort_client_ids, sort_queues

from ..settings.allocation import AllocateMessageQueueStrategy
from .process_queue import ProcessQueue

RETRY_AFTER_NO_LOCK_MS: Final = 500

Table = Mapping[MessageQueue, ProcessQueue]


def allocate(
    strategy: AllocateMessageQueueStrategy,
    group: str,
    client_id: str,
    queues: Iterable[MessageQueue],
    client_ids: Iterable[str],
) -> set[MessageQueue]:
    """The queues of this client, from lists in any order. Raises AllocationFailed: everything stays, not balanced.

    A client the broker does not list gets nothing, and so gives up everything.
    """
    return set(strategy.allocate(group, client_id, sort_queues(queues), sort_client_ids(client_ids)))


def plan_removals(
    topic: str, target: Collection[MessageQueue], table: Table, *, consume_passively: bool = True
) -> list[MessageQueue]:
    """Queues of `topic` to give up, in the order of the table: first those of others, then those that are ours, but
    whose pull loop has died: they are added again in step 4 of the same round. `consume_passively`: a push consumer,
    for which dead pull loops are noticed."""
    held = {queue: process_queue for queue, process_queue in table.items() if queue.topic == topic}
    lost = [queue for queue in held if queue not in target]
    if consume_passively:
        lost += [queue for queue in held if queue in target and held[queue].is_pull_expired]
    return lost


def plan_additions(target: Iterable[MessageQueue], table: Table) -> list[MessageQueue]:
    """Queues to add, after the removals were tried; sorted, so that members ask for locks in one order."""
    return sort_queues(queue for queue in target if queue not in table)


def is_balanced(topic: str, target: Collection[MessageQueue], table: Table) -> bool:
    """Whether exactly the target's queues of the topic are held and alive."""
    held = {
        queue for queue, process_queue in table.items() if queue.topic == topic and not process_queue.dropped
    }
    return held == set(target)


# -- assignment by the broker (5.x, client_rebalance off)


def split_assignments(
    assignments: Sequence[MessageQueueAssignment],
) -> tuple[set[MessageQueue], set[MessageQueue]]:
    """Queues to pull and queues to pop of the answer to QUERY_ASSIGNMENT."""
    pull: set[MessageQueue] = set()
    pop: set[MessageQueue] = set()
    for assignment in assignments:
        if assignment.message_queue is not None:
            (pop if assignment.mode == "POP" else pull).add(assignment.message_queue)
    return pull, pop
