"""One rebalance round as decisions: what a topic's queues should be, which to give up, which to add, in which order.

For each subscribed topic (the group's retry topic among them):

    1. `first_step`          what to ask for; CLUSTERING asks a broker for the members' ids
    2. `allocate`            the share of this client
    3. `plan_removals`       mark these dropped, all of them, before anything is awaited; then give up each: persist,
                             forget its offset, unlock. A refusal (ordered, listener running) leaves it in the table
    4. `plan_additions`      one after the other: lock (ordered CLUSTERING), forget the memory offset, new process queue
                             that counts as locked, first position; a failure leaves the queue out until a later round
    5. start the pulls of the new ones, after FIRST_PULL_DELAY_MS; no lock: RETRY_AFTER_NO_LOCK_MS, then a new round
    6. anything changed: listener, new subscription version, heartbeat; `is_balanced` decides when the next round comes

and once, at the end: `plan_truncation` for topics no longer subscribed: dropped and removed without persisting and
without unlocking. A dropped queue that stays in the table cannot be added again until its removal succeeds.

4.9 clients lock ordered queues of BROADCASTING groups too, start pulls at once, do not retry early, and know neither
"no queues" nor "balanced". Nothing is asked or awaited here. When a round is due is decided in
`instance/rebalance_service.py`. Official class: RebalanceImpl.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from pocketmq.protocol.bodies.client import MessageModel, MessageQueueAssignment
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.queue_allocation import sort_client_ids, sort_queues
from pocketmq.protocol.message.topics import is_retry_topic, pop_retry_topic

from ..settings.allocation import AllocateMessageQueueStrategy
from .process_queue import ProcessQueue

RETRY_AFTER_NO_LOCK_MS: Final = 500

Table = Mapping[MessageQueue, ProcessQueue]


class FirstStep(Enum):
    """What a round does with a topic before any queue is given up or added."""

    TAKE_ALL = "consume all queues"
    """BROADCASTING: the target is every queue."""
    ASK_MEMBERS = "ask for the member ids"
    """CLUSTERING: then `allocate`. No answer or an empty list leaves everything as it is."""
    REPORT_EMPTY = "announce that it has no queues"
    """No queue of the topic is known: step 6 with empty sets, nothing else."""
    KEEP = "leave everything as it is"


def first_step(topic: str, message_model: MessageModel, queues: Collection[MessageQueue] | None) -> FirstStep:
    """`queues` of the topic's route, None while no route is known."""
    if message_model is MessageModel.BROADCASTING:
        return FirstStep.REPORT_EMPTY if queues is None else FirstStep.TAKE_ALL
    if queues:
        return FirstStep.ASK_MEMBERS
    return FirstStep.KEEP if is_retry_topic(topic) else FirstStep.REPORT_EMPTY


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


def needs_lock(*, orderly: bool, message_model: MessageModel) -> bool:
    """Whether a queue is locked at its broker before it is added."""
    return orderly and message_model is MessageModel.CLUSTERING


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


def plan_truncation(subscribed_topics: Collection[str], table: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Queues of topics that are no longer subscribed."""
    return [queue for queue in table if queue.topic not in subscribed_topics]


def is_balanced(topic: str, target: Collection[MessageQueue], table: Table) -> bool:
    """Whether exactly the target's queues of the topic are held and alive."""
    held = {
        queue for queue, process_queue in table.items() if queue.topic == topic and not process_queue.dropped
    }
    return held == set(target)


# -- assignment by the broker (5.x, client_rebalance off)


def is_client_rebalance(*, client_rebalance: bool, orderly: bool, message_model: MessageModel) -> bool:
    """Whether this client computes its share itself; ordered and broadcasting ones always do."""
    return client_rebalance or orderly or message_model is MessageModel.BROADCASTING


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


def pop_retry_subscription(
    topic: str, group: str, pull: Collection[MessageQueue], pop: Collection[MessageQueue]
) -> tuple[str, bool] | None:
    """The pop retry topic and whether to subscribe to it (True) or no longer (False); None changes nothing.

    A group that went from pop to pull reads what pop left in that topic; while it pops, the broker does.
    """
    if is_retry_topic(topic) or bool(pull) == bool(pop):
        return None
    return pop_retry_topic(topic, group), bool(pull)
