"""A stored record copied into a new message: a committed half message, or a timed message that is due.

Body, flags, born time, born host and reconsume times stay; the caller gives topic, queue and properties. Storing the
copy waits for neither disk nor slaves (WAIT=false), as for every message that the broker stores by itself. Mirrors what
`convertMessage`, `endMessageTransaction` and `renewHalfMessageInner` have in common.
"""

from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.record import Record
from pocketmq.store import NewMessage


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
