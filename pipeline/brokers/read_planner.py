"""From options to queues, positions and ranges: plans a read by asking the brokers. No Spark.

The batch reader and the stream reader use it. The arithmetic is in `planning/ranges.py`, the requests in
`broker_client.py`.
"""

import json
import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from ..errors import DataLossError, OptionError
from ..planning.positions import Offsets, Queue, read_offsets
from ..planning.ranges import (
    Loss,
    Range,
    beyond_end,
    clamp,
    pack_small_ranges,
    ranges_between,
    split_ranges,
)
from ..planning.topic_options import (
    COMMITTED,
    EARLIEST,
    LATEST,
    SourceOptions,
    StartOrEnd,
    matching_topics,
)
from .broker_client import BrokerClient
from .range_reader import RangeReader

_log = logging.getLogger("pocketmq.pipeline")

SMALL_TASK: Final = 1000
"""Reading so many messages takes less time than Spark needs to start a task, which is some 20 ms."""
EARLIEST_OFFSET: Final = -2
LATEST_OFFSET: Final = -1
TIMES_EXAMPLE: Final = '{"T":1700000000000} or {"T":{"broker-a":{"0":1700000000000}}}'

Bounds = Mapping[Queue, tuple[int, int]]


class Planner:
    """Plans the reads of one set of options."""

    def __init__(self, client: BrokerClient, options: SourceOptions) -> None:
        self.client = client
        self.options = options
        self._checked_brokers: set[str] = set()

    def queues(self) -> list[Queue]:
        """The queues to read, by the routes of this moment.

        `OptionError` for a topic or queue that does not exist, and for an expression that a broker cannot use.
        """
        queues = self._selected_queues()
        if self.options.filter_type != "TAG":
            # A broker that cannot read the expression of a pull ignores it and sends every message.
            unchecked = {
                queue.broker_name: queue for queue in queues if queue.broker_name not in self._checked_brokers
            }
            self.client.check_expression(self.options, unchecked.values())
            self._checked_brokers |= unchecked.keys()
        return queues

    def _selected_queues(self) -> list[Queue]:
        options, timeout_ms = self.options, self.options.plan_timeout_ms
        topics = sorted({queue.topic for queue in options.assigned}) or list(options.topics)
        if options.pattern is not None:
            topics = matching_topics(options.pattern, self.client.topics(timeout_ms))
        existing = [queue for topic in topics for queue in self.client.queues(topic, timeout_ms)]
        if not options.assigned:
            return existing
        missing = sorted(set(options.assigned) - set(existing))
        if missing:
            raise OptionError(f"option assign: {missing[0]} does not exist")
        return list(options.assigned)

    def bounds(self, queues: list[Queue]) -> Bounds:
        """[min, max) of each queue."""
        return self.client.bounds(queues, self.options.plan_timeout_ms)

    def start(self, bounds: Bounds) -> Offsets:
        """Where reading begins. An offset after a queue's end is kept: the caller reports it."""
        chosen = self.options.start
        lows = {queue: low for queue, (low, _) in bounds.items()}
        highs = {queue: high for queue, (_, high) in bounds.items()}
        if chosen.kind == EARLIEST:
            return lows
        if chosen.kind == LATEST:
            return highs
        if chosen.kind == COMMITTED:
            return {**lows, **self._committed(bounds)}
        if chosen.kind == "offsets":
            offsets = read_offsets(chosen.option, chosen.text, bounds)
            return _with_bounds(offsets, lows, highs, chosen)
        return self._at_time(chosen, bounds, is_start=True)

    def end(self, bounds: Bounds, start: Offsets) -> Offsets:
        """Where a batch ends."""
        chosen = self.options.end
        highs = {queue: high for queue, (_, high) in bounds.items()}
        if chosen.kind == LATEST:
            return highs
        if chosen.kind == COMMITTED:
            return {**start, **self._committed(bounds)}
        if chosen.kind == "offsets":
            offsets = read_offsets(chosen.option, chosen.text, bounds)
            earliest = [queue for queue, offset in offsets.items() if offset == EARLIEST_OFFSET]
            if earliest:
                raise OptionError(
                    f"option {chosen.option}: a read cannot end at -2 (earliest), for {earliest[0]}"
                )
            return _with_bounds(offsets, highs, highs, chosen)
        return self._at_time(chosen, bounds, is_start=False)

    def batch(self) -> list[Range]:
        """The ranges of a batch read, not yet split."""
        bounds = self.bounds(self.queues())
        start = self.start(bounds)
        for queue, offset in start.items():
            high = bounds[queue][1]
            if offset > high:  # no range begins there, so `clamp_to_bounds` would not report it
                self.report_loss(Loss(queue, high, offset, beyond_end(high)))
        return self.clamp_to_bounds(ranges_between(start, self.end(bounds, start)), bounds)

    def split(self, ranges: list[Range]) -> list[tuple[Range, ...]]:
        """The ranges of each task: one range, or several small ones unless an option sets the number of tasks.

        The same ranges give the same tasks on every call: the message ids of a sink depend on a task's number.
        """
        most, least = self.options.max_records_per_partition, self.options.min_partitions
        parts = split_ranges(ranges, max_records=most, min_partitions=least)
        return pack_small_ranges(parts, SMALL_TASK if most is None and least is None else 0)

    def clamp_to_bounds(self, ranges: list[Range], bounds: Bounds) -> list[Range]:
        """The parts of the ranges whose messages exist. `DataLossError` for the rest, or a warning if
        `failOnDataLoss` is false."""
        clamped = []
        for part in ranges:
            left, losses = clamp(part, *bounds[part.queue]) if part.queue in bounds else (part, [])
            for loss in losses:
                self.report_loss(loss)
            clamped.append(left)
        return clamped

    def report_loss(self, loss: Loss) -> None:
        if self.options.fail_on_data_loss:
            raise DataLossError(f"{loss}; failOnDataLoss=false skips them")
        _log.warning("skipped, because failOnDataLoss is false: %s", loss)

    def _committed(self, bounds: Bounds) -> Offsets:
        stored = self.client.committed(self.options.group, bounds, self.options.plan_timeout_ms)
        return {queue: offset for queue, offset in stored.items() if offset is not None}

    def _at_time(self, chosen: StartOrEnd, bounds: Bounds, *, is_start: bool) -> Offsets:
        times = dict.fromkeys(bounds, chosen.timestamp_ms)
        if chosen.kind == "timestamps":
            times = _times(chosen, bounds)
        found = self.offsets_at(times, bounds)
        if is_start and self.options.is_start_strict:
            empty = [queue for queue, offset in found.items() if offset >= bounds[queue][1]]
            if empty:
                raise OptionError(
                    f"option {chosen.option}: {empty[0]} has no message at or after {times[empty[0]]}; "
                    "startingOffsetsByTimestampStrategy=latest begins at its end"
                )
        return found

    def offsets_at(self, times: Mapping[Queue, int], bounds: Bounds) -> Offsets:
        """The first message stored at or after a time (epoch ms), else the end.

        4.9 brokers answer with the nearest message, earlier or later, and with any of several of the same time. So the
        messages around the answer are read.
        """
        found = self.client.offsets_at(dict(times), self.options.plan_timeout_ms)
        return {
            queue: self._exact_offset(queue, offset, times[queue], bounds[queue])
            for queue, offset in found.items()
        }

    def _exact_offset(self, queue: Queue, offset: int, time_ms: int, bounds: tuple[int, int]) -> int:
        low, high = bounds
        options = msgspec.structs.replace(
            self.options, expression="*", filter_type="TAG", fail_on_data_loss=False, pulls_in_flight=1
        )
        last = min(offset + 1, high)
        while last > low:
            first = max(low, last - options.pull_batch_size)
            store_times: list[int] = []
            for records in RangeReader(self.client, Range(queue, first, last), options).batches():
                store_times += records.store_times_ms.tolist()
            earlier = sum(store_time < time_ms for store_time in store_times)
            if earlier or not store_times:
                return last - len(store_times) + earlier
            last = first
        return low


