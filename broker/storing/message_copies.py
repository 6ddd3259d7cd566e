"""A stored record copied into a new message: a committed half message, or a timed message that is due.

Body, flags, born time, born host and reconsume times stay; the caller passes topic, queue and properties. Storing the
copy waits for neither disk nor slaves (WAIT=false), as for every message that the broker itself writes. Mirrors the
common part of `convertMessage`, `endMessageTransaction` and `renewHalfMessageInner`.
"""

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.record import Record
from pocketmq.store import NewMessage

from .stored_properties import stored_properties


def copy_of(record: Record, topic: str, queue_id: int, properties: dict[str, str], text: bytes) -> NewMessage:
    """`text` is stored; the store reads `properties`, which this function changes."""
    properties[names.WAIT] = "false"
    return NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=record.body,
        properties=text,
        property_map=properties,
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_host=record.store_host,
        reconsume_times=record.reconsume_times,
    )


def own_message(
    topic: str,
    queue_id: int,
    body: bytes,
    properties: dict[str, str],
    *,
    is_5: bool,
    now_ms: int,
    store_host: bytes,
    first_buckets: int | None = None,
) -> NewMessage:
    """A message that the broker itself writes: born now, at this broker."""
    return NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=body,
        properties=stored_properties(properties, is_5=is_5, first_buckets=first_buckets),
        property_map=properties,
        born_timestamp=now_ms,
        born_host=store_host,
        store_host=store_host,
    )
