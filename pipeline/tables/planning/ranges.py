"""Ranges of messages: how a read is split into tasks, limited to a batch, and clamped to what a queue holds. Pure; no
network, no Spark.

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


class QueueBounds(msgspec.Struct, frozen=True):
    """[low, high) of a queue, as a broker reports it.

    A slave may lag behind its master, so what a slave reports is only what it holds: messages outside may exist.
    """

    low: int
    high: int
    is_of_slave: bool = False


Bounds = Mapping[Queue, QueueBounds]


class Loss(Range, frozen=True):
    """Messages [lo, hi) of a queue that were requested and do not exist."""

    reason: str

    def __str__(self) -> str:
        return f"{self.queue}: {self.size} messages, offsets [{self.lo}, {self.hi}), {self.reason}"


def ranges_between(start: Mapping[Queue, int], end: Mapping[Queue, int]) -> list[Range]:
    """The ranges between two positions, sorted, without empty ones and without queues that only `end` has."""
    return [
        Range(queue, start[queue], end[queue])
        for queue in sorted(end)
        if queue in start and end[queue] > start[queue]
    ]


def split_ranges(
    ranges: Iterable[Range], *, max_records: int | None = None, min_partitions: int | None = None
) -> list[Range]:
    """Ranges split into tasks, in the same order, none of them empty.

    First each range is split into pieces of at most `max_records`. If fewer than `min_partitions` result, each piece is
    split again in proportion to its size.
    """
    parts = [part for part in ranges if part.size > 0]
    if max_records is not None:
        parts = [piece for part in parts for piece in _even_pieces(part, math.ceil(part.size / max_records))]
    if min_partitions is None or not parts or len(parts) >= min_partitions:
        return parts
    total = sum(part.size for part in parts)
    return [
        piece for part in parts for piece in _even_pieces(part, round(part.size / total * min_partitions))
    ]


def pack_small_ranges(ranges: Iterable[Range], rows: int) -> list[tuple[Range, ...]]:
    """Consecutive ranges packed into tasks of at most `rows` messages. A larger range has a task of its own."""
    tasks: list[tuple[Range, ...]] = []
    free_rows = -1
    for part in ranges:
        if part.size <= free_rows:
            tasks[-1] += (part,)
            free_rows -= part.size
        else:
            tasks.append((part,))
            free_rows = rows - part.size
    return tasks


def _even_pieces(part: Range, count: int) -> list[Range]:
    """`count` pieces whose sizes differ by at most one; fewer if the range has fewer messages."""
    count = max(1, min(count, part.size))
    edges = [part.lo + part.size * index // count for index in range(count + 1)]
    return [Range(part.queue, lo, hi) for lo, hi in itertools.pairwise(edges)]


def limit_batch(start: Mapping[Queue, int], end: Mapping[Queue, int], max_messages: int) -> Offsets:
    """The end of a batch of about `max_messages`, shared in proportion to each queue's backlog.

    A queue with a backlog gets at least one message.
    """
    backlog = {queue: max(0, end[queue] - start.get(queue, end[queue])) for queue in end}
    total = sum(backlog.values())
    if total <= max_messages:
        return dict(end)
    return {
        queue: start[queue] + min(size, max(1, size * max_messages // total)) if size else end[queue]
        for queue, size in backlog.items()
    }


def clamp(part: Range, minimum: int, maximum: int) -> tuple[Range, list[Loss]]:
    """The part of a range that a queue with offsets [minimum, maximum) holds, and the losses."""
    losses = []
    lo, hi = part.lo, part.hi
    if lo < minimum:
        losses.append(Loss(part.queue, lo, min(hi, minimum), f"deleted: the queue begins at {minimum}"))
        lo = min(hi, minimum)
    if hi > maximum:
        losses.append(Loss(part.queue, max(lo, maximum), hi, beyond_end(maximum)))
        hi = max(lo, maximum)
    return Range(part.queue, lo, hi), losses


def beyond_end(maximum: int) -> str:
    """The reason of a loss after the end of a queue."""
    return f"do not exist: the queue ends at {maximum}"
