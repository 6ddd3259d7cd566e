"""The state of one popped queue: how many messages are unacknowledged, and whether it is still ours.

Official class: PopProcessQueue.
"""

from pocketmq.protocol.bodies.client_state import PopProcessQueueInfo

from ..clock import steady_ms
from ..rebalancing.process_queue import PULL_MAX_IDLE_MS


class PopProcessQueue:
    """Owned by the event loop."""

    __slots__ = ("dropped", "last_pop_ms", "waiting_acks")

    def __init__(self) -> None:
        self.dropped = False
        self.last_pop_ms = steady_ms()
        self.waiting_acks = 0

    @property
    def is_expired(self) -> bool:
        """Its loop has not popped for too long (official isPullExpired)."""
        return steady_ms() - self.last_pop_ms > PULL_MAX_IDLE_MS

    def info(self) -> PopProcessQueueInfo:
        """The queue's line in the answer to GET_CONSUMER_RUNNING_INFO."""
        return PopProcessQueueInfo(
            wait_ack_count=self.waiting_acks, droped=self.dropped, last_pop_timestamp=self.last_pop_ms
        )
