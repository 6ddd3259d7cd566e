"""Messages that no consumer can read yet, under their real topic, and how many a group has popped and not acknowledged.

A checkpoint (messages in flight) and its acks wait in the timer topic until they are due, and then lie in the revive
topic. `broker/pop/revive_log.py` writes them, `revive.py` ends a checkpoint: what has no ack by then goes to the retry
topic of the group. Called in the server's thread; nothing is changed.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.delayed.timer_delivery import deletion_key
from pocketmq.broker.pop.revive_log import read_revive_record
from pocketmq.broker.storing.messages import record_at_offset
from pocketmq.broker.transactions.transaction_check import CHECK_GROUP, OpQueue
from pocketmq.protocol.bodies.revive import (
    ACK_TAG,
    BATCH_ACK_TAG,
    CHECKPOINT_TAG,
    REVIVE_GROUP,
    Ack,
    CheckPoint,
    MergeKey,
)
from pocketmq.protocol.errors import BodyError
from pocketmq.protocol.message import properties as names
from pocketmq.protocol.message.properties import decode_properties, tags_code
from pocketmq.protocol.message.topics import (
    HALF_TOPIC,
    OP_HALF_TOPIC,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    revive_topic,
)
from pocketmq.store.lookup.consume_queue import ConsumeQueue

from ..ledger.stored import entry_at
from .values import StoredMessage, stored_message


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
        if (entry := entry_at(broker, queue, offset)) is not None:
            yield offset, stored_message(entry[2])


def _under_real_topic(message: StoredMessage) -> StoredMessage:
    topic = message.properties.get(names.REAL_TOPIC, message.topic)
    queue_id = int(message.properties.get(names.REAL_QID, message.queue_id))
    return msgspec.structs.replace(message, topic=topic, queue_id=queue_id)


ENTRIES_A_TURN: Final = 200
"""After so many entries of a queue the loop has a turn."""
_Pop = tuple[MergeKey, int]
"""A checkpoint and the end of its invisible time, at which its acks are due too: a changed time makes a new one."""
_CODES: Final = frozenset(map(tags_code, (CHECKPOINT_TAG, ACK_TAG, BATCH_ACK_TAG)))


async def unacknowledged(broker: Broker, topic: str, group: str) -> int:
    """How many messages of a topic the group has popped and neither acknowledged nor seen revived."""
    own_name, revive = broker.config.broker_name, revive_topic(broker.config.broker_cluster_name)
    points: dict[_Pop, CheckPoint] = {}
    finished: set[_Pop] = set()
    acked: dict[_Pop, set[int]] = {}
    for queue in (*broker.store.queues_of(TIMER_TOPIC), *broker.store.queues_of(revive)):
        is_timer = queue.topic == TIMER_TOPIC
        done = -1 if is_timer else broker.offsets.query(revive, REVIVE_GROUP, queue.queue_id)
        async for offset in _entries(queue):
            found = _read(broker, queue, offset, revive)
            if found is None or (found[0].topic, found[0].group) != (topic, group):
                continue
            record, due_ms = found
            if isinstance(record, Ack):
                pop = record.merge_key(own_name), due_ms
                acked.setdefault(pop, set()).update(record.offsets())
                continue
            pop = record.merge_key(), record.due_ms
            points[pop] = record
            if offset <= done:
                finished.add(pop)
    places = {
        (point.queue_id, offset)
        for pop, point in points.items()
        if pop not in finished
        for offset in set(point.offsets()) - acked.get(pop, set())
    }
    ends = {queue.queue_id: queue.max_offset for queue in broker.store.queues_of(topic)}
    return sum(offset < ends.get(queue_id, 0) for queue_id, offset in places)


async def _entries(queue: ConsumeQueue) -> AsyncIterator[int]:
    """Offsets of the entries that may be checkpoints or acks, going by the hash of the tag."""
    for count, offset in enumerate(range(queue.min_offset, queue.max_offset), 1):
        unit = queue.unit(offset)
        if unit is not None and unit[2] in _CODES:
            yield offset
        if count % ENTRIES_A_TURN == 0:
            await asyncio.sleep(0)


def _read(
    broker: Broker, queue: ConsumeQueue, offset: int, revive: str
) -> tuple[CheckPoint | Ack, int] | None:
    """A checkpoint or an ack, and when it is due."""
    record = record_at_offset(broker.store, queue, offset)
    if record is None:
        return None
    if queue.topic == TIMER_TOPIC and decode_properties(record.properties).get(names.REAL_TOPIC) != revive:
        return None
    try:
        found, due_ms = read_revive_record(record)
    except BodyError:
        return None
    return None if found is None else (found, due_ms or 0)
