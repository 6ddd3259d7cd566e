"""From options to queues, positions and ranges: what a read is about to read, asked from the brokers.

Used by the batch reader and by the stream reader; the arithmetic is in `planning/positions.py`, the questions in
`wire.py`. No
Spark here.
"""

import json
import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from ..errors import DataLossError, OptionError
from ..planning.positions import Offsets, Queue, read_offsets
from ..planning.ranges import Loss, Range, clamp, pack_small_ranges, ranges_between, split_ranges
from ..planning.topic_options import (
    COMMITTED,
    EARLIEST,
    LATEST,
    SourceOptions,
    StartOrEnd,
    matching_topics,
)
from .range_reader import RangeReader
from .wire import Wire

_log = logging.getLogger("pocketmq.pipeline")

SMALL_TASK: Final = 1000
"""Messages that are read sooner than the engine starts a task for them, some 20 ms."""
EARLIEST_OFFSET: Final = -2
LATEST_OFFSET: Final = -1
TIMES_EXAMPLE: Final = '{"T":1700000000000} or {"T":{"broker-a":{"0":1700000000000}}}'

Bounds = Mapping[Queue, tuple[int, int]]


class Planner:
    """Plans the reads of one set of options."""

    def __init__(self, wire: Wire, options: SourceOptions) -> None:
        self.wire = wire
        self.options = options
        self._checked_brokers: set[str] = set()

    def queues(self) -> list[Queue]:
        """The queues asked for, as the routes have them now. `OptionError` for a topic or queue there is not, or for
        an expression that a broker cannot use."""
        queues = self._asked_for()
        if self.options.filter_type != "TAG":
            # A pull with an expression that cannot be read is answered as if it had none: everything would come.
            fresh = {
                queue.broker_name: queue for queue in queues if queue.broker_name not in self._checked_brokers
            }
            self.wire.check_expression(self.options, fresh.values())
            self._checked_brokers |= fresh.keys()
        return queues

    def _asked_for(self) -> list[Queue]:
        options, timeout_ms = self.options, self.options.plan_timeout_ms
        topics = sorted({queue.topic for queue in options.assigned}) or list(options.topics)
        if options.pattern is not None:
            topics = matching_topics(options.pattern, self.wire.topics(timeout_ms))
        there = [queue for topic in topics for queue in self.wire.queues(topic, timeout_ms)]
        if not options.assigned:
            return there
        missing = sorted(set(options.assigned) - set(there))
        if missing:
            raise OptionError(f"option assign: there is no {missing[0]}")
        return list(options.assigned)

    def bounds(self, queues: list[Queue]) -> Bounds:
        """[min, max) of each queue."""
        return self.wire.bounds(queues, self.options.plan_timeout_ms)

    def start(self, bounds: Bounds) -> Offsets:
        """Where reading begins. An offset beyond what is there stays: `checked` says so."""
        place = self.options.start
        lows = {queue: low for queue, (low, _) in bounds.items()}
        highs = {queue: high for queue, (_, high) in bounds.items()}
        if place.kind == EARLIEST:
            return lows
        if place.kind == LATEST:
            return highs
        if place.kind == COMMITTED:
            return {**lows, **self._committed(bounds)}
        if place.kind == "offsets":
            offsets = read_offsets(place.option, place.text, bounds)
            return _with_bounds(offsets, lows, highs, place)
        return self._at_time(place, bounds, is_start=True)

    def end(self, bounds: Bounds, start: Offsets) -> Offsets:
        """Where a batch ends."""
        place = self.options.end
        highs = {queue: high for queue, (_, high) in bounds.items()}
        if place.kind == LATEST:
            return highs
        if place.kind == COMMITTED:
            return {**start, **self._committed(bounds)}
        if place.kind == "offsets":
            offsets = read_offsets(place.option, place.text, bounds)
            wrong = [queue for queue, offset in offsets.items() if offset == EARLIEST_OFFSET]
            if wrong:
                raise OptionError(f"option {place.option}: -2 (earliest) is no end, for {wrong[0]}")
            return _with_bounds(offsets, highs, highs, place)
        return self._at_time(place, bounds, is_start=False)

    def batch(self) -> list[Range]:
        """The ranges of a batch read, before they are split."""
        bounds = self.bounds(self.queues())
        start = self.start(bounds)
        for queue, offset in start.items():
            high = bounds[queue][1]
            if offset > high:  # no range begins there, so that nothing else would say it
                self.report_loss(Loss(queue, high, offset, f"not there: the queue ends at {high}"))
        return self.clamp_to_bounds(ranges_between(start, self.end(bounds, start)), bounds)

    def split(self, ranges: list[Range]) -> list[tuple[Range, ...]]:
        """The ranges of each task: one range, or small ones together where no option says how many tasks there are.
        The same ranges make the same tasks wherever that is asked: the ids of a sink are made of a task's number."""
        options = self.options
        most, least = options.max_records_per_partition, options.min_partitions
        parts = split_ranges(ranges, max_records=most, min_partitions=least)
        return pack_small_ranges(parts, SMALL_TASK if most is None and least is None else 0)

    def clamp_to_bounds(self, ranges: list[Range], bounds: Bounds) -> list[Range]:
        """The ranges as far as their messages are there; `DataLossError`, or a warning where that is tolerated."""
        good = []
        for one in ranges:
            left, losses = clamp(one, *bounds[one.queue]) if one.queue in bounds else (one, [])
            for loss in losses:
                self.report_loss(loss)
            good.append(left)
        return good

    def report_loss(self, loss: Loss) -> None:
        if self.options.fail_on_data_loss:
            raise DataLossError(f"{loss}; with failOnDataLoss=false they are left out")
        _log.warning("left out, as failOnDataLoss is false: %s", loss)

    def _committed(self, bounds: Bounds) -> Offsets:
        stored = self.wire.committed(self.options.group, bounds, self.options.plan_timeout_ms)
        return {queue: offset for queue, offset in stored.items() if offset is not None}

    def _at_time(self, place: StartOrEnd, bounds: Bounds, *, is_start: bool) -> Offsets:
        moments = dict.fromkeys(bounds, place.timestamp_ms)
        if place.kind == "timestamps":
            moments = _moments(place, bounds)
        found = self.offsets_at(moments, bounds)
        if is_start and self.options.is_start_strict:
            empty = [queue for queue, offset in found.items() if offset >= bounds[queue][1]]
            if empty:
                raise OptionError(
                    f"option {place.option}: {empty[0]} has no message at or after {moments[empty[0]]}; "
                    "startingOffsetsByTimestampStrategy=latest begins at its end"
                )
        return found

    def offsets_at(self, moments: Mapping[Queue, int], bounds: Bounds) -> Offsets:
        """The first message stored at or after a time (epoch ms), else the end, exactly: 4.9 brokers answer with the
        nearest message, earlier or later, and with any of several of one time, so what stands around is looked at."""
        found = self.wire.offsets_at(dict(moments), self.options.plan_timeout_ms)
        return {
            queue: self._exact(queue, offset, moments[queue], bounds[queue])
            for queue, offset in found.items()
        }

    def _exact(self, queue: Queue, offset: int, moment_ms: int, bounds: tuple[int, int]) -> int:
        low, high = bounds
        options = msgspec.structs.replace(
            self.options, expression="*", filter_type="TAG", fail_on_data_loss=False, pulls_in_flight=1
        )
        last = min(offset + 1, high)
        while last > low:
            first = max(low, last - options.pull_batch_size)
            times: list[int] = []
            for records in RangeReader(self.wire, Range(queue, first, last), options).batches():
                times += records.store_times_ms.tolist()
            earlier = sum(time < moment_ms for time in times)
            if earlier or not times:
                return last - len(times) + earlier
            last = first
        return low


