"""From options to queues, positions and ranges: plans a read by asking the brokers. No Spark.

The batch reader and the stream reader use it. The arithmetic is in `planning/ranges.py`, the requests in
`broker_client.py`.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from ...errors import DataLossError, OptionError, SourceUnreachable, TopicMissing
from ..planning.positions import Offsets, Queue, read_offsets
from ..planning.ranges import (
    Bounds,
    Loss,
    QueueBounds,
    Range,
    beyond_end,
    clamp,
    pack_small_ranges,
    ranges_between,
    split_ranges,
)
from ..planning.topic_options import COMMITTED, EARLIEST, LATEST, ReadBound, SourceOptions, matching_topics
from .broker_client import BrokerClient
from .range_reader import read_ranges_whole

_log = logging.getLogger("pocketmq.pipeline")

SMALL_TASK: Final = 1000
"""Reading so many messages takes less time than Spark needs to start a task, which is some 20 ms."""
CLOCKS_APART_MS: Final = 60_000
"""How far the clocks of a driver and a broker may be apart."""
EARLIEST_OFFSET: Final = -2
LATEST_OFFSET: Final = -1
TIMES_EXAMPLE: Final = '{"T":1700000000000} or {"T":{"broker-a":{"0":1700000000000}}}'


class Planner:
    """Plans the reads of one set of options."""

    def __init__(
        self, client: BrokerClient, options: SourceOptions, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`clock` gives seconds; it measures how long queues have been without a route."""
        self.client = client
        self.options = options
        self._clock = clock
        self._checked_brokers: set[str] = set()
        self._without_route: dict[Queue, float] = {}

    def queues(self, known: Iterable[Queue] = (), *, waits: bool = False) -> list[Queue]:
        """The queues to read, by the routes of this moment.

        `known` are queues that were read before: a broker that restarts takes their routes along. They are left out
        for `retryTimeoutMs`, then `SourceUnreachable` is raised. If `waits` is true, this waits for their routes.
        `TopicMissing` for another topic or queue that does not exist, `OptionError` for an expression that a broker
        cannot use.
        """
        queues = self._selected_queues(frozenset(known), waits)
        if self.options.filter_type != "TAG":
            # A broker that cannot read the expression of a pull ignores it and sends every message.
            unchecked = {
                queue.broker_name: queue for queue in queues if queue.broker_name not in self._checked_brokers
            }
            self.client.check_expression(self.options, unchecked.values())
            self._checked_brokers |= unchecked.keys()
        return queues

    def _selected_queues(self, known: frozenset[Queue], waits: bool) -> list[Queue]:
        options, timeout_ms = self.options, self.options.plan_timeout_ms
        topics = sorted({queue.topic for queue in options.assigned}) or list(options.topics)
        if options.pattern is not None:
            topics = matching_topics(options.pattern, self.client.topics(timeout_ms))
        known_topics = {queue.topic for queue in known}
        found = self.client.queues_of(topics, timeout_ms, known=known_topics, waits=waits)
        existing = [queue for topic in topics for queue in found[topic] or ()]
        without_route = [queue for queue in sorted(known) if found.get(queue.topic, ()) is None]
        if options.assigned:
            assigned = [_of_one_broker(queue, [*existing, *known]) for queue in options.assigned]
            missing = set(assigned) - set(existing)
            without_route = sorted(missing & known)
            if missing - known:
                raise TopicMissing("option assign", f": {min(missing - known)} does not exist")
            existing = [queue for queue in assigned if queue not in missing]
        self._wait_for_routes(without_route)
        return existing

    def _wait_for_routes(self, without_route: list[Queue]) -> None:
        """Note which queues have no route. `SourceUnreachable` if one has had none for too long."""
        now = self._clock()
        for queue in without_route:
            if queue not in self._without_route:
                _log.warning("no broker has %s at the moment; it stays where it is", queue)
        self._without_route = {queue: self._without_route.get(queue, now) for queue in without_route}
        for queue, since in self._without_route.items():
            if (now - since) * 1000 > self.options.retry_timeout_ms:
                raise SourceUnreachable(
                    f"{queue} has had no route for {now - since:.0f} s; retryTimeoutMs is "
                    f"{self.options.retry_timeout_ms}"
                )

    def bounds(self, queues: list[Queue]) -> Bounds:
        """What each queue holds."""
        return self.client.bounds(queues, self.options.plan_timeout_ms)

    def start(self, bounds: Bounds) -> Offsets:
        """Where reading begins. An offset after a queue's end is kept: the caller reports it."""
        chosen = self.options.start
        lows = {queue: held.low for queue, held in bounds.items()}
        highs = {queue: held.high for queue, held in bounds.items()}
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
        highs = {queue: held.high for queue, held in bounds.items()}
        if chosen.kind == LATEST:
            return highs
        if chosen.kind == COMMITTED:
            return {**start, **self._committed(bounds)}
        if chosen.kind == "offsets":
            offsets = read_offsets(chosen.option, chosen.text, bounds)
            earliest = [queue for queue, offset in offsets.items() if offset == EARLIEST_OFFSET]
            if earliest:
                raise OptionError(
                    f"option {chosen.option}", f": a read cannot end at -2 (earliest), for {earliest[0]}"
                )
            return _with_bounds(offsets, highs, highs, chosen)
        return self._at_time(chosen, bounds, is_start=False)

    def batch(self) -> list[Range]:
        """The ranges of a batch read, not yet split."""
        bounds = self.bounds(self.queues())
        start = self.start(bounds)
        for queue, offset in start.items():
            # No range begins there, so `clamp_to_bounds` would not report it.
            self.check_position(queue, offset, bounds[queue])
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
        `failOnDataLoss` is false.

        A range stays whole if only a slave was asked: the tasks wait for what it does not hold.
        """
        clamped = []
        for part in ranges:
            held = bounds.get(part.queue)
            if held is None or held.is_of_slave:
                clamped.append(part)
                continue
            left, losses = clamp(part, held.low, held.high)
            for loss in losses:
                self.report_loss(loss)
            clamped.append(left)
        return clamped

    def check_position(self, queue: Queue, offset: int, held: QueueBounds) -> bool:
        """Whether a position lies within its queue. If it lies beyond the end, that is a loss, which is reported; but
        not if only a slave was asked, which may lag."""
        if offset <= held.high or held.is_of_slave:
            return True
        self.report_loss(Loss(queue, held.high, offset, beyond_end(held.high)))
        return False

    def is_new_since(self, queue: Queue, held: QueueBounds, time_ms: int) -> bool:
        """Whether the first message of a queue was stored after a time (epoch ms; 0 is never).

        Asked of a queue that ends before a position determined at that time: all messages before the position were
        stored earlier, unless the topic was deleted and created anew. The time is of another clock than the broker's:
        where the two may disagree the queue counts as new, so its messages are read again rather than not at all.
        """
        if not time_ms or held.high <= held.low:
            return False
        first = self._store_times([Range(queue, held.low, held.low + 1)])[0]
        return bool(first) and first[0] > time_ms - CLOCKS_APART_MS

    def report_loss(self, loss: Loss) -> None:
        if self.options.fail_on_data_loss:
            raise DataLossError(f"{loss}; failOnDataLoss=false skips them")
        _log.warning("skipped, because failOnDataLoss is false: %s", loss)

    def _committed(self, bounds: Bounds) -> Offsets:
        stored = self.client.committed(self.options.group, bounds, self.options.plan_timeout_ms)
        found = {queue: offset for queue, offset in stored.items() if offset is not None}
        if bounds and not found:
            topics = ", ".join(sorted({queue.topic for queue in bounds}))
            _log.warning(
                "group %s has no offsets of %s: its queues are taken from their first message",
                self.options.group, topics,
            )  # fmt: skip
        return found

    def _at_time(self, chosen: ReadBound, bounds: Bounds, *, is_start: bool) -> Offsets:
        times = dict.fromkeys(bounds, chosen.timestamp_ms)
        if chosen.kind == "timestamps":
            times = _times(chosen, bounds)
        found = self.offsets_at(times, bounds)
        if is_start and self.options.is_start_strict:
            empty = [queue for queue, offset in found.items() if offset >= bounds[queue].high]
            if empty:
                raise OptionError(
                    f"option {chosen.option}",
                    f": {empty[0]} has no message at or after {times[empty[0]]}; "
                    "startingOffsetsByTimestampStrategy=latest begins at its end",
                )
        return found

    def offsets_at(self, times: Mapping[Queue, int], bounds: Bounds) -> Offsets:
        """The first message stored at or after a time (epoch ms), else the end.

        4.9 brokers answer with the nearest message, earlier or later, and with any of several of the same time. So the
        messages around the answer are read.
        """
        found = self.client.offsets_at(dict(times), self.options.plan_timeout_ms)
        exact: Offsets = {}
        last = {
            queue: max(min(offset + 1, bounds[queue].high), bounds[queue].low)
            for queue, offset in found.items()
        }
        while last:
            # The messages before `last` of all queues that are not settled are read at once.
            batch = {
                queue: Range(queue, max(bounds[queue].low, end - self.options.pull_batch_size), end)
                for queue, end in last.items()
            }
            store_times = self._store_times(list(batch.values()))
            following: Offsets = {}
            for (queue, part), of_part in zip(batch.items(), store_times, strict=True):
                earlier = sum(store_time < times[queue] for store_time in of_part)
                if earlier or not of_part or part.lo == bounds[queue].low:
                    exact[queue] = part.hi - len(of_part) + earlier
                else:
                    following[queue] = part.lo
            last = following
        return exact

    def _store_times(self, ranges: list[Range]) -> list[list[int]]:
        options = msgspec.structs.replace(
            self.options, expression="*", filter_type="TAG", fail_on_data_loss=False, pulls_in_flight=1
        )
        return [
            [time_ms for records in batches for time_ms in records.store_times_ms.tolist()]
            for batches in read_ranges_whole(self.client, ranges, options)
        ]

    def message_bytes(self, ranges: list[Range]) -> int:
        """The mean stored size of the first messages of ranges; 1 without messages."""
        size = rows = 0
        for batches in read_ranges_whole(self.client, ranges, self.options):
            size += sum(int(records.sizes.sum()) for records in batches)
            rows += sum(len(records) for records in batches)
        return max(1, size // max(rows, 1))


def _times(chosen: ReadBound, bounds: Bounds) -> dict[Queue, int]:
    """Times by topic, `{"T": 1700000000000}`, or by queue, in the form of offsets."""
    try:
        by_topic = json.loads(chosen.text)
        is_by_queue = any(isinstance(value, dict) for value in by_topic.values())
    except (ValueError, AttributeError) as error:
        raise OptionError(
            f"option {chosen.option}", f"must be JSON such as {TIMES_EXAMPLE}, got {chosen.text:.100}"
        ) from error
    if is_by_queue:
        times = read_offsets(chosen.option, chosen.text, bounds, example=TIMES_EXAMPLE)
    else:
        different = by_topic.keys() ^ {queue.topic for queue in bounds}
        if different:
            raise OptionError(
                f"option {chosen.option}",
                f"must name exactly the topics that are read; "
                f"wrong or missing: {', '.join(sorted(different))}",
            )
        times = {queue: by_topic[queue.topic] for queue in bounds}
    for queue, time_ms in times.items():
        if type(time_ms) is not int or time_ms < 0:
            raise OptionError(
                f"option {chosen.option}",
                f": a time must be epoch ms, 0 or more, got {time_ms!r} for {queue}",
            )
    return times


def _with_bounds(offsets: Offsets, lows: Offsets, highs: Offsets, chosen: ReadBound) -> Offsets:
    """-2 and -1 replaced by the bounds they mean."""
    for queue, offset in offsets.items():
        if offset < EARLIEST_OFFSET:
            raise OptionError(
                f"option {chosen.option}",
                f"must have offsets, -2 (earliest) or -1 (latest), got {offset} for {queue}",
            )
    meaning = {EARLIEST_OFFSET: lows, LATEST_OFFSET: highs}
    return {queue: meaning[offset][queue] if offset < 0 else offset for queue, offset in offsets.items()}


def _of_one_broker(queue: Queue, existing: list[Queue]) -> Queue:
    """An assigned queue without a broker's name, with that of the one broker that has the topic."""
    if queue.broker_name:
        return queue
    names = sorted({each.broker_name for each in existing if each.topic == queue.topic})
    if len(names) > 1:
        raise OptionError("option assign", f": {queue.topic} is on several brokers, name one of {names}")
    return Queue(queue.topic, names[0] if names else "", queue.queue_id)
