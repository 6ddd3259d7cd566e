"""A stored record as the new message that takes its place: a committed half message, a timed message that is due.

Body, flags, time and place of birth and the number of tries stay; topic, queue and properties are what the caller
says. The copy waits for nobody (WAIT=false), as every message that the broker stores by itself. Mirrors what
`convertMessage`, `endMessageTransaction` and `renewHalfMessageInner` have in common.
"""

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.record import Record
from pocketmq.store import NewMessage


def copy_of(record: Record, topic: str, queue_id: int, properties: dict[str, str], text: bytes) -> NewMessage:
    """`text` is what is stored; `properties` is what the store looks at, and is changed here."""
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
