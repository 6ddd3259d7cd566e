"""The stream reader of `rocketmq`: positions, limits of a batch, new queues, commits.

Spark keeps one `TopicStreamReader` for a query in a process of its own, for positions and commits. It creates others to
read partitions, which never see the state of the first. Between batches it stores the JSON of `StreamPosition`
(`tables/planning/positions.py`, with the reason for `init` and `from`). It calls `commit` for a batch when it plans
the next one, and so never for the last batch of a query: `session/progress.py` commits that one.
"""

import functools
import logging
import time
from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from ...errors import CheckpointError, OptionError, PipelineError, TopicMissing
from ...tables.brokers.batch_sender import now_ms
from ...tables.brokers.broker_client import shared_client
from ...tables.brokers.group_offsets import GroupWriter
from ...tables.brokers.read_planner import Planner
from ...tables.planning.positions import Offsets, Queue, StreamPosition
from ...tables.planning.ranges import Bounds, Range, limit_batch, ranges_between
from ...tables.planning.spark_processes import in_worker
from ...tables.planning.topic_options import SourceOptions, matching_topics
from ...tables.records.columns import MESSAGE_COLUMNS
from .output_schema import OutputSchema
from .topic_reader import read_ranges

_log = logging.getLogger("pocketmq.pipeline")

SAMPLE: Final = 32
"""Messages of a queue that are read to estimate their size."""
SAMPLED_QUEUES: Final = 16

