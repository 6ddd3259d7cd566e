"""Ranges of messages: how the work of a read is cut into tasks and limited to a batch. Pure; no network, no Spark.

A range [lo, hi) excludes hi.
"""

import itertools
import math
from collections.abc import Iterable, Mapping

import msgspec

from .positions import Offsets, Queue


class Range(msgspec.Struct, frozen=True, order=True):
    """Messages [lo, hi) of a queue."""

    queue: Queue
    lo: int
    hi: int

    @property
    def size(self) -> int:
        return self.hi - self.lo


def ranges_between(start: Mapping[Queue, int], end: Mapping[Queue, int]) -> list[Range]:
    """What lies between two positions, without the empty ones, sorted. A queue that only `end` has is left out."""
    return [
        Range(queue, start[queue], end[queue])
        for queue in sorted(end)
        if queue in start and end[queue] > start[queue]
    ]


def split_ranges(
    ranges: Iterable[Range], *, max_records: int | None = None, min_partitions: int | None = None
) -> list[Range]:
    """Ranges cut into tasks: none empty, contiguous, in order. First to at most `max_records` each; if there are then
    fewer than `min_partitions`, each in proportion to its size."""
    parts = [one for one in ranges if one.size > 0]
    if max_records is not None:
        parts = [piece for one in parts for piece in _cut(one, math.ceil(one.size / max_records))]
    if min_partitions is None or not parts or len(parts) >= min_partitions:
        return parts
    total = sum(one.size for one in parts)
    return [piece for one in parts for piece in _cut(one, round(one.size / total * min_partitions))]


def pack_small_ranges(ranges: Iterable[Range], rows: int) -> list[tuple[Range, ...]]:
    """Ranges put together to tasks, in order, of at most `rows` messages; one that is larger has a task of its own."""
    tasks: list[tuple[Range, ...]] = []
    room = -1
    for one in ranges:
        if one.size <= room:
            tasks[-1] += (one,)
            room -= one.size
        else:
            tasks.append((one,))
            room = rows - one.size
    return tasks


def _cut(one: Range, count: int) -> list[Range]:
    """`one` in `count` pieces whose sizes differ by at most one; fewer where there are fewer messages."""
    count = max(1, min(count, one.size))
    edges = [one.lo + one.size * index // count for index in range(count + 1)]
    return [Range(one.queue, lo, hi) for lo, hi in itertools.pairwise(edges)]


def limit_batch(start: Mapping[Queue, int], end: Mapping[Queue, int], max_messages: int) -> Offsets:
    """The end of a batch of about `max_messages`: shared in proportion to what waits in each queue, with at least one
    message of each that has any."""
    backlog = {queue: max(0, end[queue] - start.get(queue, end[queue])) for queue in end}
    total = sum(backlog.values())
    if total <= max_messages:
        return dict(end)
    return {
        queue: end[queue] if not waits else start[queue] + min(waits, max(1, waits * max_messages // total))
        for queue, waits in backlog.items()
    }


class Loss(msgspec.Struct, frozen=True):
    """Messages [lo, hi) of a queue that were asked for and are gone, or never were there."""

    queue: Queue
    lo: int
    hi: int
    reason: str

    def __str__(self) -> str:
        return f"{self.queue}: {self.hi - self.lo} messages, offsets [{self.lo}, {self.hi}), {self.reason}"


def clamp(one: Range, minimum: int, maximum: int) -> tuple[Range, list[Loss]]:
    """What is left of a range in a queue that holds [minimum, maximum), and what is lost."""
    losses = []
    lo, hi = one.lo, one.hi
    if lo < minimum:
        losses.append(Loss(one.queue, lo, min(hi, minimum), f"deleted: the queue begins at {minimum}"))
        lo = min(hi, minimum)
    if hi > maximum:
        losses.append(Loss(one.queue, max(lo, maximum), hi, f"not there: the queue ends at {maximum}"))
        hi = max(lo, maximum)
    return Range(one.queue, lo, hi), losses
