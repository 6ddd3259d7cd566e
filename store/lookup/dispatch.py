"""Dispatch: what happens to a record after it was appended to the log. It is added to its queue and the index.

Usually this happens at once, from the message that was appended. Records that are in the log only (after a crash, or
not yet on disk under SYNC_FLUSH) are read back by `log_dispatch.py`. Dispatching twice is harmless: queues and index
skip what they have. Official classes: CommitLogDispatcherBuildConsumeQueue, CommitLogDispatcherBuildIndex. Owner: the
event-loop thread.
"""

import logging
from collections.abc import Callable, Sequence

from pocketmq.protocol.message.batch import decode_batch
from pocketmq.protocol.message.flags import is_in_queue
from pocketmq.protocol.message.properties import DELAY, KEYS, TAGS, UNIQ_KEY, decode_properties, tags_code
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC

from ..accelerated.element_records import Packed
from ..accelerated.plain_records import LoggedRecord
from ..config import StoreConfig
from ..delay_levels import parse_delay_levels
from ..log.record_template import TEXT_LENGTH_BYTES, RecordTemplate, around_unique_id
from ..put_values import AlikeBatch, AlikeMessage, ElementBatch, NewMessage, Stored
from .consume_queue import ConsumeQueue
from .key_index import KeyIndex
from .light_queues import light_queues_of
from .message_template import MessageTemplate
from .queue_table import QueueTable, is_possible_place
from .queue_unit import UNIT

logger = logging.getLogger(__name__)

OnArrival = Callable[[str, int, int, int, dict[str, str] | None, int], None]
"""(topic, queue id, queue offset of the message, tags code, properties, store timestamp ms)"""

IsAwaited = Callable[[str, int], bool]
"""(topic, queue id)"""

MayBeAwaited = Callable[[str], bool]
"""(topic): false if nothing waits for messages of any of its queues"""

_MAX_CACHED_TAGS = 10_000
_MAX_CACHED_TOPICS = 10_000
_LONGEST_INT = 10
_PACK_UNIT = UNIT.pack


