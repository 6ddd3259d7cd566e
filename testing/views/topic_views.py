"""What a topic holds and what a group has not read, without side effects. Called in the server's thread."""

from pocketmq.broker.broker import Broker

from .stored_message import StoredMessage, stored_message


def stored_messages(broker: Broker, topic: str) -> list[StoredMessage]:
    store = broker.store
    found = []
    for queue in store.queues_of(topic):
        for offset in range(queue.min_offset, queue.max_offset):
            unit = queue.unit(offset)
            record = None if unit is None else store.read_record(unit[0], unit[1])
            if record is not None:
                found.append(stored_message(record))
    return sorted(found, key=lambda message: message.position)


def message_count(broker: Broker, topic: str) -> int:
    return sum(queue.max_offset - queue.min_offset for queue in broker.store.queues_of(topic))


def lag_of(broker: Broker, topic: str, group: str) -> int:
    offsets = broker.offsets.offsets(topic, group) or {}
    return sum(
        queue.max_offset - max(offsets.get(queue.queue_id, 0), queue.min_offset)
        for queue in broker.store.queues_of(topic)
    )