def _times(chosen: StartOrEnd, bounds: Bounds) -> dict[Queue, int]:
    """Times by topic, `{"T": 1700000000000}`, or by queue, in the form of offsets."""
    try:
        by_topic = json.loads(chosen.text)
        is_by_queue = any(isinstance(value, dict) for value in by_topic.values())
    except (ValueError, AttributeError) as error:
        raise OptionError(
            f"option {chosen.option} must be JSON such as {TIMES_EXAMPLE}, got {chosen.text:.100}"
        ) from error
    if is_by_queue:
        times = read_offsets(chosen.option, chosen.text, bounds, example=TIMES_EXAMPLE)
    else:
        different = by_topic.keys() ^ {queue.topic for queue in bounds}
        if different:
            raise OptionError(
                f"option {chosen.option} must name exactly the topics that are read; "
                f"wrong or missing: {', '.join(sorted(different))}"
            )
        times = {queue: by_topic[queue.topic] for queue in bounds}
    for queue, time_ms in times.items():
        if type(time_ms) is not int or time_ms < 0:
            raise OptionError(
                f"option {chosen.option}: a time must be epoch ms, 0 or more, got {time_ms!r} for {queue}"
            )
    return times


def _with_bounds(offsets: Offsets, lows: Offsets, highs: Offsets, chosen: StartOrEnd) -> Offsets:
    """-2 and -1 replaced by the bounds they mean."""
    for queue, offset in offsets.items():
        if offset < EARLIEST_OFFSET:
            raise OptionError(
                f"option {chosen.option} must have offsets, -2 (earliest) or -1 (latest), got {offset} for {queue}"
            )
    meaning = {EARLIEST_OFFSET: lows, LATEST_OFFSET: highs}
    return {queue: meaning[offset][queue] if offset < 0 else offset for queue, offset in offsets.items()}
