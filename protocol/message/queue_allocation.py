"""How the members of a group share the queues of a topic: the order of both lists, AVG and AVG_BY_CIRCLE.

Each member computes its own share (or the broker does, for QUERY_ASSIGNMENT), so all must sort alike and count alike.
Mirrors `AllocateMessageQueueAveragely` and `AllocateMessageQueueAveragelyByCircle`; the strategies that only clients
have are in `pocketmq.client`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from .java_strings import java_sort_key
from .message_queue import MessageQueue

AVERAGELY: Final = "AVG"
AVERAGELY_BY_CIRCLE: Final = "AVG_BY_CIRCLE"


def sort_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Queues by topic, broker name and id, as every member of a group has to sort them."""
    return sorted(
        queues,
        key=lambda queue: (java_sort_key(queue.topic), java_sort_key(queue.broker_name), queue.queue_id),
    )


def sort_client_ids(client_ids: Iterable[str]) -> list[str]:
    """Client ids as every member of a group has to sort them."""
    return sorted(client_ids, key=java_sort_key)


def share_averagely(
    client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> list[MessageQueue]:
    """AVG: neighbouring queues for each client, one more for the first ones if the division leaves a rest.

    Empty if `client_id` is not in `client_ids`.
    """
    if client_id not in client_ids:
        return []
    index = client_ids.index(client_id)
    average, rest = divmod(len(queues), len(client_ids))
    start = index * average + min(index, rest)
    return list(queues[start : start + average + (index < rest)])


def share_by_circle(
    client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> list[MessageQueue]:
    """AVG_BY_CIRCLE: the clients take queues in turn, one each. Empty if `client_id` is not in `client_ids`."""
    return list(queues[client_ids.index(client_id) :: len(client_ids)]) if client_id in client_ids else []
