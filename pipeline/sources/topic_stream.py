"""Streams of the data source `rocketmq`: positions, admission, new queues, commits.

The engine keeps one object of this class for a query in a process of its own (positions and commits), and makes
others, which never see its state, to read partitions. What it stores between batches is the JSON of `StreamPosition`
(`planning/positions.py`, with the reason for `init` and `from`). It calls `commit` for a batch when it plans the
next one, so the
last batch of a query is never committed by it: `session/progress.py` does that.
"""

import logging
import time
from collections.abc import Iterator
from typing import Any, Final

import msgspec
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

from ..brokers.range_reader import RangeReader
from ..brokers.read_planner import Bounds, Planner
from ..brokers.wire import wire_for
from ..errors import CheckpointError, OptionError, PipelineError
from ..planning.positions import Offsets, Queue, StreamPosition
from ..planning.ranges import Loss, Range, limit_batch, ranges_between
from ..planning.topic_options import SourceOptions, matching_topics
from ..records.columns import MESSAGE_COLUMNS
from .output_schema import OutputSchema
from .topic_reader import RangePartition, read_ranges

_log = logging.getLogger("pocketmq.pipeline")

SAMPLE: Final = 32
"""Messages of a queue looked at to know how large they are."""


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One streaming query's source."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._output = OutputSchema(schema, MESSAGE_COLUMNS)
        self._initial: dict[str, Any] | None = None
        self._target: Offsets | None = None
        self._latest: Offsets = {}
        self._waiting_since: float | None = None
        self._planned: Planner | None = None

    @property
    def _planner(self) -> Planner:
        if self._planned is None:
            self._planned = Planner(wire_for(self._options), self._options)
        return self._planned

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_planned": None}

    # -- positions

    def initialOffset(self) -> dict[str, Any]:
        """Asked once: the engine asks more often."""
        if self._initial is None:
            bounds = self._planner.bounds(self._planner.queues())
            self._initial = StreamPosition(self._planner.start(bounds), is_initial=True).to_json()
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        bounds = self._planner.bounds(self._planner.queues())
        self._target = {queue: high for queue, (_, high) in bounds.items()}

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return StreamPosition(self._latest).to_json() if self._latest else None

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch; `start` itself where there is nothing for one."""
        position = StreamPosition.of_json(start)
        self._check_topics(position)
        bounds = self._planner.bounds(self._planner.queues())
        self._latest = {**position.offsets, **{queue: high for queue, (_, high) in bounds.items()}}
        begin, begun_at = self._begin(position, bounds)
        end = self._end(begin, bounds)
        waiting = sum(end[queue] - begin[queue] for queue in end)
        if not waiting and not (begun_at and not position.is_initial):
            return start
        if not self._is_enough(waiting, limit):
            return start
        end = self._limited(begin, end, limit)
        return StreamPosition(end, begun_at=begun_at).to_json()

    def _begin(self, position: StreamPosition, bounds: Bounds) -> tuple[Offsets, Offsets]:
        """Where each queue's part of the batch begins, and those beginnings that must be written down with its end."""
        begin = dict(position.offsets)
        begun_at = dict(position.offsets) if position.is_initial else {}
        for queue, (low, high) in bounds.items():
            if queue not in begin:
                _log.warning("new queue, read from its first message on: %s at %d", queue, low)
                begin[queue] = begun_at[queue] = low
            elif begin[queue] > high:
                self._planner.report_loss(Loss(queue, high, begin[queue], f"the queue ends at {high}"))
                begin[queue] = begun_at[queue] = low
        return begin, begun_at

    def _end(self, begin: Offsets, bounds: Bounds) -> Offsets:
        """As far as there are messages; a queue that no route has now stays where it is."""
        end = dict(begin)
        for queue, (_, high) in bounds.items():
            last = high if self._target is None else min(high, self._target.get(queue, begin[queue]))
            end[queue] = max(begin[queue], last)
        return end

    def _is_enough(self, waiting: int, limit: ReadLimit) -> bool:
        """A small batch may wait for more, but not under AvailableNow, and not for ever."""
        least = self._options.min_offsets_per_trigger
        if isinstance(limit, ReadMinRows):
            least = limit.min_rows
        if least is None or self._target is not None or waiting >= least:
            self._waiting_since = None
            return True
        now = time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = now
        if (now - self._waiting_since) * 1000 < self._options.max_trigger_delay_ms:
            return False
        self._waiting_since = None
        return True

    def _limited(self, begin: Offsets, end: Offsets, limit: ReadLimit) -> Offsets:
        most_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        if isinstance(limit, ReadMaxRows):
            end = limit_batch(begin, end, limit.max_rows)
            most_bytes = self._options.max_bytes_per_trigger  # the engine hands over one limit only
        if most_bytes is not None:
            end = limit_batch(begin, end, max(1, most_bytes // self._message_bytes(begin, end)))
        return end

    def _message_bytes(self, begin: Offsets, end: Offsets) -> int:
        """The mean size of the first messages that wait, as stored."""
        size = rows = 0
        for one in ranges_between(begin, end):
            sample = Range(one.queue, one.lo, min(one.lo + SAMPLE, one.hi))
            for records in RangeReader(self._planner.wire, sample, self._options).batches():
                size += int(records.sizes.sum())
                rows += len(records)
        return max(1, size // max(rows, 1))

    def _check_topics(self, position: StreamPosition) -> None:
        options = self._options
        topics = position.topics()
        if options.pattern is not None:
            wanted = set(matching_topics(options.pattern, sorted(topics)))
        else:
            wanted = set(options.topics) | {queue.topic for queue in options.assigned}
        if topics - wanted:
            raise CheckpointError(
                f"the checkpoint is of {', '.join(sorted(topics))}, the query reads "
                f"{options.pattern or ', '.join(sorted(wanted))}: give it a checkpoint of its own, or the same topics"
            )

    # -- reading

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks of one batch, also of one that is repeated. A position that lies in no order is read as nothing."""
        first, last = StreamPosition.of_json(start), StreamPosition.of_json(end)
        self._check_topics(last)
        ranges = ranges_between({**first.offsets, **last.begun_at}, last.offsets)
        if not ranges:
            return []
        bounds = self._bounds_of(ranges)
        return [
            RangePartition(one) for one in self._planner.split(self._planner.clamp_to_bounds(ranges, bounds))
        ]

    def _bounds_of(self, ranges: list[Range]) -> Bounds:
        queues: list[Queue] = [one.queue for one in ranges]
        return self._planner.bounds(queues)

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        return read_ranges(self._options, self._output, partition)

    # -- progress

    def commit(self, end: dict[str, Any]) -> None:
        """For lag tools alone: the query's own position is in its checkpoint, so a failure here ends nothing."""
        if not self._options.commits_offsets:
            return
        quick = msgspec.structs.replace(self._options, plan_timeout_ms=1000)
        try:
            self._planner.wire.commit(quick.group, StreamPosition.of_json(end).offsets, quick.plan_timeout_ms)
        except PipelineError as error:
            _log.warning("progress of group %s is not stored: %s", quick.group, error)


class FailingStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says what is wrong with the options when it is first asked for anything.

    A reader that cannot be made the engine's worker wants to stop all the same, and what its user gets to see is that
    there is no variable `reader`.
    """

    def __init__(self, error: OptionError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:
        raise self._error

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        raise self._error

    def prepareForTriggerAvailableNow(self) -> None:
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        raise self._error

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        raise self._error
