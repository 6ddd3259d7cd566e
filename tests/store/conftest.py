"""A store in a temporary directory, with small files and a stopped clock."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.store import AppendResult, MessageStore, NewMessage, StoreConfig, VirtualClock

OpenStore = Callable[..., MessageStore]
Put = Callable[..., AppendResult]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_700_000_000_000)


@pytest.fixture
def open_store(tmp_path: Path, clock: VirtualClock) -> Iterator[OpenStore]:
    """Open a store, by default the same directory each time, without the flusher's thread.

    Log files hold 4096 bytes, queue files 10 units, index files 64 slots and 99 entries.
    """
    opened: list[MessageStore] = []

    def open_one(directory: Path | None = None, **settings: Any) -> MessageStore:
        arguments = {
            name: settings.pop(name)
            for name in ("on_arrivals", "is_awaited", "call_soon", "flush_in_background")
            if name in settings
        }
        arguments.setdefault("flush_in_background", False)
        values = {
            "mapped_file_size_commit_log": 4096,
            "mapped_file_size_consume_queue": 200,
            "max_hash_slot_num": 64,
            "max_index_num": 100,
        } | settings
        config = StoreConfig(store_path_root_dir=str(directory or tmp_path / "store"), **values)
        store = MessageStore(config, clock, **arguments)
        store.open()
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


def new_message(
    topic: str = "orders", queue_id: int = 0, body: bytes = b"body", **properties: str
) -> NewMessage:
    return NewMessage(topic, queue_id, body, encode_properties(properties))


@pytest.fixture
def put() -> Put:
    """Append one message; keyword arguments are its properties."""

    def put_one(
        store: MessageStore,
        topic: str = "orders",
        queue_id: int = 0,
        body: bytes = b"body",
        **properties: str,
    ) -> AppendResult:
        return store.append(new_message(topic, queue_id, body, **properties))

    return put_one


@pytest.fixture
def crash() -> Callable[[MessageStore], None]:
    """Leave a store as a killed process does: written bytes remain, nothing is completed, `abort` remains."""

    def crash_store(store: MessageStore) -> None:
        store._flusher = None  # close() then does nothing
        store.admission.close()
        store._lock.release()

    return crash_store


def bodies(store: MessageStore, topic: str = "orders", queue_id: int = 0, **settings: Any) -> list[bytes]:
    """All visible bodies of a queue, read from its min offset on."""
    from pocketmq.protocol.message.record import decode_records

    found: list[bytes] = []
    offset = store.min_offset(topic, queue_id)
    while offset < store.max_offset(topic, queue_id):
        result = store.get_message(topic, queue_id, offset, 32, **settings)
        assert result.next_offset > offset
        found += [bytes(record.body) for view in result.views for record in decode_records(view)]
        offset = result.next_offset
    return found


@pytest.fixture(name="bodies")
def bodies_fixture() -> Callable[..., list[bytes]]:
    return bodies


@pytest.fixture(name="new_message")
def new_message_fixture() -> Callable[..., NewMessage]:
    return new_message
