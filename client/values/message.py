"""The user's view of a message: `Message` to send, `MessageExt` as received.

The bytes of a stored message are `protocol/message/record.py`; here its properties get names, a compressed body is
inflated,
and inner batches of 5.x brokers become single messages.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.batch import decode_batch
from pocketmq.protocol.message.compression import decompress
from pocketmq.protocol.message.flags import COMPRESSED, INNER_BATCH, NEED_UNWRAP
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.offset_id import encode_message_id, unpack_host
from pocketmq.protocol.message.properties import NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR, decode_properties
from pocketmq.protocol.message.record import (
    Record,
    decode_record,
    decode_records,
    properties_around,
    read_rows,
    restore_record,
)

from ..errors import InvalidArgument

RESERVED_PROPERTIES: Final = names.NAMES
"""Names the protocol gives a meaning to: a user may not set them by hand (official MessageConst.STRING_HASH_SET)."""

DELAY_PROPERTIES: Final = (names.DELAY, names.TIMER_DELAY_SEC, names.TIMER_DELAY_MS, names.TIMER_DELIVER_MS)
"""Properties that let the broker deliver a message later."""

BLANK_PROPERTY: Final = "The name or value of property can not be null or blank string!"


class Message(msgspec.Struct, gc=False):
    """A message to send (official Message).

    A body that is given as text is encoded as UTF-8. `keys` are looked up by queries: one or several, kept as one text
    with blanks between them. `flag` is a number of the user's own. At most one of `delay_level` (1 to 18 by default),
    `delay` and `deliver_at` (5.x brokers; a time without a zone is local time). InvalidArgument for other types.
    """

    topic: str
    body: bytes
    tags: str = ""
    keys: str = ""
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    flag: int = 0
    delay_level: int = 0
    delay: timedelta | None = None
    deliver_at: datetime | None = None
    wait_store_ok: bool = True

    if TYPE_CHECKING:  # what may be given is more than what a field then holds

        def __init__(
            self,
            topic: str,
            body: bytes | str,
            tags: str = "",
            keys: str | Iterable[str] = "",
            properties: dict[str, str] = ...,
            flag: int = 0,
            delay_level: int = 0,
            delay: timedelta | None = None,
            deliver_at: datetime | None = None,
            wait_store_ok: bool = True,
        ) -> None: ...

    def __post_init__(self) -> None:
        if isinstance(self.body, str):
            self.body = self.body.encode()
        if not isinstance(self.keys, str):
            self.keys = _joined(self.keys)
        if type(self.properties) is not dict or not type(self.delay_level) is type(self.flag) is int:
            _check_types(self)
        if self.delay is not None or self.deliver_at is not None:
            _check_delay(self.delay, self.deliver_at)

    @property
    def is_delayed(self) -> bool:
        """Whether the broker shall deliver the message later: then it is sent alone, and not in a transaction."""
        return bool(self.delay_level or self.delay or self.deliver_at)

    def wire_properties(self) -> dict[str, str]:
        """A new map of the properties as they travel; `ClientError` for what cannot travel as one, and for a reserved
        or blank name, or a blank value, among the user's own."""
        properties = {}
        if self.properties:
            for name, value in self.properties.items():
                # Nearly every property is found good here, within a send's budget.
                if not (
                    type(name) is type(value) is str
                    and name not in RESERVED_PROPERTIES
                    and name.isprintable()
                    and value.isprintable()
                    and name.strip()
                    and value.strip()
                ):
                    _check_user_property(name, value)
            properties.update(self.properties)
        keys, tags = self.keys, self.tags
        if keys:
            properties[names.KEYS] = keys
            if type(keys) is not str or not keys.isprintable():
                _check_text("keys", keys)
        if tags:
            properties[names.TAGS] = tags
            if type(tags) is not str or not tags.isprintable():
                _check_text("tags", tags)
        if bool(self.delay_level) + bool(self.delay) + bool(self.deliver_at) > 1:
            raise InvalidArgument("give one of delay_level, delay and deliver_at, not several")
        properties[names.WAIT] = "true" if self.wait_store_ok else "false"
        if self.delay_level:
            properties[names.DELAY] = str(self.delay_level)
        if self.delay:
            properties[names.TIMER_DELAY_MS] = str(self.delay // _MILLISECOND)
        if self.deliver_at:
            properties[names.TIMER_DELIVER_MS] = str(_epoch_ms(self.deliver_at))
        return properties


_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _joined(keys: Iterable[str]) -> str:
    try:
        return " ".join(keys)
    except TypeError as error:
        raise InvalidArgument(f"keys must be a text or texts: {error}") from error


def _epoch_ms(moment: datetime) -> int:
    try:
        return (moment.astimezone(UTC) - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError) as error:  # a local time at the end of the calendar
        raise InvalidArgument(f"deliver_at {moment} cannot be sent: {error}") from None


def _check_types(message: Message) -> None:
    if not isinstance(message.properties, Mapping):
        raise InvalidArgument(f"properties must be a dict of texts, not {type(message.properties).__name__}")
    for name in ("delay_level", "flag"):
        if not isinstance(number := getattr(message, name), int):
            raise InvalidArgument(f"{name} must be a whole number, not {type(number).__name__}")


def _check_delay(delay: object, deliver_at: object) -> None:
    if delay is not None:
        if not isinstance(delay, timedelta):
            raise InvalidArgument(f"delay must be a timedelta, not {type(delay).__name__}")
        if delay < timedelta():
            raise InvalidArgument(f"delay must not be negative: {delay}")
    if deliver_at is not None and not isinstance(deliver_at, datetime):
        raise InvalidArgument(f"deliver_at must be a datetime, not {type(deliver_at).__name__}")


def _check_user_property(name: str, value: str) -> None:
    """In the words of the official putUserProperty."""
    if name in RESERVED_PROPERTIES:
        raise InvalidArgument(f"The Property<{name}> is used by system, input another please")
    _check_text("the name of a property", name)
    _check_text(f"the property {name}", value)
    if not name.strip() or not value.strip():
        raise InvalidArgument(BLANK_PROPERTY)


def _check_text(what: str, text: str) -> None:
    """The official client accepts separators, and the message arrives with properties that its user did not set."""
    if not isinstance(text, str):
        raise InvalidArgument(f"{what} must be text, not {type(text).__name__}")
    if NAME_VALUE_SEPARATOR in text or PROPERTY_SEPARATOR in text:
        raise InvalidArgument(
            f"{what} must not contain U+0001 or U+0002, which separate properties: {text!r}"
        )


class MessageExt(msgspec.Struct, eq=False, gc=False):
    """A received message (official MessageExt). Equality is identity; `body` is inflated.

    `topic` and `reconsume_times` are what the listener should see: a message of the retry topic carries the topic it
    was sent to. Times are epoch milliseconds. What few listeners look at is decoded when it is first asked for.
    """

    topic: str
    body: bytes
    queue_id: int
    queue_offset: int
    broker_name: str
    reconsume_times: int
    _around: bytes
    """The stored record without its body: a message that is kept keeps none of the others of its pull."""
    min_offset: int = -1
    max_offset: int = -1
    """Of the queue, when the message was pulled; `max_offset` is one past the last message."""
    consume_start_ms: int = 0
    """When the listener got it; 0 before."""
    _record: Record | None = None
    _properties: dict[str, str] | None = None

    @property
    def record(self) -> Record:
        """As stored; its topic is the one it was read from."""
        record = self._record
        if record is None:
            record = self._record = restore_record(self._around, self.body)
        return record

    @property
    def properties(self) -> dict[str, str]:
        """All properties, the system's among them; decoded when first asked for."""
        properties = self._properties
        if properties is None:
            record = self._record
            stored = record.properties if record else properties_around(self._around)
            properties = self._properties = decode_properties(stored)
            if self.max_offset >= 0:
                properties[names.MIN_OFFSET] = str(self.min_offset)
                properties[names.MAX_OFFSET] = str(self.max_offset)
        return properties

    @property
    def tags(self) -> str:
        return self.properties.get(names.TAGS, "")

    @property
    def keys(self) -> str:
        return self.properties.get(names.KEYS, "")

    @property
    def message_id(self) -> str:
        """The producer's id (UNIQ_KEY), or the broker's if it has none."""
        return self.properties.get(names.UNIQ_KEY) or self.offset_message_id

    @property
    def offset_message_id(self) -> str:
        """The broker's id: where the message is stored."""
        return encode_message_id(self.record.store_host, self.record.position)

    @property
    def transaction_id(self) -> str | None:
        return self.properties.get(names.TRANSACTION_ID) or (
            self.properties.get(names.UNIQ_KEY) if self.properties.get(names.TRAN_MSG) == "true" else None
        )

    @property
    def commit_log_offset(self) -> int:
        return self.record.position

    @property
    def born_timestamp(self) -> int:
        return self.record.born_timestamp

    @property
    def store_timestamp(self) -> int:
        return self.record.store_timestamp

    @property
    def born_host(self) -> str:
        """`ip:port` of the producer."""
        host, port = unpack_host(self.record.born_host)
        return f"{host}:{port}"

    @property
    def store_host(self) -> str:
        """`ip:port` of the broker that stored it."""
        host, port = unpack_host(self.record.store_host)
        return f"{host}:{port}"

    @property
    def flag(self) -> int:
        return self.record.flag

    @property
    def store_size(self) -> int:
        """Bytes of the stored record."""
        return self.record.size

    @property
    def queue(self) -> MessageQueue:
        """The queue it was read from."""
        return MessageQueue(self.record.topic, self.broker_name, self.queue_id)

    def __repr__(self) -> str:
        return (
            f"MessageExt(topic={self.topic!r}, queue_id={self.queue_id}, queue_offset={self.queue_offset}, "
            f"tags={self.tags!r}, keys={self.keys!r}, body={self.body[:40]!r}, "
            f"reconsume_times={self.reconsume_times}, message_id={self.message_id!r})"
        )


def decode_messages(
    data: bytes | memoryview,
    broker_name: str,
    *,
    min_offset: int = -1,
    max_offset: int = -1,
    reads_body: bool = True,
    inflates: bool = True,
) -> list[MessageExt]:
    """The messages of a pull reply. Raises BodyError at bytes that are none.

    Bodies are empty without `reads_body` (and batches stay together then), and as stored without `inflates`.
    """
    if not reads_body:
        bare = (
            msgspec.structs.replace(record, body=b"", sys_flag=record.sys_flag & ~COMPRESSED)
            for record in decode_records(data)
        )
        return [as_message(record, broker_name, min_offset, max_offset) for record in bare]
    messages: list[MessageExt] = []
    add = messages.append
    reply = bytes(data)
    for body, topic, queue_id, queue_offset, times, sys_flag, around, at in read_rows(reply):
        if sys_flag & _PACKED:
            record = decode_record(reply, at)
            is_batch = sys_flag & INNER_BATCH and sys_flag & NEED_UNWRAP
            for one in _elements(record) if is_batch else (record,):
                add(as_message(one, broker_name, min_offset, max_offset, inflates=inflates))
            continue
        add(
            MessageExt(
                topic, body, queue_id, queue_offset, broker_name, times, around, min_offset, max_offset
            )
        )
    return messages


_PACKED: Final = COMPRESSED | INNER_BATCH
"""Bits of the sysFlag of messages whose body is not what was sent."""


def as_message(
    record: Record, broker_name: str, min_offset: int = -1, max_offset: int = -1, *, inflates: bool = True
) -> MessageExt:
    """One stored record as the user sees it; nothing of it is a view of the bytes it was read from."""
    body = stored = bytes(record.body)
    if inflates and record.sys_flag & COMPRESSED:
        body = bytes(decompress(stored, record.sys_flag))
    return MessageExt(
        record.topic,
        body,
        record.queue_id,
        record.queue_offset,
        broker_name,
        record.reconsume_times,
        b"",
        min_offset,
        max_offset,
        _record=msgspec.structs.replace(record, body=stored, properties=bytes(record.properties)),
    )


def _elements(record: Record) -> Iterator[Record]:
    """The messages of a batch stored as one record (5.x): consecutive queue offsets from the record's on."""
    for index, element in enumerate(decode_batch(decompress(record.body, record.sys_flag))):
        yield msgspec.structs.replace(
            record,
            body=element.body,
            properties=element.properties,
            flag=element.flag,
            sys_flag=record.sys_flag & ~(INNER_BATCH | NEED_UNWRAP | COMPRESSED),
            queue_offset=record.queue_offset + index,
        )
