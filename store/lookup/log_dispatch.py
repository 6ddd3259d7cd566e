"""Dispatch of records that are in the log only: after a crash, under SYNC_FLUSH once they are on disk, at a slave.

Records are gathered, then each queue gets its units in one piece and the index its entries in one call: the same bytes
as one by one, in a fraction of the time. Other cases (a queue's first unit, one that does not follow the last, light
queues, damage) are dispatched one by one, in log order. Nothing is visible before `flush`.
Official class: ReputMessageService. Owner: the event-loop thread.
"""

import logging
from collections.abc import Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from pocketmq.core.plain_records import LoggedRecord
from pocketmq.core.properties import read_properties
from pocketmq.protocol.message.flags import is_queued
from pocketmq.protocol.message.record import BLANK, measure_record

from ..config import StoreConfig
from ..log.commit_log import CommitLog
from ..log.record_scan import scan_records
from .consume_queue import ConsumeQueue
from .dispatch import Arrival, Dispatcher
from .index_file import IndexEntry
from .key_index import KeyIndex
from .queue_table import QueueTable, is_possible_place
from .queue_unit import UNIT

logger = logging.getLogger(__name__)

RECORDS_AT_ONCE = 512
"""How many records are read before they are gathered."""
_MOST_GATHERED = 4096
"""Records; with a dozen keys each they take some MiB."""

_PACK_UNIT = UNIT.pack

_Place = tuple[str, int]
"""(topic, queue id)"""


class _Tail:
    """The units that wait for one queue, and where it will end with them."""

    __slots__ = ("max_offset", "queue", "records_end", "topic", "units")

    def __init__(self, queue: ConsumeQueue) -> None:
        self.queue = queue
        self.topic = queue.topic
        self.max_offset = queue.max_offset
        self.records_end = queue.records_end
        self.units: list[bytes] = []


