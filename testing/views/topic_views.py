"""What a topic holds, without side effects. Called in the server's thread."""

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