COMMIT_TIMEOUT_MS: Final = 1000


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One streaming query's source."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._output = OutputSchema(schema, MESSAGE_COLUMNS)
        self._initial: dict[str, Any] | None = None
        self._target: Offsets | None = None
        self._is_target_wanted = False
        self._is_group_checked = False
        self._latest: Offsets = {}
        self._committed: Offsets = {}
        self._waiting_since: float | None = None

    @functools.cached_property
    def _planner(self) -> Planner:
        return Planner(shared_client(self._options.namesrv_addr, self._options.access), self._options)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_planner"}

    # -- positions

    @in_worker()
    def initialOffset(self) -> dict[str, Any]:
        """Always the same answer, although Spark asks more than once."""
        if self._initial is None:
            bounds = self._planner.bounds(self._planner.queues())
            start = self._planner.start(bounds)
            self._initial = StreamPosition(start, is_initial=True, time_ms=now_ms()).to_json()
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        return ReadAllAvailable()

    @in_worker()
    def prepareForTriggerAvailableNow(self) -> None:
        """Fix where the query ends. If a topic has no route at the moment, that waits for the position it began at:
        the topic may be one that it has read before."""
        self._is_target_wanted = True
        try:
            self._fix_target(self._planner.bounds(self._planner.queues()))
        except TopicMissing:
            pass

    def _fix_target(self, bounds: Bounds) -> None:
        self._target = {queue: held.high for queue, held in bounds.items()}
        self._is_target_wanted = False

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return StreamPosition(self._latest).to_json() if self._latest else None

    @in_worker()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch; `start` itself if there is nothing to read."""
        position = StreamPosition.of_json(start)
        self._check_topics(position)
        queues = self._planner.queues(position.offsets, waits=self._is_target_wanted)
        self._check_group(queues)
        if not position.is_initial:  # what was read up to here is done: Spark says so only if a batch follows
            self._commit(position.offsets)
        bounds = self._planner.bounds(queues)
        if self._is_target_wanted:
            self._fix_target(bounds)
        self._latest = position.offsets | {
            queue: max(held.high, position.offsets.get(queue, 0)) if held.is_of_slave else held.high
            for queue, held in bounds.items()
        }
        begin, start_offsets = self._begin(position, bounds)
        end = self._end(begin, bounds)
        backlog = sum(end[queue] - begin[queue] for queue in end)
        if not backlog and not (start_offsets and not position.is_initial):
            return start
        if not self._is_enough(backlog, limit):
            return start
        end = self._limit(begin, end, limit)
        is_filtered = self._options.is_filtered
        return StreamPosition(end, False, start_offsets, now_ms(), is_filtered).to_json()

    def _begin(self, position: StreamPosition, bounds: Bounds) -> tuple[Offsets, Offsets]:
        """Where each queue's part of the batch begins, and the begin offsets that must be recorded with its end."""
        begin = dict(position.offsets)
        start_offsets = dict(position.offsets) if position.is_initial else {}
        for queue, held in bounds.items():
            if queue not in begin:
                _log.warning("new queue, read from its first message: %s at %d", queue, held.low)
                begin[queue] = start_offsets[queue] = held.low
            elif not self._planner.check_position(queue, begin[queue], held):
                is_new = self._planner.is_new_since(queue, held, position.time_ms)
                begin[queue] = start_offsets[queue] = held.low if is_new else held.high
        return begin, start_offsets

    def _end(self, begin: Offsets, bounds: Bounds) -> Offsets:
        """The ends of the queues. A queue that is in no route at the moment stays where it is."""
        end = dict(begin)
        for queue, held in bounds.items():
            last = held.high
            if self._target is not None:
                last = min(last, self._target.get(queue, begin[queue]))
            end[queue] = max(begin[queue], last)
        return end

    def _is_enough(self, backlog: int, limit: ReadLimit) -> bool:
        """Whether to start a batch now.

        A small one may wait for more, up to `maxTriggerDelay`, but not under AvailableNow.
        """
        least = self._options.min_offsets_per_trigger
        if isinstance(limit, ReadMinRows):
            least = limit.min_rows
        if least is not None and self._target is None and backlog < least:
            now = time.monotonic()
            self._waiting_since = now if self._waiting_since is None else self._waiting_since
            if (now - self._waiting_since) * 1000 < self._options.max_trigger_delay_ms:
                return False
        self._waiting_since = None
        return True

    def _limit(self, begin: Offsets, end: Offsets, limit: ReadLimit) -> Offsets:
        most_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        if isinstance(limit, ReadMaxRows):
            end = limit_batch(begin, end, limit.max_rows)
            most_bytes = self._options.max_bytes_per_trigger  # Spark passes only one limit
        if most_bytes is not None:
            end = limit_batch(begin, end, max(1, most_bytes // self._message_bytes(begin, end)))
        return end

    def _message_bytes(self, begin: Offsets, end: Offsets) -> int:
        """The mean stored size of the next messages, from the first ones of the queues with most of them."""
        parts = sorted(ranges_between(begin, end), key=lambda part: -part.size)[:SAMPLED_QUEUES]
        return self._planner.message_bytes(
            [Range(part.queue, part.lo, min(part.lo + SAMPLE, part.hi)) for part in parts]
        )

    def _check_topics(self, position: StreamPosition) -> None:
        options = self._options
        topics = {queue.topic for queue in position.offsets}
        if options.pattern is not None:
            wanted = set(matching_topics(options.pattern, sorted(topics)))
        else:
            wanted = set(options.topics) | {queue.topic for queue in options.assigned}
        if topics - wanted:
            raise CheckpointError(
                f"the checkpoint is of {', '.join(sorted(topics))}, the query reads "
                f"{options.pattern or ', '.join(sorted(wanted))}: use another checkpoint location, or the same topics"
            )

    # -- reading

    @in_worker()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of one batch, which may be a repeated one. A range whose end is before its start is empty."""
        first, last = StreamPosition.of_json(start), StreamPosition.of_json(end)
        self._check_topics(last)
        ranges = ranges_between({**first.offsets, **last.start_offsets}, last.offsets)
        if not ranges:
            return []
        bounds = self._planner.bounds([part.queue for part in ranges])
        tasks = self._planner.split(self._planner.clamp_to_bounds(ranges, bounds))
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_ranges(self._options, self._output, partition)

    # -- progress

    def commit(self, end: dict[str, Any]) -> None:
        """For lag tools only: the query's own position is in its checkpoint, so a failure here does not end it."""
        self._commit(StreamPosition.of_json(end).offsets)

    def _commit(self, offsets: Offsets) -> None:
        if not self._options.commits_offsets or offsets == self._committed:
            return
        try:
            self._group_writer.commit(offsets)
            self._committed = offsets
        except PipelineError as error:
            _log.warning("the offsets of group %s were not committed: %s", self._options.group, error)

    @property
    def _group_writer(self) -> GroupWriter:
        options = self._options
        return GroupWriter(self._planner.client, options.group, COMMIT_TIMEOUT_MS, options.shares_group)

    def _check_group(self, queues: list[Queue]) -> None:
        """Once, before the query reads: `GroupInUse` if it would commit to a group with live members."""
        if self._options.commits_offsets and not self._is_group_checked:
            self._group_writer.check(queues)
            self._is_group_checked = True


class FailingStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Raises the error in the options at its first call.

    If a reader cannot be created, Spark's worker still tries to stop it, and the user sees only that there is no
    variable `reader`.
    """

    def __init__(self, error: OptionError) -> None:
        self._error = error

    def _fail(self, *_: Any) -> Any:
        raise self._error

    initialOffset = prepareForTriggerAvailableNow = _fail
    latestOffset: Any = _fail
    partitions: Any = _fail
    read: Any = _fail
