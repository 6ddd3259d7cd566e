"""A store in a temporary directory, with small files and a stopped clock."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pocketmq.store import MessageStore, VirtualClock

from store_batches import open_small

OpenStore = Callable[..., MessageStore]


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
