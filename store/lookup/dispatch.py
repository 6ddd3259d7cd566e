"""From the log to the queues and the index: what happens to a record after it was appended.

Ordinarily at once, from the fields still in hand (`dispatch`). Records that lie in the log only (after a crash, or
waiting for the disk under SYNC_FLUSH) are read back in order (`run`). Twice is harmless: queues and index skip what
they have. Official classes: ReputMessageService, CommitLogDispatcherBuildConsumeQueue, ...BuildIndex.
Owner: the event-loop thread.
"""

import logging
from collections.abc import Callable, Sequence

from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_MASK
from pocketmq.protocol.message.properties import DELAY, TAGS, decode_properties, tags_code
from pocketmq.protocol.message.record import BLANK, measure_record
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC

from ..config import StoreConfig
from ..delay_levels import parse_delay_levels
from ..log.commit_log import CommitLog
from ..log.record_scan import LoggedRecord, scan_records
from ..values import AppendResult, NewMessage
from .consume_queue import ConsumeQueue
from .key_index import KeyIndex
from .light_queues import light_queues_of
from .queue_table import QueueTable, has_place
from .queue_unit import UNIT

logger = logging.getLogger(__name__)

OnArrival = Callable[[str, int, int, int, dict[str, str] | None, int], None]
"""(topic, queue id, queue offset of the message, tags code, properties, store timestamp ms)"""

IsAwaited = Callable[[str, int], bool]
"""(topic, queue id)"""

_MAX_CACHED_TAGS = 10_000
_MAX_CACHED_TOPICS = 10_000
_LONGEST_INT = 10
_PACK_UNIT = UNIT.pack


