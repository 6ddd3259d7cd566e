"""What a consumer needs of its offset store; a user's own store has the same methods.

A clustering consumer shares its offsets through the brokers (`broker_store.py`), a broadcasting one keeps its own in a
file (`file_store.py`). The offset stored is the next one to read. Official class: OffsetStore.
"""

from collections.abc import Iterable
from typing import Protocol

from pocketmq.protocol.message.message_queue import MessageQueue


class OffsetStore(Protocol):
    """`read` and `in_store` return an offset, NO_OFFSET, or OFFSET_UNREADABLE."""

    async def load(self) -> None: ...
    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None: ...
    def update_and_freeze(self, queue: MessageQueue, offset: int) -> None: ...
    def read(self, queue: MessageQueue) -> int: ...
    async def in_store(self, queue: MessageQueue) -> int: ...
    async def persist(self, queue: MessageQueue) -> None: ...
    async def persist_all(self, queues: Iterable[MessageQueue]) -> None: ...
    async def persist_last(self, queues: Iterable[MessageQueue]) -> None:
        """As `persist_all`, for a consumer that leaves its group: what is not stored on return is lost."""
        ...

    def remove(self, queue: MessageQueue) -> None: ...
    def of_topic(self, topic: str = "") -> dict[MessageQueue, int]: ...


async def read_offset(store: OffsetStore, queue: MessageQueue) -> int:
    """From memory, else from the store (MEMORY_FIRST_THEN_STORE)."""
    offset = store.read(queue)
    return offset if offset >= 0 else await store.in_store(queue)