class Dispatcher:
    """Knows how far dispatch has come, and the marks that the flusher copies into the checkpoint."""

    def __init__(
        self,
        config: StoreConfig,
        queues: QueueTable,
        index: KeyIndex,
        is_awaited: IsAwaited | None = None,
        may_be_awaited: MayBeAwaited | None = None,
    ) -> None:
        """`is_awaited` says whether anything waits for messages of a queue; without it everything is announced.
        `may_be_awaited` is asked before, once for many messages."""
        self._queues = queues
        self._index = index
        self.on_arrival: OnArrival | None = None
        """Set once recovery is over: messages stored before are not announced."""
        self.is_awaited: IsAwaited = is_awaited or _always
        self._may_be_awaited: MayBeAwaited = may_be_awaited or _always
        self._has_light_queues = config.has_light_queues
        self._delay_levels_ms = parse_delay_levels(config.message_delay_level)
        self._tag_codes: dict[str, int] = {}
        self._topics: dict[bytes, str] = {}
        self.position = 0
        """Every record before this log position is in its queue and in the index."""
        self.newest_timestamp = 0
        """storeTimestamp of the newest record dispatched, ms."""
        self.newest_position = 0

    def dispatch(
        self,
        queue: ConsumeQueue | None,
        messages: Sequence[NewMessage],
        sizes: Sequence[int],
        position: int,
        queue_offset: int,
        store_timestamp: int,
    ) -> None:
        """Add records of one queue, which lie back to back in the log, to the queue and the index, and announce them.

        `position` and `queue_offset` are those of the first. `queue` is None for prepared and rollback records, which
        are in no queue. Raises StoreError if a file cannot be made; `self.position` then stays before the first record,
        and dispatching them again completes it.
        """
        first = messages[0]
        topic, sys_flag = first.topic, first.sys_flag
        is_next = queue is not None and queue_offset == queue.max_offset and position >= queue.records_end
        indexes, hashes_of, tag_codes = self._index.enabled, self._index.hashes_of, self._tag_codes
        has_delivery_times = topic == SCHEDULE_TOPIC
        units, indexed, at, last_position = b"", [], position, position
        for message, size in zip(messages, sizes, strict=True):
            properties = message.property_map
            if is_next:
                if has_delivery_times:
                    code = self.tags_code_of(topic, properties, store_timestamp)
                else:
                    tags = properties.get(TAGS)
                    code = (tag_codes.get(tags) or self._tag_code(tags)) if tags else 0
                units += _PACK_UNIT(at, size, code)
            if indexes:
                hashes = hashes_of(topic, properties, sys_flag)
                if hashes is not None:
                    indexed.append((hashes, at, store_timestamp))
            last_position = at
            at += size
        if queue is not None:
            if is_next:
                queue.extend(units, at)
            if not is_next or self._has_light_queues:
                self._dispatch_one_by_one(queue, messages, sizes, position, queue_offset, store_timestamp)
        if indexed:
            self._index.put(indexed)
        self.newest_timestamp = store_timestamp
        if self.on_arrival is not None and queue is not None and self.is_awaited(topic, queue.queue_id):
            self._announce(queue, messages, sizes, position, queue_offset, store_timestamp)
        self.position, self.newest_position = at, last_position

    def dispatch_one(
        self,
        queue: ConsumeQueue | None,
        message: NewMessage,
        size: int,
        position: int,
        queue_offset: int,
        store_timestamp: int,
    ) -> None:
        """`dispatch` for one record, without the lists: most appends are of one message."""
        topic, properties = message.topic, message.property_map
        if topic == SCHEDULE_TOPIC:
            code = self.tags_code_of(topic, properties, store_timestamp)
        else:
            tags = properties.get(TAGS)
            code = (self._tag_codes.get(tags) or self._tag_code(tags)) if tags else 0
        if queue is not None:
            queue.append(position, size, code, queue_offset)
            if self._has_light_queues:
                self._dispatch_to_light_queues(topic, properties, position, size, code)
        index = self._index
        if index.enabled:
            hashes = index.hashes_of(topic, properties, message.sys_flag)
            if hashes is not None:
                index.put(((hashes, position, store_timestamp),))
        self.position = position + size
        self.newest_timestamp = store_timestamp
        self.newest_position = position
        if queue is not None and self.on_arrival is not None:
            self.on_arrival(topic, message.queue_id, queue_offset, code, properties, store_timestamp)

    def template(self, message: NewMessage, record: RecordTemplate) -> MessageTemplate | None:
        """What messages like this one share; None if a unit or index entry depends on more than a template holds."""
        topic, properties = message.topic, message.property_map
        if topic == SCHEDULE_TOPIC or not is_in_queue(message.sys_flag):
            return None
        around = around_unique_id(message.properties)
        if around is None:
            return None
        hashes: Sequence[int] = ()
        unique_ids, has_id = None, bool(around[1])
        if self._index.enabled:
            hashes = self._index.hashes_of(topic, properties, message.sys_flag) or ()
            if has_id != bool(properties.get(UNIQ_KEY)):
                return None
            if has_id:
                unique_ids, hashes = self._index.unique_ids(topic), hashes[1:]
        id_at, hashes_of_keys = None, None
        if record.properties is None:
            id_at = TEXT_LENGTH_BYTES + len(around[0])
            if hashes and properties.get(KEYS):
                if unique_ids is None:
                    return None
                hashes = self._index.hashes_of(topic, {**properties, UNIQ_KEY: "", KEYS: ""}, 0) or ()
                hashes_of_keys = self._index.keys_of_topic(topic)
        code = self.tags_code_of(topic, properties, 0)
        return MessageTemplate(topic, record, code, unique_ids, tuple(hashes), id_at, hashes_of_keys)

    def dispatch_alike(
        self,
        template: MessageTemplate,
        messages: Sequence[AlikeMessage],
        places: Sequence[tuple[ConsumeQueue, Sequence[int]]],
        stored: Stored,
    ) -> None:
        """`dispatch` for the first messages of a template; `places`: the queue of each and the hashes of its keys."""
        code, store_timestamp, put_in_index = template.tags_code, stored.store_timestamp, self._index.put_new
        for (queue, key_hashes), position, size, queue_offset in zip(
            places, stored.positions, stored.sizes, stored.queue_offsets, strict=True
        ):
            queue.append(position, size, code, queue_offset)
            if key_hashes:
                put_in_index(key_hashes, position, store_timestamp)
        self._index.write_header()
        self.dispatched(template, messages, stored)

    def dispatched(self, template: MessageTemplate, messages: Sequence[AlikeMessage], stored: Stored) -> None:
        """The first messages of a template are in their queues and in the index: announce them."""
        self.newest_timestamp = stored.store_timestamp
        if self.on_arrival is not None and self._may_be_awaited(template.topic):
            self._announce_alike(template, messages, stored)
        self.position, self.newest_position = stored.end, stored.positions[-1]

    def dispatch_batch(
        self,
        template: MessageTemplate,
        queue: ConsumeQueue,
        batch: AlikeBatch,
        hashes: Sequence[int],
        stored: Stored,
    ) -> None:
        """`dispatch` for a batch of messages of a template, whose keys have these hashes."""
        positions, sizes, queue_offsets = stored.positions, stored.sizes, stored.queue_offsets
        if queue_offsets[0] == queue.max_offset and positions[0] >= queue.records_end:
            queue.extend_alike(positions, sizes, template.tags_code)
        else:
            for position, size, queue_offset in zip(positions, sizes, queue_offsets, strict=True):
                queue.append(position, size, template.tags_code, queue_offset)
        if hashes:
            each = len(hashes) // len(positions)
            of_hashes = positions if each == 1 else [position for position in positions for _ in range(each)]
            self._index.put_batch(hashes, of_hashes, stored.store_timestamp)
        self.newest_timestamp = stored.store_timestamp
        if self.on_arrival is not None and self.is_awaited(template.topic, batch.queue_id):
            messages = [(batch.queue_id, b"", unique_id, 0, 0) for unique_id in batch.unique_ids]
            self._announce_alike(template, messages, stored)
        self.position, self.newest_position = stored.end, positions[-1]

    def dispatch_elements(
        self, queue: ConsumeQueue, batch: ElementBatch, packed: Packed, stored: Stored
    ) -> None:
        """`dispatch` for a batch of which the log has listed what queue and index need."""
        positions, sizes, units, hashes, places = packed
        queue_offset, store_timestamp = stored.queue_offsets[0], stored.store_timestamp
        if queue_offset == queue.max_offset and positions[0] >= queue.records_end:
            queue.extend(units, stored.end)
        else:
            for number, (position, size, code) in enumerate(UNIT.iter_unpack(units), queue_offset):
                queue.append(position, size, code, number)
        if hashes:
            self._index.put_batch(hashes, places, store_timestamp)
        self.newest_timestamp = store_timestamp
        if self.on_arrival is not None and self.is_awaited(queue.topic, queue.queue_id):
            messages = []
            for element in decode_batch(batch.elements):
                properties = decode_properties(element.properties)
                messages.append(NewMessage(queue.topic, queue.queue_id, b"", b"", properties))
            self._announce(queue, messages, sizes, positions[0], queue_offset, store_timestamp)
        self.position, self.newest_position = stored.end, positions[-1]

    def _announce_alike(
        self, template: MessageTemplate, messages: Sequence[AlikeMessage], stored: Stored
    ) -> None:
        topic, on_arrival = template.topic, self.on_arrival
        assert on_arrival is not None
        for message, position, size, queue_offset in zip(
            messages, stored.positions, stored.sizes, stored.queue_offsets, strict=False
        ):
            if self.is_awaited(topic, message[0]):
                self.position, self.newest_position = position + size, position
                properties = template.properties_of(message)
                on_arrival(
                    topic, message[0], queue_offset, template.tags_code, properties, stored.store_timestamp
                )

    def _dispatch_one_by_one(
        self,
        queue: ConsumeQueue,
        messages: Sequence[NewMessage],
        sizes: Sequence[int],
        position: int,
        queue_offset: int,
        store_timestamp: int,
    ) -> None:
        """For records that do not follow the queue's last unit, or that the queue has in part, and for light queues."""
        for message, size in zip(messages, sizes, strict=True):
            properties = message.property_map
            code = self.tags_code_of(queue.topic, properties, store_timestamp)
            queue.append(position, size, code, queue_offset)
            if self._has_light_queues:
                self._dispatch_to_light_queues(queue.topic, properties, position, size, code)
            position += size
            queue_offset += 1

    def _announce(
        self,
        queue: ConsumeQueue,
        messages: Sequence[NewMessage],
        sizes: Sequence[int],
        position: int,
        queue_offset: int,
        store_timestamp: int,
    ) -> None:
        assert self.on_arrival is not None
        topic, queue_id = queue.topic, queue.queue_id
        for message, size in zip(messages, sizes, strict=True):
            properties = message.property_map
            code = self.tags_code_of(topic, properties, store_timestamp)
            self.position, self.newest_position = position + size, position
            self.on_arrival(topic, queue_id, queue_offset, code, properties, store_timestamp)
            position += size
            queue_offset += 1

    def tags_code_of(self, topic: str, properties: dict[str, str], store_timestamp: int) -> int:
        """The tags code of a message's queue unit."""
        if topic == SCHEDULE_TOPIC and DELAY in properties:
            return self._delivery_time(properties, store_timestamp)
        tags = properties.get(TAGS)
        return (self._tag_codes.get(tags) or self._tag_code(tags)) if tags else 0

    def dispatch_record(self, record: LoggedRecord, position: int) -> None:
        """Dispatch a record read back from a log position.

        A damaged record with an impossible place gets into no queue; the records behind it are dispatched all the same.
        """
        _, size, queue_id, queue_offset, sys_flag, store_timestamp, topic_bytes, properties = record
        topic = self.topic_of(topic_bytes)
        in_queue = is_in_queue(sys_flag)
        if in_queue and not is_possible_place(topic, queue_id, queue_offset):
            logger.error(
                "the record at log position %d is damaged: it names offset %d of %r, queue %d; it is in no queue",
                position,
                queue_offset,
                topic,
                queue_id,
            )
            in_queue = False
        message = NewMessage(
            topic, queue_id, b"", properties, decode_properties(properties), sys_flag=sys_flag
        )
        queue = self._queues.get_or_create(topic, queue_id) if in_queue else None
        self.dispatch_one(queue, message, size, position, queue_offset, store_timestamp)

    def topic_of(self, topic_bytes: bytes) -> str:
        """The topic of a record, decoded once; never raises."""
        topic = self._topics.get(topic_bytes)
        if topic is None:
            if len(self._topics) >= _MAX_CACHED_TOPICS:
                self._topics.clear()
            topic = self._topics[topic_bytes] = topic_bytes.decode("utf-8", "replace")
        return topic

    def _tag_code(self, tags: str) -> int:
        code = tags_code(tags)
        if len(self._tag_codes) >= _MAX_CACHED_TAGS:
            self._tag_codes.clear()
        self._tag_codes[tags] = code
        return code

    def _delivery_time(self, properties: dict[str, str], store_timestamp: int) -> int:
        """A delayed message's tags code is the time it is due (CommitLog.checkMessageAndReturnSize)."""
        text = properties[DELAY]
        is_number = text.isdecimal() and len(text) <= _LONGEST_INT
        level = min(int(text), len(self._delay_levels_ms)) if is_number else 0
        if level <= 0:
            return tags_code(properties.get(TAGS))
        return store_timestamp + self._delay_levels_ms[level]

    def _dispatch_to_light_queues(
        self, topic: str, properties: dict[str, str], position: int, size: int, code: int
    ) -> None:
        for name, offset in light_queues_of(topic, properties):
            queue = self._queues.get_or_create(name, 0)
            queue.append(position, size, code, offset)
            queue.next_offset = max(queue.next_offset, queue.max_offset)


def _always(topic: str, queue_id: int = 0) -> bool:
    return True
