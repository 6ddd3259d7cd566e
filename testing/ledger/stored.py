"""The messages that the brokers hold, as the ledger compares them with what was delivered."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from pocketmq.broker.broker import Broker
from pocketmq.broker.filters.sql_filter import ExpressionRefused, compile_expression
from pocketmq.protocol.bodies.client import SubscriptionData, is_tag_type, tag_subscription
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.offset_id import decode_message_id
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record, decode_record, measure_record
from pocketmq.store.lookup.consume_queue import ConsumeQueue

from .book import Subscription
from .facts import Place, Queue
from .reading import message_id_of

MAX_LONG: Final = (1 << 63) - 1
Wanted = Callable[[int, memoryview], bool]
"""Whether a group wants a message: its tags code, its record."""


class Stored(NamedTuple):
    """One message of a queue."""

    queue: Queue
    offset: int
    place: Place
    record: memoryview

    @property
    def message_id(self) -> str:
        record = decode_record(self.record)
        return message_id_of(record, decode_properties(record.properties))


def queues(brokers: Iterable[Broker], topic: str) -> Iterator[tuple[Broker, Queue, ConsumeQueue]]:
    for broker in brokers:
        for queue in broker.store.queues_of(topic):
            yield broker, Queue(broker.config.broker_name, topic, queue.queue_id), queue


def message_at(broker: Broker, name: Queue, offset: int) -> tuple[int, Stored] | None:
    """Tags code and message; None where the store has none, or the queue no more."""
    queue = broker.store.consume_queue(name.topic, name.queue_id)
    is_held = queue is not None and queue.min_offset <= offset < queue.max_offset
    found = entry_at(broker, queue, offset) if queue is not None and is_held else None
    return found and (found[1], Stored(name, offset, Place(name.broker, found[0]), found[2]))


def entry_at(broker: Broker, queue: ConsumeQueue, offset: int) -> tuple[int, int, memoryview] | None:
    """Log position, tags code and record of an entry; None where the store has none."""
    unit = queue.unit(offset)
    record = None if unit is None else broker.store.read_record(unit[0], unit[1])
    return None if unit is None or record is None else (unit[0], unit[2], record)


def records(brokers: Iterable[Broker]) -> Iterator[tuple[Queue, Place, Record, dict[str, str]]]:
    """Every message of every queue."""
    for broker in brokers:
        for topic in broker.store.topics_with_queues():
            for _, name, queue in queues((broker,), topic):
                for offset in range(queue.min_offset, queue.max_offset):
                    found = message_at(broker, name, offset)
                    if found is not None:
                        record = decode_record(found[1].record)
                        yield name, found[1].place, record, decode_properties(record.properties)


def records_with(
    brokers: Iterable[Broker], message_id: str
) -> Iterator[tuple[Queue, Place, Record, dict[str, str]] | None]:
    """Those of `records` that may have this id, by the index of each store; None after a topic without any.

    A store whose index is off, or has more entries of this hash than a query returns, gives all its messages.
    """
    for broker in brokers:
        store, most = broker.store, broker.config.store.max_msgs_num_batch
        named = _record_at(broker, message_id)
        views = [] if named is None else [named]
        is_known = broker.config.store.message_index_enable
        for topic in store.topics_with_queues() if is_known else ():
            yield None
            found = store.query(topic, message_id, most, 0, MAX_LONG).views
            views += found
            is_known = is_known and len(found) < most
        if not is_known:
            yield from records((broker,))
            continue
        places = set()
        for view in views:
            record = decode_record(view)
            name = Queue(broker.config.broker_name, record.topic, record.queue_id)
            stored = message_at(broker, name, record.queue_offset)
            if stored is not None and stored[1].place.position == record.position not in places:
                places.add(record.position)
                yield name, stored[1].place, record, decode_properties(record.properties)


def _record_at(broker: Broker, message_id: str) -> memoryview | None:
    """The record that an id of the broker names."""
    try:
        position = decode_message_id(message_id).position
    except ProtocolError:  # the id of a producer
        return None
    record = broker.store.read_record(position) if position >= 0 else None
    is_whole = record is not None and measure_record(record, 0, len(record), check_crc=False) == len(record)
    return record if is_whole else None


def wanted(topic: str, subscriptions: Iterable[Subscription], *, is_5: bool) -> Wanted:
    """Whether one of these subscriptions matches; without any, all messages are wanted."""
    tests = [_test(topic, kind, expression, is_5=is_5) for kind, expression in subscriptions]
    if not tests:
        return lambda tags_code, record: True
    return lambda tags_code, record: any(test(tags_code, record) for test in tests)


def _test(topic: str, kind: str, expression: str, *, is_5: bool) -> Wanted:
    try:
        if is_tag_type(kind):
            return _tags_test(tag_subscription(topic, expression, sub_version=0))
        sql = compile_expression(expression, kind, is_5=is_5)
    except (ProtocolError, ExpressionRefused):  # the broker filters nothing then
        return lambda tags_code, record: True
    return lambda tags_code, record: sql.matches_record(record)


def _tags_test(subscription: SubscriptionData) -> Wanted:
    """By the tag itself: two tags may have one code, and the client drops what it did not ask for."""
    if subscription.wants_all:
        return lambda tags_code, record: True
    codes, tags = subscription.code_set, subscription.tags_set
    return lambda tags_code, record: (
        tags_code in codes and decode_properties(decode_record(record).properties).get(names.TAGS) in tags
    )
