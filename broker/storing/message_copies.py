"""A stored record copied into a new message: a committed half message, or a timed message that is due.

Body, flags, born time, born host and reconsume times stay; the caller passes topic, queue and changes of the
properties. Storing the copy waits for neither disk nor slaves, as for every message that the broker itself writes:
WAIT is false, but only in the map of the official broker, not in the text that it stores. Mirrors the common part of
`convertMessage`, `endMessageTransaction` and `renewHalfMessageInner`.
"""

from collections.abc import Mapping
from itertools import chain

from pocketmq.core.properties import Changes
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.record import Record
from pocketmq.store import NewMessage


def copy_of(
    record: Record, topic: str, queue_id: int, changes: Changes = (), further_changes: Changes = ()
) -> NewMessage:
    """`further_changes` are made only if the copy is stored in another topic first."""
    return NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=record.body,
        properties=record.properties,
        changes=changes,
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_host=record.store_host,
        reconsume_times=record.reconsume_times,
        further_changes=(*further_changes, names.WAIT, "false"),
    )


def changes_of(properties: Mapping[str, str]) -> Changes:
    """The changes that put these properties into an empty map."""
    return tuple(chain.from_iterable(properties.items()))


def own_message(
    topic: str,
    queue_id: int,
    body: bytes,
    properties: Mapping[str, str],
    *,
    now_ms: int,
    store_host: bytes,
) -> NewMessage:
    """A message that the broker itself writes: born now, at this broker."""
    return NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=body,
        properties=b"",
        changes=changes_of(properties),
        born_timestamp=now_ms,
        born_host=store_host,
        store_host=store_host,
    )
