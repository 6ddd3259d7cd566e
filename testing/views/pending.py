"""Messages that no consumer can read yet: delayed, timed and half messages, under their real topic.

Called in the server's thread; nothing is changed.
"""

from collections.abc import Iterator

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.delayed.timer_delivery import deletion_key
from pocketmq.broker.transactions.transaction_check import CHECK_GROUP, OpQueue
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.topics import (
    HALF_TOPIC,
    OP_HALF_TOPIC,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    revive_topic,
)
from pocketmq.store.lookup.consume_queue import ConsumeQueue

from .stored_message import StoredMessage, stored_message


def delayed_messages(broker: Broker) -> list[StoredMessage]:
    """Messages that wait for a delay level or for a time, oldest first; not the broker's own."""
    found = [*_of_levels(broker), *_of_timer(broker)]
    return sorted(found, key=lambda message: message.position)


def open_half_messages(broker: Broker) -> list[StoredMessage]:
    """Messages whose transaction has not ended, oldest first."""
    found: list[StoredMessage] = []
    for queue in broker.store.queues_of(HALF_TOPIC):
        half_begin = _position(broker, HALF_TOPIC, queue)
        op_queue = broker.store.consume_queue(OP_HALF_TOPIC, queue.queue_id)
        op_begin = 0 if op_queue is None else _position(broker, OP_HALF_TOPIC, op_queue)
        ops = OpQueue(broker.state, queue.queue_id, op_begin, half_begin)
        while ops.read_more(1000):
            pass
        for offset, message in _messages(broker, queue, half_begin):
            original = int(message.properties.get(names.TRANSACTION_PREPARED_QUEUE_OFFSET, -1))
            has_ended = any(
                ops.pass_over(one)
                or one in ops.ended_earlier
                or broker.transactions.half_messages.is_ended(queue.queue_id, one)
                for one in (offset, original)
            )
            if not has_ended:
                found.append(_under_real_topic(message))
    return found


def _of_levels(broker: Broker) -> Iterator[StoredMessage]:
    for queue in broker.store.queues_of(SCHEDULE_TOPIC):
        begin = max(broker.delays.offset(queue.queue_id + 1), queue.min_offset)
        for _, message in _messages(broker, queue, begin):
            yield _under_real_topic(message)


def _of_timer(broker: Broker) -> Iterator[StoredMessage]:
    queue = broker.store.consume_queue(TIMER_TOPIC, 0)
    if queue is None:
        return
    cancelled: set[str] = set()
    waiting: list[StoredMessage] = []
    for offset, message in _messages(broker, queue, queue.min_offset):
        deleted = message.properties.get(names.TIMER_DEL_UNIQKEY)
        if deleted is not None:
            cancelled.add(deleted)
        elif broker.delayed.timer.is_waiting(offset, message.properties):
            waiting.append(message)
    revive = revive_topic(broker.config.broker_cluster_name)
    for message in waiting:
        real_topic, message_id = message.properties.get(names.REAL_TOPIC, ""), message.message_id or ""
        if real_topic != revive and deletion_key(broker.config, real_topic, message_id) not in cancelled:
            yield _under_real_topic(message)


def _position(broker: Broker, topic: str, queue: ConsumeQueue) -> int:
    return max(broker.offsets.query(topic, CHECK_GROUP, queue.queue_id), queue.min_offset)


def _messages(broker: Broker, queue: ConsumeQueue, begin: int) -> Iterator[tuple[int, StoredMessage]]:
    for offset in range(begin, queue.max_offset):
        unit = queue.unit(offset)
        record = None if unit is None else broker.store.read_record(unit[0], unit[1])
        if record is not None:
            yield offset, stored_message(record)


def _under_real_topic(message: StoredMessage) -> StoredMessage:
    topic = message.properties.get(names.REAL_TOPIC, message.topic)
    queue_id = int(message.properties.get(names.REAL_QID, message.queue_id))
    return msgspec.structs.replace(message, topic=topic, queue_id=queue_id)
