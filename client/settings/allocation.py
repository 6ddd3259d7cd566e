"""Who reads which queue: three of the official strategies; a user may write others.

Every member of a group computes its own share from the same sorted lists, so two members agree only if these give
what Java's classes give, point for point on the hash ring. Fetching the lists and acting on the share is not done
here: `rebalancing/held_queues.py`. Official package: org.apache.rocketmq.client.consumer.rebalance.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.queue_allocation import (
    AVERAGELY,
    AVERAGELY_BY_CIRCLE,
    share_averagely,
    share_by_circle,
)

from ..arguments import checks_arguments
from ..errors import AllocationFailed

VIRTUAL_NODES: Final = 10
"""Official default number of points of one client on the ring."""

Queues = Sequence[MessageQueue]


class AllocateMessageQueueStrategy(Protocol):
    """Official AllocateMessageQueueStrategy. `name` goes to the broker when the broker assigns."""

    @property
    def name(self) -> str: ...

    def allocate(
        self, group: str, client_id: str, queues: Queues, client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues of `client_id`. Both lists must be sorted as `sort_queues` and `sort_client_ids` do.

        Empty where `client_id` is not in `client_ids`. Raises AllocationFailed.
        """


def _index(client_id: str, queues: Queues, client_ids: Sequence[str]) -> int:
    """Index of the client among the ids, -1 if it is not listed (official check)."""
    if not client_id:
        raise AllocationFailed("currentCID is empty")
    if not queues:
        raise AllocationFailed("mqAll is null or mqAll empty")
    if not client_ids:
        raise AllocationFailed("cidAll is null or cidAll empty")
    return client_ids.index(client_id) if client_id in client_ids else -1


class AllocateMessageQueueAveragely:
    """AVG, the default: a run of neighbouring queues for each client, the first ones one queue longer."""

    name = AVERAGELY

    def allocate(
        self, group: str, client_id: str, queues: Queues, client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        _index(client_id, queues, client_ids)
        return share_averagely(client_id, queues, client_ids)


class AllocateMessageQueueAveragelyByCircle:
    """AVG_BY_CIRCLE: queues are dealt out one by one."""

    name = AVERAGELY_BY_CIRCLE

    def allocate(
        self, group: str, client_id: str, queues: Queues, client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        _index(client_id, queues, client_ids)
        return share_by_circle(client_id, queues, client_ids)


def ring_hash(key: str) -> int:
    """Place of a key on the ring: the first 4 bytes of its MD5 (official ConsistentHashRouter.MD5Hash)."""
    return int.from_bytes(hashlib.md5(key.encode(), usedforsecurity=False).digest()[:4], "big")


@checks_arguments
class AllocateMessageQueueConsistentHash:
    """CONSISTENT_HASH: a queue belongs to the client with the next point on the ring.

    `virtual_nodes` points for each client, with 0 no client gets a queue; `hash_function` replaces `ring_hash`.
    """

    name = "CONSISTENT_HASH"

    def __init__(
        self, virtual_nodes: int = VIRTUAL_NODES, hash_function: Callable[[str], int] | None = None
    ) -> None:
        if virtual_nodes < 0:
            raise AllocationFailed(f"illegal virtualNodeCnt :{virtual_nodes}")
        self.virtual_nodes = virtual_nodes
        self._hash = hash_function or ring_hash

    def allocate(
        self, group: str, client_id: str, queues: Queues, client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        if _index(client_id, queues, client_ids) < 0:
            return []
        ring = self._ring(client_ids)
        points = sorted(ring)
        if not points:
            return []
        assigned = []
        for queue in queues:
            place = bisect_left(points, self._hash(java_text(queue)))
            if ring[points[place % len(points)]] == client_id:
                assigned.append(queue)
        return assigned

    def _ring(self, client_ids: Sequence[str]) -> dict[int, str]:
        """Point to client. An id that is listed twice gets further points, with the next numbers."""
        ring: dict[int, str] = {}
        seen: set[str] = set()
        for owner in client_ids:
            first = sum(1 for other in ring.values() if other == owner) if owner in seen else 0
            seen.add(owner)
            for replica in range(first, first + self.virtual_nodes):
                ring[self._hash(f"{owner}-{replica}")] = owner
        return ring


def java_text(queue: MessageQueue) -> str:
    """MessageQueue.toString, which is the key of a queue on the ring."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"
