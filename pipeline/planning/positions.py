"""Offsets and ranges: pure planning, no network, no Spark.

An offset is always the next message to read, never minus one; a range [lo, hi) excludes hi. The JSON of a stream's
position, which Spark keeps in its offset log and compares as text:

    {"from": {...}, "init": true, "topics": {"T": {"broker-a": {"0": 23, "1": 0}}}, "v": 1}

`init` marks the position a query was first started at. Spark forgets that position when the first batch fails and the
query is started again: it asks for a new one, which "latest" answers differently, and what lay between would be lost.
So the end of the first batch says where that batch began, in `from`; so it does for queues found later on, which no
earlier position names.
"""

import itertools
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ..errors import CheckpointError, OptionError

VERSION: Final = 1


class Queue(msgspec.Struct, frozen=True, order=True):
    """One queue of one broker."""

    topic: str
    broker_name: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.topic} {self.broker_name} queue {self.queue_id}"


class Range(msgspec.Struct, frozen=True, order=True):
    """Messages [lo, hi) of a queue."""

    queue: Queue
    lo: int
    hi: int

    @property
    def size(self) -> int:
        return self.hi - self.lo


Offsets = dict[Queue, int]


class StreamPosition(msgspec.Struct, frozen=True):
    """What Spark keeps between two batches. `begun_at` are the beginnings of the batch that ends here, of queues whose
    beginning stands in no position before it."""

    offsets: Offsets
    is_initial: bool = False
    begun_at: Offsets = msgspec.field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Keys in a stable order: equal positions give equal text."""
        made: dict[str, Any] = {}
        if self.begun_at:
            made["from"] = nested(self.begun_at)
        if self.is_initial:
            made["init"] = True
        made["topics"] = nested(self.offsets)
        made["v"] = VERSION
        return made

    @staticmethod
    def of_json(value: Mapping[str, Any]) -> "StreamPosition":
        """`CheckpointError` where it was not made by this source."""
        if value.get("v") != VERSION:
            raise CheckpointError(
                f"checkpoint of another source or a newer version: v is {value.get('v')!r}, this one reads {VERSION}"
            )
        try:
            return StreamPosition(
                flat(value["topics"]), bool(value.get("init", False)), flat(value.get("from", {}))
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(f"checkpoint that cannot be read: {json.dumps(value)[:200]}") from error

    def topics(self) -> set[str]:
        return {queue.topic for queue in self.offsets}


def nested(offsets: Mapping[Queue, int]) -> dict[str, dict[str, dict[str, int]]]:
    """`{"T": {"broker-a": {"0": 23}}}`, sorted."""
    made: dict[str, dict[str, dict[str, int]]] = {}
    for queue in sorted(offsets):
        brokers = made.setdefault(queue.topic, {})
        brokers.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return made


def flat(value: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Offsets:
    """The way back."""
    return {
        Queue(topic, broker_name, int(queue_id)): int(offset)
        for topic, brokers in value.items()
        for broker_name, queues in brokers.items()
        for queue_id, offset in queues.items()
    }


OFFSETS_EXAMPLE: Final = '{"T":{"broker-a":{"0":23,"1":-2}}}'


def read_offsets(
    option: str, text: str, queues: Iterable[Queue], *, example: str = OFFSETS_EXAMPLE
) -> Offsets:
    """The offsets a user wrote, `{"T": {"broker-a": {"0": 23}}}`, or `{"T": {"0": 23}}` where one broker serves T.

    They must name exactly the queues there are. `OptionError` naming the option and what is wrong, with `example` for
    what is no such JSON.
    """
    there = set(queues)
    brokers: dict[str, set[str]] = {}
    for queue in there:
        brokers.setdefault(queue.topic, set()).add(queue.broker_name)
    try:
        value = json.loads(text)
        offsets: Offsets = {}
        for topic, inner in value.items():
            if not any(isinstance(one, dict) for one in inner.values()):
                names = brokers.get(topic, set())
                if len(names) > 1:
                    raise OptionError(
                        f"option {option}: {topic} is on several brokers, name one of {sorted(names)}"
                    )
                inner = dict.fromkeys(names or {"?"}, inner)
            check_whole(number for queues in inner.values() for number in queues.values())
            offsets |= flat({topic: inner})
    except (ValueError, TypeError, AttributeError) as error:
        raise OptionError(f"option {option}: JSON such as {example}, not {text[:100]}") from error
    missing, unknown = there - offsets.keys(), offsets.keys() - there
    if missing or unknown:
        raise OptionError(
            f"option {option}: must name exactly the queues there are; "
            f"missing: {_listed(missing)}; not there: {_listed(unknown)}"
        )
    return offsets


def check_whole(numbers: Iterable[Any]) -> None:
    """`ValueError` for what is no whole number: rounding 1.7 would read from where nobody asked."""
    for number in numbers:
        if type(number) is not int:  # true and false are ints to isinstance
            raise ValueError(f"{number!r} is no whole number")


def _listed(queues: Iterable[Queue]) -> str:
    some = sorted(queues)
    return ", ".join(map(str, some[:5])) + (" ..." if len(some) > 5 else "") if some else "none"


# -- ranges


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


def packed(ranges: Iterable[Range], rows: int) -> list[tuple[Range, ...]]:
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


def limited(start: Mapping[Queue, int], end: Mapping[Queue, int], max_messages: int) -> Offsets:
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
