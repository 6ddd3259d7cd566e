"""The process queues a consumer holds, by message queue: those it consumes, and dropped ones not released yet.

Mirrors `RebalanceImpl.processQueueTable`.
"""

from collections.abc import Iterator, Mapping

from pocketmq.protocol.message.message_queue import MessageQueue

from .process_queue import ProcessQueue


class QueueTable(Mapping[MessageQueue, ProcessQueue]):
    """Rounds add and remove queues. Everything else reads, or removes a process queue it has dropped itself."""

    def __init__(self) -> None:
        self._queues: dict[MessageQueue, ProcessQueue] = {}

    def __getitem__(self, queue: MessageQueue) -> ProcessQueue:
        return self._queues[queue]

    def __iter__(self) -> Iterator[MessageQueue]:
        return iter(self._queues)

    def __len__(self) -> int:
        return len(self._queues)

    def live(self) -> list[MessageQueue]:
        """The queues that are not dropped."""
        return [queue for queue, process_queue in self._queues.items() if not process_queue.dropped]

    def add(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        self._queues[queue] = process_queue

    def remove(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """Remove a process queue; nothing if the message queue has another one by now."""
        if self._queues.get(queue) is process_queue:
            del self._queues[queue]

    def clear(self) -> None:
        self._queues.clear()
