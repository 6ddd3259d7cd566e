"""Offsets and ranges: pure planning, no network, no Spark.

An offset is always the next message to read, never minus one; a range [lo, hi) excludes hi. The JSON of a stream's
position, which Spark keeps in its offset log and compares as text:

    {"from": {...}, "init": true, "topics": {"T": {"broker-a": {"0": 23, "1": 0}}}, "v": 1}

`init` marks the position a query was first started at. Spark forgets that position when the first batch fails and the
query is started again: it asks for a new one, which "latest" answers differently, and what lay between would be lost.
So the end of the first batch says where that batch began, in `from`; so it does for queues found later on, which no
earlier position names.
"""

import json
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
            made["from"] = offsets_to_json(self.begun_at)
        if self.is_initial:
            made["init"] = True
        made["topics"] = offsets_to_json(self.offsets)
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
                offsets_from_json(value["topics"]),
                bool(value.get("init", False)),
                offsets_from_json(value.get("from", {})),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(f"checkpoint that cannot be read: {json.dumps(value)[:200]}") from error

    def topics(self) -> set[str]:
        return {queue.topic for queue in self.offsets}


def offsets_to_json(offsets: Mapping[Queue, int]) -> dict[str, dict[str, dict[str, int]]]:
    """`{"T": {"broker-a": {"0": 23}}}`, sorted."""
    made: dict[str, dict[str, dict[str, int]]] = {}
    for queue in sorted(offsets):
        brokers = made.setdefault(queue.topic, {})
        brokers.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return made


def offsets_from_json(value: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Offsets:
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
            offsets |= offsets_from_json({topic: inner})
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
