"""Messages that the broker reads from its log, or stores anew: copies of records, messages stored elsewhere first, and
messages of its own.

A copy is a committed half message, or a message that is due; body, flags, born time, born host and reconsume times
stay. A message is rerouted if it waits in a topic of the broker's own: half messages, delay levels, exact times.

    topic, queue            ->  topic and queue where it waits
    properties, changes     ->  and REAL_TOPIC, REAL_QID: its real topic and queue

The official broker changes a map of properties and encodes it again. Here the text is made once, from the text that
the message came with and the changes.
"""

import logging
from collections.abc import Mapping
from itertools import chain

from pocketmq.core.properties import Changes, read_values
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.record import Record, RecordError, decode_record
from pocketmq.store import MessageStore, NewMessage
from pocketmq.store.lookup.consume_queue import ConsumeQueue

from ..state.broker_state import BrokerState
from .numbers import INT_MAX, parse_number

_log = logging.getLogger("pocketmq.storing")


def copy_of(
    record: Record, topic: str, queue_id: int, changes: Changes = (), further_changes: Changes = ()
) -> NewMessage:
    """`further_changes` are made only if the copy is stored in another topic first.

    Storing the copy waits for neither disk nor slaves, as for every message that the broker itself writes: WAIT is
    false, but only in the map of the official broker, not in the text that it stores. Mirrors the common part of
    `convertMessage`, `endMessageTransaction` and `renewHalfMessageInner`.
    """
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


def own_message(state: BrokerState, topic: str, queue_id: int, body: bytes, changes: Changes) -> NewMessage:
    """A message that the broker itself writes: born now, at this broker."""
    store_host = state.identity.store_host
    return NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=body,
        properties=b"",
        changes=changes,
        born_timestamp=state.clock.now_ms(),
        born_host=store_host,
        store_host=store_host,
    )


def changes_of(properties: Mapping[str, str]) -> Changes:
    """The changes that put these properties into an empty map."""
    return tuple(chain.from_iterable(properties.items()))


def real_place(topic: str | None, queue_text: str | None) -> tuple[str, int] | None:
    """The topic and the queue that REAL_TOPIC and REAL_QID name, which any client may have written."""
    queue_id = None if queue_text is None else parse_number(queue_text, 0, INT_MAX)
    return None if not topic or queue_id is None else (topic, queue_id)


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


def record_at(store: MessageStore, position: int) -> Record | None:
    """The record at a log position that a request names; `None` if no record begins there."""
    data = store.read_record(position) if position >= 0 else None
    try:
        return None if data is None else decode_record(data)
    except RecordError:
        return None  # a position inside a record


def record_of_entry(store: MessageStore, position: int, size: int) -> Record | None:
    """The record of a queue's entry; `None` if the log no longer has it. A damaged record is logged."""
    data = store.read_record(position, size)
    try:
        return None if data is None else decode_record(data)
    except RecordError as error:
        _log.error("record at log position %d cannot be read: %s", position, error)
        return None


def record_at_offset(store: MessageStore, queue: ConsumeQueue, offset: int) -> Record | None:
    """The message at an offset of a queue; `None` if the log no longer has it."""
    entry = queue.unit(offset)
    return None if entry is None else record_of_entry(store, entry[0], entry[1])
