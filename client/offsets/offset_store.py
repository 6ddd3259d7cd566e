"""What a consumer needs of its offset store; and the offsets it has reached, in memory between two reports to it.

An offset is the next one to read. A clustering consumer shares its offsets through the brokers (`broker_store.py`), a
broadcasting one keeps its own in a file (`file_store.py`); a user's own store has the methods of `OffsetStore`.
Official class: OffsetStore.
"""

from collections.abc import Collection, Iterable
from typing import Final, Protocol

from pocketmq.protocol.message.message_queue import MessageQueue

NO_OFFSET: Final = -1
"""The store answered that the group has no offset for the queue."""
OFFSET_UNREADABLE: Final = -2
"""The store could not be asked, or answered with an error."""


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

    def remove(self, queue: MessageQueue) -> None: ...
    def of_topic(self, topic: str = "") -> dict[MessageQueue, int]: ...


class OffsetMemory:
    """Queue to offset, in memory: what both stores are made of. Owned by the event loop.

    A frozen entry (after a corrected offset) ignores updates until it is removed, so that a listener that ends late
    cannot undo the correction. Mirrors ControllableOffset; 4.9 clients freeze nothing.
    """

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}
        self._frozen: set[MessageQueue] = set()

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool = False) -> None:
        """Set the offset; `increase_only` never lowers it. Nothing happens to a frozen one."""
        if queue in self._frozen:
            return
        if increase_only and self._offsets.get(queue, offset) > offset:
            return
        self._offsets[queue] = offset

    def update_and_freeze(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset and keep it there until `remove`."""
        self._offsets[queue] = offset
        self._frozen.add(queue)

    def read(self, queue: MessageQueue) -> int:
        """The offset, NO_OFFSET without one."""
        return self._offsets.get(queue, NO_OFFSET)

    def remove(self, queue: MessageQueue) -> None:
        """Forget the entry, and with it the freeze."""
        self._offsets.pop(queue, None)
        self._frozen.discard(queue)

    def to_persist(self, queues: Collection[MessageQueue]) -> dict[MessageQueue, int]:
        """Offsets of `queues` to be stored, changed or not; entries of other queues are forgotten.

        Without queues nothing is stored and nothing forgotten (official persistAll).
        """
        if not queues:
            return {}
        for queue in [queue for queue in self._offsets if queue not in queues]:
            self.remove(queue)
        return dict(self._offsets)

    def of_topic(self, topic: str = "") -> dict[MessageQueue, int]:
        """A copy, of one topic or of all (official cloneOffsetTable)."""
        return {queue: offset for queue, offset in self._offsets.items() if not topic or queue.topic == topic}
