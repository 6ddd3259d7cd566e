"""Dispatch of many records read back from the log: to the same bytes as one by one, in a fraction of the time.

Records are gathered, then each queue gets its units in one piece and the index its entries in one go. What is not
the ordinary case (a queue's first unit, one that does not follow the last, light queues, damage) goes the one-by-one
way of `dispatch.py`, in its turn. Only recovery has so many at hand.
"""

from pocketmq.protocol.message.flags import TRANSACTION_COMMIT, TRANSACTION_MASK
from pocketmq.protocol.message.properties import decode_properties

from ..config import StoreConfig
from ..log.record_scan import LoggedRecord
from .consume_queue import ConsumeQueue
from .dispatch import Dispatcher
from .index_file import IndexEntry
from .key_index import KeyIndex
from .queue_table import QueueTable, has_place
from .queue_unit import UNIT

_MOST_GATHERED = 4096
"""Records; with a dozen keys each they take some MiB."""
_PACK_UNIT = UNIT.pack


class _Tail:
    """The units that wait for one queue, and where it will end with them."""

    __slots__ = ("max_offset", "queue", "records_end", "topic", "units")

    def __init__(self, queue: ConsumeQueue) -> None:
        self.queue = queue
        self.topic = queue.topic
        self.max_offset = queue.max_offset
        self.records_end = queue.records_end
        self.units: list[bytes] = []


class BulkDispatch:
    """Nothing is where it belongs before `flush`."""

    def __init__(
        self, config: StoreConfig, dispatcher: Dispatcher, queues: QueueTable, index: KeyIndex
    ) -> None:
        self._dispatcher = dispatcher
        self._queues = queues
        self._index = index
        self._indexes = index.enabled
        self._hashes_of = index.hashes_of
        self._one_by_one = config.enable_lmq and config.enable_multi_dispatch
        self._topics: dict[bytes, str] = {}
        self._tails: dict[tuple[bytes, int], _Tail] = {}
        self._entries: list[IndexEntry] = []
        self._gathered = 0
        self._newest: tuple[int, int, int] | None = None

    def add(self, record: LoggedRecord, position: int) -> None:
        """Dispatch a record, in log order. Raises StoreError when a file cannot be made, for this or earlier ones."""
        _, size, queue_id, queue_offset, sys_flag, store_timestamp, topic_bytes, properties_bytes = record
        end = position + size
        if sys_flag & TRANSACTION_MASK in (0, TRANSACTION_COMMIT):
            tail = self._tails.get((topic_bytes, queue_id)) or self._tail(topic_bytes, queue_id)
            has_it = tail is not None and end <= tail.records_end
            if self._one_by_one or tail is None or (not has_it and queue_offset != tail.max_offset):
                self.flush()
                self._dispatcher.dispatch_record(record, position)
                return
            topic = tail.topic
            properties = decode_properties(properties_bytes)
            if not has_it:
                code = self._dispatcher.code_of(topic, properties, store_timestamp)
                tail.units.append(_PACK_UNIT(position, size, code))
                tail.max_offset += 1
                tail.records_end = end
        else:
            topic = self._topics.get(topic_bytes) or self._topic(topic_bytes)
            properties = decode_properties(properties_bytes)
        if self._indexes:
            wanted = self._hashes_of(topic, properties, sys_flag)
            if wanted is not None:
                self._entries.append((wanted, position, store_timestamp))
        self._newest = (end, store_timestamp, position)
        self._gathered += 1
        if self._gathered >= _MOST_GATHERED:
            self.flush()

    def flush(self) -> None:
        """Bring everything gathered to its place. Raises StoreError when a file cannot be made."""
        for tail in self._tails.values():
            if tail.units:
                tail.queue.extend(b"".join(tail.units))
        self._index.put_all(self._entries)
        if self._newest is not None:
            dispatcher = self._dispatcher
            dispatcher.position, dispatcher.newest_timestamp, dispatcher.newest_position = self._newest
        self._tails, self._entries, self._gathered, self._newest = {}, [], 0, None

    def _tail(self, topic_bytes: bytes, queue_id: int) -> _Tail | None:
        """None where damage made a queue of it that cannot be."""
        topic = self._topics.get(topic_bytes) or self._topic(topic_bytes)
        if not has_place(topic, queue_id, 0):
            return None
        tail = self._tails[topic_bytes, queue_id] = _Tail(self._queues.get_or_create(topic, queue_id))
        return tail

    def _topic(self, topic_bytes: bytes) -> str:
        topic = self._topics[topic_bytes] = topic_bytes.decode("utf-8", "replace")
        return topic
