"""For tests of the store: one with small files, its end by a kill, batches, and what is in queues and files."""

from pathlib import Path
from typing import Any

from pocketmq.core.records import Message
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.protocol.message.record import Record, decode_records
from pocketmq.store import AppendResult, MessageStore, NewMessage, StoreConfig
from pocketmq.store.clock import Clock
from pocketmq.store.put_values import Placed

SMALL = {"mapped_file_size_commit_log": 4096, "mapped_file_size_consume_queue": 200}
SMALL |= {"max_hash_slot_num": 64, "max_index_num": 100}
"""Log files hold 4096 bytes, queue files 10 entries, index files 64 slots and 99 entries."""
ARGUMENTS = {"on_arrivals", "is_awaited", "call_soon", "flush_in_background"}


def open_small(root: Path, clock: Clock, **settings: Any) -> MessageStore:
    """Open a store with small files, without the flusher's thread."""
    given = {name: settings.pop(name) for name in ARGUMENTS & settings.keys()}
    config = StoreConfig(store_path_root_dir=str(root), **(SMALL | settings))
    store = MessageStore(config, clock, **({"flush_in_background": False} | given))
    store.open()
    return store


def leave_as_killed(store: MessageStore) -> None:
    """Written bytes remain, nothing is completed, `abort` remains."""
    store._flusher = None  # close() then does nothing
    store.admission.close()
    store._lock.release()


def records_of(
    store: MessageStore, topic: str = "orders", queue_id: int = 0, count: int = 32, **options: Any
) -> list[Record]:
    """All visible records of a queue, read from its min offset on."""
    found: list[Record] = []
    offset = store.min_offset(topic, queue_id)
    while offset < store.max_offset(topic, queue_id):
        result = store.get_message(topic, queue_id, offset, count, **options)
        assert result.next_offset > offset
        found += [record for view in result.views for record in decode_records(view)]
        offset = result.next_offset
    return found


def bodies(store: MessageStore, topic: str = "orders", queue_id: int = 0, **options: Any) -> list[bytes]:
    """All visible bodies of a queue, read from its min offset on."""
    return [bytes(record.body) for record in records_of(store, topic, queue_id, **options)]


def new_message(
    topic: str = "orders", queue_id: int = 0, body: bytes = b"body", **properties: str
) -> NewMessage:
    return NewMessage(topic, queue_id, body, encode_properties(properties))


def put(store: MessageStore, topic: str = "orders", *args: Any, **properties: Any) -> AppendResult:
    """Append one message, as for `new_message`."""
    return store.append(new_message(topic, *args, **properties))


def batch_of(store: MessageStore, messages: list[NewMessage]) -> Message:
    """The messages as `append_all` wants a batch: they share what the first has, but flag, body and properties."""
    elements = [BatchElement(message.flag, message.body, message.properties) for message in messages]
    head, queue_id, _, _, *rest = store.pack_message(messages[0])
    return (head, queue_id, encode_batch(elements), None, *rest)


def append_batch(store: MessageStore, messages: list[NewMessage]) -> Placed:
    return store.append_all([batch_of(store, messages)])


def queue_offsets(placed: Placed) -> list[int]:
    """The number of each record that was stored."""
    return [offset + number for _, offset, count in placed.runs for number in range(count)]


class Arrivals:
    """What `on_arrivals` is told, message by message."""

    def __init__(self) -> None:
        self.all: list[tuple[Any, ...]] = []

    def __call__(self, topic: str, queue_id: int, arrivals: Any) -> None:
        self.all += [(topic, queue_id, *each) for each in arrivals]


def dispatch_flushed(store: MessageStore, *, from_log: bool) -> None:
    """The disk has everything: without what is held for it, the messages are read from the log."""
    if from_log:
        store._appending.forget_deferred()
    store.log.files.flushed = store.log_end  # waiting for the disk takes long
    store.dispatch_flushed()