class LogDispatch:
    """Reads records and gives them to a `Dispatcher`'s queues and index, many at a time."""

    def __init__(
        self,
        config: StoreConfig,
        log: CommitLog,
        queues: QueueTable,
        index: KeyIndex,
        dispatcher: Dispatcher,
    ) -> None:
        self._log = log
        self._dispatcher = dispatcher
        self._queues = queues
        self._index = index
        self._is_slave = config.broker_role == "SLAVE"
        self._one_by_one = config.has_light_queues
        self._forget_gathered()

    def _forget_gathered(self) -> None:
        self._tails: dict[tuple[bytes, int], _Tail] = {}
        self._entries: list[IndexEntry] = []
        self._arrivals: list[tuple[_Place, Arrival]] = []
        self._gathered = 0
        self._newest: tuple[int, int, int] | None = None

    def run(self, limit: int, most_records: int | None = None) -> bool:
        """Dispatch the log between the dispatcher's position and the position `limit`, at most `most_records`.

        Returns True if `most_records` stopped it. Raises StoreError as `Dispatcher.dispatch` does, and the next run
        continues there. Bytes that are not a record are skipped to the end of their file; a slave waits there, because
        the rest of a record may still be copied.
        """
        reached, more = self._gather(limit, -1 if most_records is None else most_records)
        self.flush()
        self._dispatcher.position = max(self._dispatcher.position, reached)
        return more

    def _gather(self, limit: int, left: int) -> tuple[int, bool]:
        """(position reached, whether `left` records were too few)."""
        reached = self._dispatcher.position
        while reached < limit:
            file = self._log.files.file_at(reached)
            if file is None:
                # The files before the log's start were deleted before they could be dispatched.
                reached = max(self._log.start, self._log.next_file_start(reached))
                continue
            records = scan_records(file.view, reached - file.base, file.written, check_crc=False)
            while piece := list(islice(records, RECORDS_AT_ONCE if left < 0 else min(left, RECORDS_AT_ONCE))):
                wanted = piece
                if file.base + piece[-1][0] >= limit:
                    wanted = [record for record in piece if file.base + record[0] < limit]
                self.add_all(wanted, file.base)
                if wanted:
                    reached = file.base + wanted[-1][0] + wanted[-1][1]
                if len(wanted) < len(piece):
                    return reached, False
                left -= len(piece) if left > 0 else 0
            if left == 0 and (record := next(records, None)) is not None:
                return reached, file.base + record[0] < limit
            if reached >= limit:
                break
            if measure_record(file.view, reached - file.base, file.written, check_crc=False) == BLANK:
                # At a slave the filler may not be copied to its end yet.
                end = file.base + file.size
                reached = end if self._is_slave else min(end, limit)
            elif self._is_slave:
                break
            else:
                logger.error("no record at log position %d: skipping to the next file", reached)
                reached = min(file.base + file.size, limit)
        return reached, False

    def add_all(self, records: Sequence[LoggedRecord], base: int) -> None:
        """Gather records of the log file that begins at `base`, in log order.

        Raises StoreError when a file cannot be made, for these or earlier ones.
        """
        dispatcher = self._dispatcher
        hashes_of, tags_code_of = self._index.hashes_of, dispatcher.tags_code_of
        is_awaited, one_by_one = dispatcher.on_arrivals is not None, self._one_by_one
        for record in records:
            at, size, queue_id, queue_offset, sys_flag, store_timestamp, topic_bytes, text = record
            position = base + at
            end = position + size
            properties = read_properties(text)
            if is_queued(sys_flag):
                tail = self._tails.get((topic_bytes, queue_id)) or self._tail(topic_bytes, queue_id)
                has_it = tail is not None and end <= tail.records_end
                if one_by_one or tail is None or (not has_it and queue_offset != tail.max_offset):
                    self.flush()
                    dispatcher.dispatch_record(record, position)
                    continue
                topic = tail.topic
                if is_awaited or not has_it:
                    code = tags_code_of(topic, properties, store_timestamp)
                    if not has_it:
                        tail.units.append(_PACK_UNIT(position, size, code))
                        tail.max_offset += 1
                        tail.records_end = end
                    if is_awaited:
                        arrival = queue_offset, code, text, position, size
                        self._arrivals.append(((topic, queue_id), arrival))
            else:
                topic = topic_bytes.decode("utf-8", "replace")
            hashes = hashes_of(topic, properties, sys_flag)
            if hashes:
                self._entries.append((hashes, position, store_timestamp))
            self._newest = end, store_timestamp, position
            self._gathered += 1
            if self._gathered >= _MOST_GATHERED:
                self.flush()

    def flush(self) -> None:
        """Write all gathered records, then announce each. Raises StoreError if a file cannot be made: the gathered
        records are then forgotten, and the next run reads them again."""
        tails, entries, arrivals, newest = self._tails, self._entries, self._arrivals, self._newest
        if newest is None:
            return
        self._forget_gathered()
        for tail in tails.values():
            if tail.units:
                queue = tail.queue
                queue.extend(b"".join(tail.units), queue.max_offset, queue.records_end, tail.records_end)
        self._index.put(entries)
        dispatcher = self._dispatcher
        for (topic, queue_id), of_queue in groupby(arrivals, itemgetter(0)):
            if dispatcher.is_awaited(topic, queue_id):
                dispatcher.announce(topic, queue_id, [arrival for _, arrival in of_queue])
        dispatcher.position, dispatcher.newest_timestamp, dispatcher.newest_position = newest

    def _tail(self, topic_bytes: bytes, queue_id: int) -> _Tail | None:
        """None for a topic or queue id that only a damaged record can name."""
        topic = topic_bytes.decode("utf-8", "replace")
        if not is_possible_place(topic, queue_id, 0):
            return None
        tail = self._tails[topic_bytes, queue_id] = _Tail(self._queues.get_or_create(topic, queue_id))
        return tail


class StoreParts(NamedTuple):
    """The parts of a store that hold its messages, and those that keep them in one state."""

    log: CommitLog
    queues: QueueTable
    key_index: KeyIndex
    dispatcher: Dispatcher
    log_dispatch: LogDispatch
