"""Light message queues: one record that is in several queues, named by its property INNER_MULTI_DISPATCH.

The property lists queue names separated by commas; those that start with `%LMQ%` get a unit each in queue 0 of the
topic of that name. Which number each unit has is written into the record itself, as INNER_MULTI_QUEUE_OFFSET in the
same order, so the properties are final only when the record is appended. Needs both enableLmq and
enableMultiDispatch. Official classes: LmqDispatch, MultiDispatchUtils.
"""

from collections.abc import Collection, Iterator, Mapping

from pocketmq.core.properties import read_properties
from pocketmq.protocol.message.properties import (
    INNER_MULTI_DISPATCH,
    INNER_MULTI_QUEUE_OFFSET,
    WAIT,
    encode_properties,
)
from pocketmq.protocol.message.topics import DLQ_PREFIX, LMQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC

from .queue_table import QueueTable, can_name_queues, is_possible_place

_NOT_DISPATCHED = (RETRY_PREFIX, DLQ_PREFIX, "rmq_sys_")
_LONGEST_NUMBER = 19
_NAME = INNER_MULTI_DISPATCH.encode()


def wants_light_queues(topic: str, properties: Mapping[str, str]) -> bool:
    """False for internal, retry and dead-letter topics: there the property of the original message has no effect."""
    return (
        bool(properties.get(INNER_MULTI_DISPATCH))
        and not topic.startswith(_NOT_DISPATCHED)
        and topic != SCHEDULE_TOPIC
    )


def number_light_queues(
    topic: str, text: bytes, queues: QueueTable, ahead: Mapping[str, int]
) -> tuple[bytes, list[str]]:
    """The property text of a message with the numbers of its entries in light queues, and the names of these.

    `ahead`: entries of each light queue that messages of the same batch take before. WAIT is dropped, as in the
    official broker. Any other text is returned as it is.
    """
    properties = read_properties(text) if _NAME in text else {}
    if not wants_light_queues(topic, properties):
        return text, []
    names = properties[INNER_MULTI_DISPATCH].split(",")
    numbers = []
    for name in names:
        queue = queues.get(name, 0)
        number = (queue.next_offset if queue is not None else 0) + ahead.get(name, 0)
        numbers.append(str(number) if _is_light(name) else "")
    properties[INNER_MULTI_QUEUE_OFFSET] = ",".join(numbers)
    properties.pop(WAIT, None)
    return encode_properties(properties), [name for name in names if _is_light(name)]


def light_queues_of(topic: str, properties: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """(light queue, number of the unit) of a stored record."""
    numbers = properties.get(INNER_MULTI_QUEUE_OFFSET)
    if not numbers or not wants_light_queues(topic, properties):
        return
    for name, number in zip(properties[INNER_MULTI_DISPATCH].split(","), numbers.split(","), strict=False):
        if (
            name.startswith(LMQ_PREFIX)
            and number.isdecimal()
            and len(number) <= _LONGEST_NUMBER
            and is_possible_place(name, 0, int(number))
        ):
            yield name, int(number)


def _is_light(name: str) -> bool:
    """A client may send any name; one that cannot be a directory's name gets no queue."""
    return name.startswith(LMQ_PREFIX) and can_name_queues(name)


def have_room_for(light_queues: Collection[str], topics: Collection[str], most: int) -> bool:
    """Whether these light queues fit beside those that exist, `most` in all (maxLmqConsumeQueueNum)."""
    added = sum(name not in topics for name in light_queues)
    return not added or sum(topic.startswith(LMQ_PREFIX) for topic in topics) + added <= most
