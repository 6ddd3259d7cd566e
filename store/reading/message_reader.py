"""Reading: messages of a queue from an offset on (pull), and by key (query).

Results are views of the mapped log; scattered small records are copied together. Statuses, limits and the order of the
tests are official (DefaultMessageStore.getMessage, queryMessage); a batch ends at the count or bytes asked for, or at
the limits for data in memory or on disk, which always go by the distance rule. Owner: the event-loop thread.
"""

from collections.abc import Callable
from typing import Literal

import msgspec
from pocketmq.core.gathered_records import gather_records
from pocketmq.protocol.message.record import store_timestamp_of

from ..config import QUEUE_UNIT_BYTES, StoreConfig
from ..log.commit_log import CommitLog
from ..lookup.consume_queue import ConsumeQueue
from ..lookup.key_index import KeyIndex
from ..lookup.queue_table import QueueTable
from ..lookup.queue_unit import UNIT, sizes_of
from .get_values import GetResult, GetStatus, QueryResult
from .residency import MemoryBudget

MAX_PULL_BYTES = 128 << 20
_MIN_PULL_BYTES = 100
_QUERY_TRIES = 3
_NEWEST_BYTES = 16 << 20
"""The newest part of the log is in memory: nothing is fetched ahead there."""
_MAX_COUNT = 1024
"""The greatest pullBatchSize of official clients. A greater number must not make one read look at a whole file."""

SMALL_RECORD_BYTES = 1024
"""Scattered records of this mean size or less are copied: a view of each costs more than its bytes."""

MatchesCode = Callable[[int], bool]
MatchesRecord = Callable[[memoryview], bool]
IndexType = Literal["K", "U", "T"]


class MessageReader:
    """The read half of the store. Counts reads, for runtime information."""

    def __init__(
        self, config: StoreConfig, log: CommitLog, queues: QueueTable, index: KeyIndex, budget: MemoryBudget
    ) -> None:
        self._config = config
        self._log = log
        self._queues = queues
        self._index = index
        self._budget = budget
        self.found_times = 0
        self.missed_times = 0
        self.transferred_messages = 0

    def get_message(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_count: int,
        *,
        max_bytes: int | None = None,
        matches: MatchesCode | None = None,
        matches_record: MatchesRecord | None = None,
        max_reads: int | None = None,
    ) -> GetResult:
        """Messages from `offset` on. `matches` gets the tags code of a unit, `matches_record` the whole record; both
        see at most `max_reads` units, and at most as many as the settings say.

        The first message is returned whatever its size. `next_offset` is where to continue, in every case.
        """
        queue = self._queues.get(topic, queue_id)
        if queue is None or queue.max_offset == 0:
            self.missed_times += 1
            return GetResult(GetStatus.NO_MESSAGE_IN_QUEUE, [], 0, self._correct_offset(offset, 0), 0, 0)
        minimum, maximum = queue.min_offset, queue.max_offset
        if minimum <= offset < maximum:
            result = self._collect(queue, offset, max_count, max_bytes, matches, matches_record, max_reads)
            if result.status is GetStatus.FOUND:
                self.found_times += 1
                self.transferred_messages += result.count
            else:
                self.missed_times += 1
            return result
        self.missed_times += 1
        if offset < minimum:
            status, following = GetStatus.OFFSET_TOO_SMALL, minimum
        elif offset == maximum:
            status, following = GetStatus.OFFSET_OVERFLOW_ONE, offset
        else:
            status, following = GetStatus.OFFSET_OVERFLOW_BADLY, maximum
        return GetResult(status, [], 0, self._correct_offset(offset, following), minimum, maximum)

    def _correct_offset(self, offset: int, following: int) -> int:
        """A slave does not correct a consumer's offset, because its master may have more (nextOffsetCorrection)."""
        config = self._config
        return offset if config.broker_role == "SLAVE" and not config.offset_check_in_slave else following

    def _collect(
        self,
        queue: ConsumeQueue,
        offset: int,
        max_count: int,
        max_bytes: int | None,
        matches: MatchesCode | None,
        matches_record: MatchesRecord | None,
        max_reads: int | None,
    ) -> GetResult:
        """Walk units from `offset`, one queue file at a time, until messages were found or the files are used up."""
        config = self._config
        limits = _Limits.of(config, self._log.end, self._budget.bytes, max_count, max_bytes)
        budget = max(
            config.max_filter_message_size // QUEUE_UNIT_BYTES,
            min(max_count, max(_MAX_COUNT, limits.memory_count)),
        )
        if max_reads is not None:
            budget = min(budget, max_reads)
        found = _Found()
        following, maximum = offset, queue.max_offset
        for _ in range(config.travel_cq_file_num_when_get_message):
            units = queue.units_from(following)
            if not units:
                found.status = GetStatus.OFFSET_FOUND_NULL
                following = self._correct_offset(following, queue.next_file_offset(following))
                break
            left = offset + budget - following
            if left <= 0:
                break
            following += found.walk(
                units[: left * QUEUE_UNIT_BYTES], self._log, limits, matches, matches_record
            )
            if found.count or following >= maximum:
                break
        if found.last_position < limits.log_end - _NEWEST_BYTES:
            self._read_ahead(found.last_position)
        return GetResult(
            found.status,
            found.views,
            found.count,
            following,
            queue.min_offset,
            maximum,
            found.total_bytes,
            limits.log_end - found.last_position > limits.budget_bytes,
            found.last_position,
        )

    def _read_ahead(self, position: int) -> None:
        """A consumer of older messages continues here: they should be in memory at its next pull."""
        file = self._log.files.file_at(position)
        if file is not None:
            file.read_ahead(position - file.base)

    def query(
        self,
        topic: str,
        key: str,
        max_count: int,
        begin_ms: int,
        end_ms: int,
        index_type: IndexType | None = None,
    ) -> QueryResult:
        """Records whose key has the hash of `key`; the caller compares keys. Times are store times in ms. With "T",
        `key` is a tag.

        If no record found can be read any more, searches again before the oldest one, three times at most, as in the
        official broker.
        """
        limit = min(max_count, self._config.max_msgs_num_batch)
        result = QueryResult([])
        for _ in range(_QUERY_TRIES):
            offsets = sorted(self._index.query(topic, key, limit, begin_ms, end_ms, tags=index_type == "T"))
            if not offsets:
                break
            result.index_last_update_timestamp, result.index_last_update_position = self._index.last_update()
            records = [self._log.read_record(offset) for offset in offsets]
            result.views = [record for record in records if record is not None]
            if result.views or records[0] is None:
                break
            end_ms = store_timestamp_of(records[0])
        return result


