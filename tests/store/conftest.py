"""A store in a temporary directory, with small files and a stopped clock."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.store import AppendResult, MessageStore, NewMessage, VirtualClock

from store_batches import leave_as_killed, open_small, records_of

OpenStore = Callable[..., MessageStore]
Put = Callable[..., AppendResult]


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_700_000_000_000)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where `open_store` opens."""
    return tmp_path / "store"


@pytest.fixture
def open_store(tmp_path: Path, clock: VirtualClock) -> Iterator[OpenStore]:
    """Open a store with small files (`open_small`), by default the same directory each time."""
    opened: list[MessageStore] = []

    def open_one(directory: Path | None = None, **settings: Any) -> MessageStore:
        opened.append(open_small(directory or tmp_path / "store", clock, **settings))
        return opened[-1]

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
    """Leave a store as a killed process does."""
    return leave_as_killed


def bodies(store: MessageStore, topic: str = "orders", queue_id: int = 0, **settings: Any) -> list[bytes]:
    """All visible bodies of a queue, read from its min offset on."""
    return [bytes(record.body) for record in records_of(store, topic, queue_id, **settings)]


@pytest.fixture(name="bodies")
def bodies_fixture() -> Callable[..., list[bytes]]:
    return bodies


@pytest.fixture(name="new_message")
def new_message_fixture() -> Callable[..., NewMessage]:
    return new_message
