"""MessageQueue: the address of one queue (topic, broker name, queue id).

It is a value: hashable and comparable. What a queue holds is known only to the store.
"""

import msgspec


class MessageQueue(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """Official MessageQueue. Ordered by topic, then broker name, then queue id; the order that all members of a group
    share is `queue_allocation.sort_queues`.
    """

    topic: str = ""
    broker_name: str = ""
    queue_id: int = 0
