"""Questions about one queue that read no message: min and max offset, unit and store time at an offset, hot or cold.

Mirrors getMaxOffsetInQueue, getEarliestMessageTime, getOffsetInQueueByTime and checkInMemByConsumeOffset of
DefaultMessageStore. Owner: the event-loop thread.
"""

from pocketmq.protocol.message.record import store_timestamp_of

from ..config import StoreConfig
from ..log.commit_log import CommitLog
from ..lookup.queue_table import QueueTable
from .get_values import Hotness
from .residency import MemoryBudget, make_residency
from .time_search import Boundary, search_offset


class QueuePositions:
    """Reads the queues and the log; changes nothing."""

    def __init__(self, config: StoreConfig, log: CommitLog, queues: QueueTable, budget: MemoryBudget) -> None:
        self._config = config
        self._log = log
        self._queues = queues
        self._budget = budget
        self._policy = config.residency
        self._is_hot = make_residency(config, log, budget)

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Offset behind the newest visible message; 0 for an unknown queue."""
        queue = self._queues.get(topic, queue_id)
        return queue.max_offset if queue is not None else 0

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Offset of the oldest message kept; 0 for an unknown queue, where official brokers say -1 in some places."""
        queue = self._queues.get(topic, queue_id)
        return queue.min_offset if queue is not None else 0

    def queue_unit(self, topic: str, queue_id: int, offset: int) -> tuple[int, int, int] | None:
        """(position, size, tags code) of a queue unit; None if the queue has no such unit."""
        queue = self._queues.get(topic, queue_id)
        return queue.unit(offset) if queue is not None else None

    def store_time(self, topic: str, queue_id: int, offset: int) -> int:
        """storeTimestamp of the message at an offset, ms; -1 without one."""
        unit = self.queue_unit(topic, queue_id, offset)
        return self._log.store_timestamp(unit[0], unit[1]) if unit is not None else -1

    def earliest_store_time(self, topic: str, queue_id: int) -> int:
        """storeTimestamp of the oldest message of a queue, ms; -1 for an empty one."""
        return self.store_time(topic, queue_id, self.min_offset(topic, queue_id))

    def earliest_log_time(self) -> int:
        """storeTimestamp of the oldest record in the log, ms; -1 for an empty log."""
        record = self._log.read_record(self._log.start)
        return store_timestamp_of(record) if record is not None else -1

    def search_offset(
        self, topic: str, queue_id: int, timestamp_ms: int, boundary: Boundary = "LOWER"
    ) -> int:
        """Offset for a point in time, by the rules of the emulated line; 0 for an unknown queue."""
        if (queue := self._queues.get(topic, queue_id)) is None:
            return 0
        return search_offset(queue, self._log, timestamp_ms, boundary, self._config.emulate)

    def is_hot(self, topic: str, queue_id: int, offset: int) -> bool | None:
        """Whether the message at an offset counts as in memory; None if the queue has no such unit."""
        unit = self.queue_unit(topic, queue_id, offset)
        return self._is_hot(unit[0], unit[1]) if unit is not None else None

    def hotness(self, topic: str, queue_id: int, offset: int) -> Hotness | None:
        """The numbers behind `is_hot`."""
        unit = self.queue_unit(topic, queue_id, offset)
        if unit is None:
            return None
        position, size, _ = unit
        return Hotness(
            policy=self._policy,
            log_end_offset=self._log.end,
            position=position,
            distance_bytes=self._log.end - position,
            memory_budget_bytes=self._budget.bytes,
            hot=self._is_hot(position, size),
        )
