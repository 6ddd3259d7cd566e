"""MessageQueue: the address of one queue (topic, broker name, queue id).

It is a value: hashable, ordered as the official class orders it, usable as a map key. What a queue holds is
known only to the store."""

import msgspec


class MessageQueue(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """Official MessageQueue. Sorts by topic, then broker name, then queue id: every client of a group has to
    sort the queues of a topic alike, or two clients would take the same queue."""

    topic: str = ""
    broker_name: str = ""
    queue_id: int = 0