def _moments(place: StartOrEnd, bounds: Bounds) -> dict[Queue, int]:
    """Times by topic, `{"T": 1700000000000}`, or by queue, as offsets are written."""
    try:
        by_topic = json.loads(place.text)
        is_by_queue = any(isinstance(one, dict) for one in by_topic.values())
    except (ValueError, AttributeError) as error:
        raise OptionError(
            f"option {place.option}: JSON such as {TIMES_EXAMPLE}, not {place.text:.100}"
        ) from error
    if is_by_queue:
        moments = read_offsets(place.option, place.text, bounds, example=TIMES_EXAMPLE)
    else:
        differing = by_topic.keys() ^ {queue.topic for queue in bounds}
        if differing:
            raise OptionError(
                f"option {place.option}: must name exactly the topics there are, and differs in "
                f"{', '.join(sorted(differing))}"
            )
        moments = {queue: by_topic[queue.topic] for queue in bounds}
    for queue, moment in moments.items():
        if type(moment) is not int or moment < 0:
            raise OptionError(
                f"option {place.option}: a time is epoch ms, 0 or more, not {moment!r} for {queue}"
            )
    return moments


def _with_bounds(offsets: Offsets, lows: Offsets, highs: Offsets, place: StartOrEnd) -> Offsets:
    """-2 and -1 replaced by the bounds they mean."""
    for queue, offset in offsets.items():
        if offset < EARLIEST_OFFSET:
            raise OptionError(
                f"option {place.option}: an offset, -2 (earliest) or -1 (latest), not {offset} for {queue}"
            )
    named = {EARLIEST_OFFSET: lows, LATEST_OFFSET: highs}
    return {queue: named[offset][queue] if offset < 0 else offset for queue, offset in offsets.items()}
