"""StoredMessage: a message as it lies in the broker, for a test to look at.

Decoded from the record in the log: the body is decompressed and copied, properties are a map. Not what a consumer
gets: nothing is filtered, and nothing is marked as read. Official class: MessageExt. Next: `rocketmq.py`.
"""

import msgspec
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.compression import decompress
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import decode_record


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message. Times are in ms since 1970; `queue_offset` counts messages in the queue."""

    topic: str
    queue_id: int
    queue_offset: int
    body: bytes
    properties: dict[str, str]
    flag: int
    born_timestamp: int
    store_timestamp: int
    reconsume_times: int
    position: int
    """Position in the commit log: messages of several queues sort by it into the order they came in."""

    @property
    def text(self) -> str:
        """The body as UTF-8 text."""
        return self.body.decode()

    @property
    def tags(self) -> str | None:
        return self.properties.get(names.TAGS)

    @property
    def keys(self) -> list[str]:
        """What was given as keys; one text with blanks between them on the wire."""
        return self.properties.get(names.KEYS, "").split()

    @property
    def message_id(self) -> str | None:
        """The id its producer gave it (UNIQ_KEY), `msgId` of the official send result."""
        return self.properties.get(names.UNIQ_KEY)


def stored_message(record: memoryview) -> StoredMessage:
    """The message of one record. Raises RecordError or CompressionError for bytes that are none."""
    decoded = decode_record(record)
    return StoredMessage(
        topic=decoded.topic,
        queue_id=decoded.queue_id,
        queue_offset=decoded.queue_offset,
        body=bytes(decompress(decoded.body, decoded.sys_flag)),
        properties=decode_properties(decoded.properties),
        flag=decoded.flag,
        born_timestamp=decoded.born_timestamp,
        store_timestamp=decoded.store_timestamp,
        reconsume_times=decoded.reconsume_times,
        position=decoded.position,
    )
