"""What the answer of a pull does to the position of the pull loop, and how an illegal position is corrected.

    reply code  status          position        then
    0           FOUND           nextBegin       pull on, after pull_interval if messages were left by the filter
    19, 20      NO_NEW_MSG,     nextBegin       raise the memory offset if nothing is cached, pull on; after 20 ms if a
                NO_MATCHED_MSG                  20 says "again" at the same offset, as a slave does that lags
    21          OFFSET_ILLEGAL  nextBegin       correct (below); this pull loop ends
    other       refused         as it was       pull again after 1 s, FLOW_CONTROL after 20 ms

The correction, in this order: drop the process queue; set and freeze the memory offset; persist it; remove the queue
as rebalance does (persists again, unfreezes, unlocks); rebalance at once, which reads the offset just stored. Dropping
first makes results of running listeners void; persisting before removing is what makes the new position stick. 4.9
clients (and 5.0, 5.1) wait 10 s before the correction, freeze nothing, and leave the queue idle until the next round.

Raising the memory offset lets a group make progress at the broker that filters everything out, or only waits.
Official classes: PullStatus, DefaultMQPushConsumerImpl.pullMessage.
"""

import msgspec

from ..rebalancing.flow_control import BROKER_FLOW_CONTROL_DELAY_MS
from ..rebalancing.process_queue import ProcessQueue
from ..values.results import PullResult, PullStatus


class NextPull(msgspec.Struct, frozen=True):
    """`next_offset` of the pull loop. `delay_ms` None: the loop ends and the queue's position is corrected to
    `next_offset`. `raise_to`: raise the memory offset to this, -1 leaving it."""

    next_offset: int
    delay_ms: int | None = 0
    raise_to: int = -1


def after_pull(result: PullResult, queue: ProcessQueue, *, asked: int, pull_interval_ms: int) -> NextPull:
    """`result`: of a pull at `asked`, its messages filtered and put into `queue`."""
    next_offset = result.next_offset
    if result.status is PullStatus.OFFSET_ILLEGAL:
        return NextPull(next_offset, delay_ms=None)
    if result.status is PullStatus.FOUND:
        return NextPull(next_offset, pull_interval_ms if result.messages else 0)
    raise_to = -1 if queue.count else next_offset
    return NextPull(next_offset, delay_if_again(result, asked), raise_to)


def delay_if_again(result: PullResult, asked: int) -> int:
    """The pause in ms after a pull at `asked` that brought no progress although the broker did not hold it."""
    is_again = result.status is PullStatus.NO_MATCHED_MSG and result.next_offset == asked
    return BROKER_FLOW_CONTROL_DELAY_MS if is_again else 0


def commit_with_pull(memory_offset: int, *, clustering: bool) -> int | None:
    """The offset to carry in a pull request with the commit bit, or None to leave the bit out. 0 is never carried."""
    return memory_offset if clustering and memory_offset > 0 else None
