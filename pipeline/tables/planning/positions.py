"""Queues, offsets and the position of a stream, in memory and as JSON. Pure; no network, no Spark.

An offset is always the next message to read. The JSON of a stream's position, which Spark keeps in its offset log and
compares as text:

    {"at": 1700000000000, "from": {...}, "init": true, "topics": {"T": {"broker-a": {"0": 23, "1": 0}}}, "v": 1}

`init` marks the position at which a query first started. If the first batch fails and the query is started again, Spark
forgets that position and asks for a new one. With "latest" the new one is later, and the messages between would be
lost. So the end of the first batch records in `from` where that batch began. Queues found later are recorded there too,
because no earlier position names them.

`filtered` says that the broker filters. `at` is when the position was determined, epoch ms. If a queue later ends
before the position, the store time of its first message tells whether the topic was deleted and created anew.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ...errors import CheckpointError, OptionError

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
    """What Spark keeps between two batches. `start_offsets` are those of the batch that ends here, for queues that no
    earlier position names. `time_ms` is 0 if it is not known. `is_filtered`: the broker filters, so the batch
    may have fewer messages than offsets."""

    offsets: Offsets
    is_initial: bool = False
    start_offsets: Offsets = msgspec.field(default_factory=dict)
    time_ms: int = 0
    is_filtered: bool = False

    def to_json(self) -> dict[str, Any]:
        """Keys are in a stable order: equal positions give equal text."""
        result: dict[str, Any] = {}
        if self.time_ms:
            result["at"] = self.time_ms
        if self.is_filtered:
            result["filtered"] = True
        if self.start_offsets:
            result["from"] = offsets_to_json(self.start_offsets)
        if self.is_initial:
            result["init"] = True
        result["topics"] = offsets_to_json(self.offsets)
        result["v"] = VERSION
        return result

    @staticmethod
    def of_json(value: Mapping[str, Any]) -> "StreamPosition":
        """`CheckpointError` if another source or a newer version wrote it."""
        if value.get("v") != VERSION:
            raise CheckpointError(
                f"this checkpoint is of another source or a newer version: v must be {VERSION}, got {value.get('v')!r}"
            )
        try:
            offsets = offsets_from_json(value["topics"])
            start_offsets = offsets_from_json(value.get("from", {}))
            time_ms = int(value.get("at", 0))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CheckpointError(f"this checkpoint cannot be read: {json.dumps(value)[:200]}") from error
        return StreamPosition(
            offsets, bool(value.get("init", False)), start_offsets, time_ms, bool(value.get("filtered"))
        )


def offsets_to_json(offsets: Mapping[Queue, int]) -> dict[str, dict[str, dict[str, int]]]:
    """`{"T": {"broker-a": {"0": 23}}}`, sorted."""
    result: dict[str, dict[str, dict[str, int]]] = {}
    for queue in sorted(offsets):
        brokers = result.setdefault(queue.topic, {})
        brokers.setdefault(queue.broker_name, {})[str(queue.queue_id)] = offsets[queue]
    return result


def offsets_from_json(value: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Offsets:
    """The inverse of `offsets_to_json`."""
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
    """The offsets in a user's text, `{"T": {"broker-a": {"0": 23}}}`, or `{"T": {"0": 23}}` if one broker has T.

    They must name exactly the existing queues. `OptionError` names the option and what is wrong, with `example` for a
    text that is not such JSON.
    """
    existing = set(queues)
    brokers: dict[str, set[str]] = {}
    for queue in existing:
        brokers.setdefault(queue.topic, set()).add(queue.broker_name)
    try:
        value = json.loads(text)
        offsets: Offsets = {}
        for topic, inner in value.items():
            if not any(isinstance(by_queue, dict) for by_queue in inner.values()):
                names = brokers.get(topic, set())
                if len(names) > 1:
                    raise OptionError(
                        f"option {option}", f": {topic} is on several brokers, name one of {sorted(names)}"
                    )
                inner = dict.fromkeys(names or {"?"}, inner)
            check_whole(number for by_queue in inner.values() for number in by_queue.values())
            offsets |= offsets_from_json({topic: inner})
    except (ValueError, TypeError, AttributeError) as error:
        raise OptionError(f"option {option}", f"must be JSON such as {example}, got {text[:100]}") from error
    missing, unknown = existing - offsets.keys(), offsets.keys() - existing
    if missing or unknown:
        raise OptionError(
            f"option {option}",
            f"must name exactly the existing queues; "
            f"missing: {_listed(missing)}; unknown: {_listed(unknown)}",
        )
    return offsets


def check_whole(numbers: Iterable[Any]) -> None:
    """`ValueError` for anything but a whole number: 1.7 is not rounded to an offset that the user did not mean."""
    for number in numbers:
        if type(number) is not int:  # isinstance would accept true and false
            raise ValueError(f"{number!r} is not a whole number")


def _listed(queues: Iterable[Queue]) -> str:
    names = [str(queue) for queue in sorted(queues)]
    return ", ".join(names[:5]) + (" ..." if len(names) > 5 else "") if names else "none"
