"""A message that is stored in a topic of the broker's own first: half messages, delay levels, exact times.

    topic, queue            ->  topic and queue where it waits
    properties, changes     ->  and REAL_TOPIC, REAL_QID: its real topic and queue

The official broker changes a map of properties and encodes it again. Here the text is made once, from the text that
the message came with and the changes.
"""

from pocketmq.core.properties import Changes, read_values
from pocketmq.protocol.message import properties as names
from pocketmq.store import NewMessage


def values_in(message: NewMessage, wanted: tuple[str, ...]) -> tuple[str | None, ...]:
    """The values of these properties that decide where the message is stored."""
    return read_values(message.properties, (message.changes or ()) + message.further_changes, wanted)


def reroute(message: NewMessage, topic: str, queue_id: int, changes: Changes = ()) -> NewMessage:
    """Store the message, which is changed in place, in this topic and queue first."""
    message.changes = (
        *(message.changes or ()),
        *message.further_changes,
        *changes,
        names.REAL_TOPIC,
        message.topic,
        names.REAL_QID,
        str(message.queue_id),
    )
    message.further_changes = ()
    message.topic, message.queue_id = topic, queue_id
    return message