class _Limits(msgspec.Struct, gc=False):
    """What one pull may return, from the settings and the request."""

    log_end: int
    budget_bytes: int
    hot_from: int
    """Records from this log position on count as in memory."""
    memory_bytes: int
    memory_count: int
    disk_bytes: int
    disk_count: int

    @classmethod
    def of(
        cls, config: StoreConfig, log_end: int, budget_bytes: int, max_count: int, max_bytes: int | None
    ) -> "_Limits":
        most = MAX_PULL_BYTES if max_bytes is None else min(max(max_bytes, _MIN_PULL_BYTES), MAX_PULL_BYTES)
        return cls(
            log_end,
            budget_bytes,
            log_end - budget_bytes,
            min(config.max_transfer_bytes_on_message_in_memory, most),
            min(config.max_transfer_count_on_message_in_memory, max_count),
            min(config.max_transfer_bytes_on_message_in_disk, most),
            min(config.max_transfer_count_on_message_in_disk, max_count),
        )


class _Found(msgspec.Struct):
    """What a pull has found so far; `walk` is called again only if that is nothing."""

    status: GetStatus = GetStatus.NO_MATCHED_MESSAGE
    views: list[memoryview] = []
    count: int = 0
    total_bytes: int = 0
    last_position: int = 0

    def walk(
        self,
        units: memoryview,
        log: CommitLog,
        limits: _Limits,
        matches: MatchesCode | None,
        matches_record: MatchesRecord | None,
    ) -> int:
        """Collect from consecutive units; returns how many were used up.

        Records that touch in the log become one view, from `run_start` to `run_end`: they lie in one file.
        """
        if matches is None and matches_record is None:
            used = self._take_all(units, log, limits)
            if used:
                return used
        hot_from = limits.hot_from
        count = total = looked_at = 0
        skip_before = run_start = run_end = file_base = file_end = -1
        position = self.last_position
        view = units
        for unit_offset, size, code in UNIT.iter_unpack(units):
            if count:
                if unit_offset >= hot_from:
                    if count >= limits.memory_count or total + size > limits.memory_bytes:
                        break
                elif count >= limits.disk_count or total + size > limits.disk_bytes:
                    break
            looked_at += 1
            position = unit_offset
            if position < skip_before:
                continue
            if matches is not None and not matches(code):
                if not count:
                    self.status = GetStatus.NO_MATCHED_MESSAGE
                continue
            record_end = position + size
            if position != run_end or record_end > file_end:
                if run_start >= 0:
                    self.views.append(view[run_start - file_base : run_end - file_base])
                    run_start = -1
                if not (file_base <= position and record_end <= file_end):
                    file = log.files.file_at(position)
                    if file is None or record_end > file.end:
                        if not count:
                            self.status = GetStatus.MESSAGE_WAS_REMOVING
                        if position < log.start:  # else the unit alone is damaged
                            skip_before = log.next_file_start(position)
                        continue
                    view, file_base, file_end = file.view, file.base, file.end
            if matches_record is not None:
                record = view[position - file_base : record_end - file_base]
                if not matches_record(record):
                    if not count:
                        self.status = GetStatus.NO_MATCHED_MESSAGE
                    continue
                self.views.append(record)
            else:
                if run_start < 0:
                    run_start = position
                run_end = record_end
            count += 1
            total += size
            skip_before = -1
        if run_start >= 0:
            self.views.append(view[run_start - file_base : run_end - file_base])
        if count:
            self.status = GetStatus.FOUND
        self.count, self.total_bytes, self.last_position = count, total, position
        return looked_at

    def _take_all(self, units: memoryview, log: CommitLog, limits: _Limits) -> int:
        """`walk` for most pulls, at a third of its cost: every unit is used, and only their number is limited.

        Returns 0, and has found nothing, if another limit may apply, the records do not lie in one file, or each needs
        a view of its own.
        """
        count = min(limits.memory_count, len(units) // QUEUE_UNIT_BYTES)
        if count < 1:
            return 0
        sizes = sizes_of(count).unpack_from(units)
        start, last = UNIT.unpack_from(units)[0], UNIT.unpack_from(units, (count - 1) * QUEUE_UNIT_BYTES)[0]
        end, total = last + sizes[-1], sum(sizes)
        file = log.files.file_at(start)
        if file is None or end > file.end or start < limits.hot_from or total > limits.memory_bytes:
            return 0
        if end - start == total:  # without a gap: a queue's records lie in its order
            self.views.append(file.view[start - file.base : end - file.base])
        elif total <= SMALL_RECORD_BYTES * count:
            try:
                records = gather_records(units[: count * QUEUE_UNIT_BYTES], file.view, file.base)
            except ValueError:  # damaged units: `walk` skips what they name
                return 0
            self.views.append(memoryview(records))
        else:
            return 0
        self.status, self.count, self.total_bytes, self.last_position = GetStatus.FOUND, count, total, last
        return count
