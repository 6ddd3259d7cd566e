"""Dispatch: what happens to a record after it was appended to the log. It is added to its queue and the index.

Usually this happens at once, from the message that was appended. Records that are in the log only (after a crash, or
not yet on disk under SYNC_FLUSH) are read back by `log_dispatch.py`. Dispatching twice is harmless: queues and index
skip what they have. Official classes: CommitLogDispatcherBuildConsumeQueue, CommitLogDispatcherBuildIndex. Owner: the
event-loop thread.
"""

import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from pocketmq.core.plain_records import LoggedRecord
from pocketmq.core.properties import read_properties
from pocketmq.core.records import delivery_time
from pocketmq.protocol.message.flags import is_queued
from pocketmq.protocol.message.properties import TAGS, tags_code
from pocketmq.protocol.message.record import properties_of
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC

from ..config import StoreConfig, parse_delay_levels
from ..log.commit_log import CommitLog
from ..put_values import Placed
from .consume_queue import ConsumeQueue
from .key_index import KeyIndex
from .light_queues import light_queues_of
from .queue_table import QueueTable, is_possible_place
from .queue_unit import UNIT

logger = logging.getLogger(__name__)

Arrival = tuple[int, int, bytes, int, int]
"""A message that can be read from its queue now: (queue offset, tags code, property text, log position, size); a plain
tuple, because on the path of sends"""

OnArrivals = Callable[[str, int, list[Arrival]], None]
"""(topic, queue id, messages of this queue in their order, at least one)"""

IsAwaited = Callable[[str, int], bool]
"""(topic, queue id)"""

_LONGEST_CACHED: Final = 128
"""Longer tags are rare: 10,000 of 32 KB would take 320 MB."""
_code_of_short_tags = lru_cache(10_000)(tags_code)


def code_of_tags(tags: str | None) -> int:
    """Java's hash of the tags, 0 without any."""
    if not tags:
        return 0
    return _code_of_short_tags(tags) if len(tags) <= _LONGEST_CACHED else tags_code(tags)


class Dispatcher:
    """Knows how far dispatch has come, and the marks that the flusher copies into the checkpoint."""

    def __init__(
        self,
        config: StoreConfig,
        log: CommitLog,
        queues: QueueTable,
        index: KeyIndex,
        is_awaited: IsAwaited | None = None,
    ) -> None:
        """`is_awaited` says whether anything waits for messages of a queue; without it everything is announced."""
        self._log = log
        self._queues = queues
        self._index = index
        self.on_arrivals: OnArrivals | None = None
        """Set once recovery is over: messages stored before are not announced."""
        self.is_awaited: IsAwaited = is_awaited or (lambda topic, queue_id: True)
        self._has_light_queues = config.has_light_queues
        self.delays_ms = tuple(parse_delay_levels(config.message_delay_level).values())
        """Of the levels from 1 on."""
        self.position = 0
        """Every record before this log position is in its queue and in the index."""
        self.newest_timestamp = 0
        """storeTimestamp of the newest record dispatched, ms."""
        self.newest_position = 0

    def dispatch(self, placed: Placed) -> None:
        """Add records that were just appended to their queues and to the index, and announce them.

        Raises StoreError if a file cannot be made; `self.position` then stays before the first record, and dispatching
        them again completes it.
        """
        awaited: list[ConsumeQueue] = []
        for queue, first, entries, start, end in placed.added:
            queue.extend(entries, first, start, end)
            if self.on_arrivals is not None and self.is_awaited(queue.topic, queue.queue_id):
                awaited.append(queue)
        if placed.keys:
            self._index.put_keys(placed.keys, placed.store_timestamp)
        self.newest_timestamp = placed.store_timestamp
        if awaited or self._has_light_queues:
            self._announce_placed(placed, awaited)
        self.position, self.newest_position = placed.end, placed.positions[-1]

    def _announce_placed(self, placed: Placed, awaited: list[ConsumeQueue]) -> None:
        """Add light queues' entries, and announce the messages in these queues."""
        entries, at = list(UNIT.iter_unpack(placed.entries)), 0
        arrivals: dict[ConsumeQueue, list[Arrival]] = {queue: [] for queue in awaited}
        for (queue, first, count), text in zip(placed.runs, placed.texts, strict=True):
            of_queue, at = arrivals.get(queue), at + count
            if queue is None or (of_queue is None and not self._has_light_queues):
                continue
            for offset, (position, size, code) in enumerate(entries[at - count : at], first):
                own_text = self._text_at(position, size) if text is None else text
                if self._has_light_queues:
                    properties = read_properties(own_text)
                    self._dispatch_to_light_queues(queue.topic, properties, position, size, code)
                if of_queue is not None:
                    of_queue.append((offset, code, own_text, position, size))
        for queue, of_queue in arrivals.items():
            self.announce(queue.topic, queue.queue_id, of_queue)

    def announce(self, topic: str, queue_id: int, arrivals: list[Arrival]) -> None:
        if self.on_arrivals is not None:
            self.on_arrivals(topic, queue_id, arrivals)

    def _text_at(self, position: int, size: int) -> bytes:
        record = self._log.read(position, size)
        return b"" if record is None else bytes(properties_of(record))

    def tags_code_of(self, topic: str, properties: dict[str, str], store_timestamp: int) -> int:
        """The tags code of a message's queue unit."""
        if topic == SCHEDULE_TOPIC:
            due_ms = delivery_time(properties, self.delays_ms, store_timestamp)
            if due_ms is not None:
                return due_ms
        return code_of_tags(properties.get(TAGS))

    def dispatch_record(self, record: LoggedRecord, position: int) -> None:
        """Dispatch a record read back from a log position.

        A damaged record with an impossible place gets into no queue; the records behind it are dispatched all the same.
        """
        _, size, queue_id, queue_offset, sys_flag, store_timestamp, topic_bytes, text = record
        topic = topic_bytes.decode("utf-8", "replace")
        in_queue = is_queued(sys_flag)
        if in_queue and not is_possible_place(topic, queue_id, queue_offset):
            logger.error(
                "the record at log position %d is damaged: it names offset %d of %r, queue %d; it is in no queue",
                position,
                queue_offset,
                topic,
                queue_id,
            )
            in_queue = False
        properties = read_properties(text)
        code = self.tags_code_of(topic, properties, store_timestamp)
        if in_queue:
            self._queues.get_or_create(topic, queue_id).append(position, size, code, queue_offset)
            if self._has_light_queues:
                self._dispatch_to_light_queues(topic, properties, position, size, code)
        hashes = self._index.hashes_of(topic, properties, sys_flag)
        if hashes:
            self._index.put(((hashes, position, store_timestamp),))
        self.position, self.newest_position = position + size, position
        self.newest_timestamp = store_timestamp
        if in_queue:
            self.announce(topic, queue_id, [(queue_offset, code, text, position, size)])

    def _dispatch_to_light_queues(
        self, topic: str, properties: dict[str, str], position: int, size: int, code: int
    ) -> None:
        for name, offset in light_queues_of(topic, properties):
            queue = self._queues.get_or_create(name, 0)
            queue.append(position, size, code, offset)
            queue.next_offset = max(queue.next_offset, queue.max_offset)
