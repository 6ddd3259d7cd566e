"""What the books of a run see of the product: stored offsets, copied records, opened stores, logged exceptions."""

import logging
from pathlib import Path

from pocketmq.broker.tables.offset_table import OffsetTable
from pocketmq.protocol.message.properties import TIMER_DEL_UNIQKEY, UNIQ_KEY, decode_properties
from pocketmq.protocol.message.record import Record, decode_record
from pocketmq.protocol.message.topics import TIMER_TOPIC
from pocketmq.store import MessageStore, StoreError
from pocketmq.store.at_rest.check import check_store

from simulation.books import InvariantError, Place, key_of
from simulation.dead_letters import DEAD_LETTERS
from simulation.machines import LIFE
from simulation.patches import World
from simulation.plan import broker_name_of


def max_offsets(broker_name: str, store: MessageStore) -> dict[Place, int]:
    """Of every queue of a master."""
    return {
        (broker_name, topic, queue.queue_id): queue.max_offset
        for topic in store.topics_with_queues()
        for queue in store.queues_of(topic)
    }


def records_of(broker_name: str, store: MessageStore) -> dict[Place, list[Record]]:
    """What the queues of a master hold. Raises InvariantError where an entry has no record."""
    found: dict[Place, list[Record]] = {}
    for topic in store.topics_with_queues():
        if not topic.startswith("t-") and topic != DEAD_LETTERS:
            continue
        for queue in store.queues_of(topic):
            place = broker_name, topic, queue.queue_id
            found[place] = []
            for offset in range(queue.min_offset, queue.max_offset):
                entry = store.queue_unit(topic, queue.queue_id, offset)
                record = None if entry is None else store.read_record(entry[0], entry[1])
                if record is None:
                    raise InvariantError(f"offset {offset} of {place} has no record")
                found[place].append(decode_record(record))
    return found


def position_in_log(store: MessageStore, place: Place, offset: int, key: str) -> int | None:
    """Where the message with this key is, whose queue is not known if it is -1; None if it is not visible yet."""
    _, topic, queue_id = place
    for queue in store.queues_of(topic):
        unit = store.queue_unit(topic, queue.queue_id, offset) if queue_id in (-1, queue.queue_id) else None
        record = None if unit is None else store.read_record(unit[0], unit[1])
        if unit is not None and record is not None and key_of(decode_record(record)) == key:
            return unit[0]
    return None


def position_of_recall(store: MessageStore, message_id: str) -> int | None:
    """Where in the log the newest recall of this message is; None if it is not visible yet."""
    for queue in store.queues_of(TIMER_TOPIC):
        for offset in range(queue.max_offset - 1, queue.min_offset - 1, -1):
            entry = store.queue_unit(TIMER_TOPIC, queue.queue_id, offset)
            data = None if entry is None else store.read_record(entry[0], entry[1])
            if data is not None:
                record = decode_record(data)
                properties = decode_properties(record.properties)
                if properties.get(UNIQ_KEY) == message_id and TIMER_DEL_UNIQKEY in properties:
                    return record.position
    return None


def damage_of(root: Path, *, has_lost: bool) -> list[str]:
    """What `store check` finds in a store at rest. Where messages were lost with the power, offsets of groups may be
    ahead of the queues: they are saved earlier, with ASYNC_FLUSH."""
    findings = check_store(root).findings
    damage = [f"{one.place}: {one.what}" for one in findings if one.severity == "damage"]
    return [one for one in damage if not has_lost or "consumerOffset.json" not in one]


class Logs(logging.Handler):
    """Exceptions that the product has caught and logged, other than those of peers and disks."""

    EXPECTED = (OSError, StoreError, TimeoutError)

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.failures: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, self.EXPECTED):
            self.failures.append(f"{record.getMessage()}: {error!r}")


def watch() -> None:
    """Let the books of the run see each offset that a broker stores, and what a slave copies."""
    commit = OffsetTable.commit

    def watched(self: OffsetTable, topic: str, group: str, queue_id: int, offset: int) -> None:
        commit(self, topic, group, queue_id, offset)
        life = LIFE.get()
        assert life is not None
        World.books.committed(broker_name_of(life.machine.name), topic, group, queue_id, offset)

    OffsetTable.commit = watched  # type: ignore[method-assign]
    open_store, append_copied = MessageStore.open, MessageStore.append_copied

    def watched_open(self: MessageStore) -> None:
        open_store(self)
        World.opened(self)

    MessageStore.open = watched_open  # type: ignore[method-assign]

    def watched_copy(self: MessageStore, position: int, data: memoryview) -> None:
        append_copied(self, position, data)
        World.books.copied(self.log_end)

    MessageStore.append_copied = watched_copy  # type: ignore[method-assign]