class Dispatcher:
    """Knows how far dispatch has come, and the marks that the checkpoint takes over after a queue flush."""

    def __init__(
        self,
        config: StoreConfig,
        log: CommitLog,
        queues: QueueTable,
        index: KeyIndex,
        is_awaited: IsAwaited | None = None,
    ) -> None:
        """`is_awaited` says whether anybody is to be told of a queue's messages; without it they always are."""
        self._log = log
        self._queues = queues
        self._index = index
        self.on_arrival: OnArrival | None = None
        """Set once recovery is over: nobody waits for what was there before."""
        self._is_awaited = is_awaited
        self._is_slave = config.broker_role == "SLAVE"
        self._multi_dispatch = config.enable_lmq and config.enable_multi_dispatch
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
        topic: str,
        queue_id: int,
        properties: dict[str, str],
        position: int,
        size: int,
        queue_offset: int,
        store_timestamp: int,
        sys_flag: int,
    ) -> None:
        """Give one record to its queue, the index and whoever waits for it.

        `queue` is None for prepared and rollback records, which are in no queue. Raises StoreError when a file
        cannot be made; `position` then stays in front of the record, and dispatching it again completes it.
        """
        code = self.code_of(topic, properties, store_timestamp)
        if queue is not None:
            queue.append(position, size, code, queue_offset)
            if self._multi_dispatch:
                self._dispatch_to_light_queues(topic, properties, position, size, code)
        if self._index.enabled:
            self._index.put(topic, properties, position, store_timestamp, sys_flag)
        self.position = position + size
        self.newest_timestamp = store_timestamp
        self.newest_position = position
        if queue is not None and self.on_arrival is not None:
            self.on_arrival(topic, queue_id, queue_offset, code, properties, store_timestamp)

    def dispatch_batch(
        self, queue: ConsumeQueue, messages: Sequence[NewMessage], results: Sequence[AppendResult]
    ) -> None:
        """`dispatch` for messages stored back to back in one queue that are no transaction's, and in no light queue.

        Raises StoreError as `dispatch` does; `position` then stays in front of the first.
        """
        topic, store_timestamp = queue.topic, results[0].store_timestamp
        codes = [self.code_of(topic, message.property_map, store_timestamp) for message in messages]
        first = results[0]
        if first.queue_offset == queue.max_offset and first.position >= queue.records_end:
            units = [
                _PACK_UNIT(result.position, result.size, code)
                for result, code in zip(results, codes, strict=True)
            ]
            queue.extend(b"".join(units))
        else:  # an earlier batch is still missing, or part of this one is there
            for result, code in zip(results, codes, strict=True):
                queue.append(result.position, result.size, code, result.queue_offset)
        if self._index.enabled:
            hashes = [self._index.hashes_of(topic, message.property_map, 0) for message in messages]
            self._index.put_all(
                [
                    (wanted, result.position, store_timestamp)
                    for wanted, result in zip(hashes, results, strict=True)
                    if wanted is not None
                ]
            )
        self.newest_timestamp = store_timestamp
        on_arrival = self.on_arrival
        if on_arrival is not None and (self._is_awaited is None or self._is_awaited(topic, queue.queue_id)):
            for message, result, code in zip(messages, results, codes, strict=True):
                self._dispatched(result.position, result.size)
                on_arrival(
                    topic, queue.queue_id, result.queue_offset, code, message.property_map, store_timestamp
                )
        self._dispatched(results[-1].position, results[-1].size)

    def _dispatched(self, position: int, size: int) -> None:
        self.position = position + size
        self.newest_position = position

    def code_of(self, topic: str, properties: dict[str, str], store_timestamp: int) -> int:
        """The tags code of a message's queue unit."""
        if topic == SCHEDULE_TOPIC and DELAY in properties:
            return self._delivery_time(properties, store_timestamp)
        tags = properties.get(TAGS)
        return (self._tag_codes.get(tags) or self._tag_code(tags)) if tags else 0

    def dispatch_record(self, record: LoggedRecord, position: int) -> None:
        """Dispatch a record read back from a log position.

        One that damage gave an impossible place goes to no queue, and keeps nobody from the records behind it.
        """
        _, size, queue_id, queue_offset, sys_flag, store_timestamp, topic_bytes, properties = record
        topic = self._topics.get(topic_bytes) or self._topic(topic_bytes)
        in_queue = sys_flag & TRANSACTION_MASK in (0, TRANSACTION_COMMIT)
        if in_queue and not has_place(topic, queue_id, queue_offset):
            logger.error(
                "the record at log position %d is damaged: no queue takes number %d of %r, queue %d; it is in none",
                position,
                queue_offset,
                topic,
                queue_id,
            )
            in_queue = False
        self.dispatch(
            self._queues.get_or_create(topic, queue_id) if in_queue else None,
            topic,
            queue_id,
            decode_properties(properties),
            position,
            size,
            queue_offset,
            store_timestamp,
            sys_flag,
        )

    def run(self, limit: int, most_records: int | None = None) -> bool:
        """Dispatch what the log holds between `position` and `limit`, at most so many records; True if that bound
        stopped it. Raises StoreError as `dispatch` does.

        What is no record is skipped to the end of its file; a slave waits there: the rest of a record may be on its
        way.
        """
        left = -1 if most_records is None else most_records
        while self.position < limit:
            file = self._log.files.file_at(self.position)
            if file is None:
                # The files before the log's start were deleted before they could be dispatched.
                self.position = max(self._log.start, self._log.next_file_offset(self.position))
                continue
            for record in scan_records(file.view, self.position - file.base, file.wrote, check_crc=False):
                position = file.base + record[0]
                if position >= limit:
                    return False
                if left == 0:
                    return True
                left -= 1
                self.dispatch_record(record, position)
            if self.position >= limit:
                return False
            if measure_record(file.view, self.position - file.base, file.wrote, check_crc=False) == BLANK:
                # At a slave the filler may not be there to its end.
                end = file.base + file.size
                self.position = end if self._is_slave else min(end, limit)
            elif self._is_slave:
                return False
            else:
                logger.error("no record at log position %d: skipping to the next file", self.position)
                self.position = min(file.base + file.size, limit)
        return False

    def _topic(self, topic_bytes: bytes) -> str:
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
