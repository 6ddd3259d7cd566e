"""Offsets a consumer has reached, as it holds them in memory between two reports to the store.

An offset is the next one to read. A frozen entry (after a corrected offset) ignores updates until it is removed, so
that a listener that ends late cannot undo the correction. The stores read and write it (`broker_store.py`,
`file_store.py`). Official classes: ControllableOffset, and the table inside RemoteBrokerOffsetStore and
LocalFileOffsetStore. 4.9 clients freeze nothing.
"""

from collections.abc import Collection
from typing import Final

from pocketmq.protocol.message.message_queue import MessageQueue

NO_OFFSET: Final = -1
"""The store answered that the group has no offset for the queue."""
OFFSET_UNREADABLE: Final = -2
"""The store could not be asked, or answered with an error."""


class OffsetMemory:
    """Queue to offset. Owned by the event loop."""

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
