"""A timer for each queue that an orderly pop blocks; it wakes the requests that wait for the queue."""

from collections.abc import Callable
from functools import partial
from typing import Final

from ..state.broker_state import BrokerState
from ..time.timers import Timer

MAX_ALARMS: Final = 10_000
"""Limit of queues with an alarm. Further queues also become free in time, but no request is woken then."""


class QueueAlarms:
    """Owned by the event loop."""

    def __init__(self, state: BrokerState, on_free: Callable[[str, str, int], None]) -> None:
        """`on_free` is called with topic, group and queue id."""
        self._state = state
        self._on_free = on_free
        self._timers: dict[tuple[str, str, int], Timer] = {}

    def set(self, topic: str, group: str, queue_id: int, free_at_ms: int) -> None:
        """Set the alarm of a queue that becomes free at this time. Replaces its earlier alarm."""
        state, key = self._state, (topic, group, queue_id)
        if not state.config.enable_notify_after_pop_order_lock_release:
            return
        earlier = self._timers.pop(key, None)
        if earlier is not None:
            earlier.cancel()
        if len(self._timers) >= MAX_ALARMS:
            return
        seconds = max(free_at_ms - state.clock.now_ms() + 1, 0) / 1000
        self._timers[key] = state.timers.call_later(seconds, partial(self._ring, key))

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _ring(self, key: tuple[str, str, int]) -> None:
        self._timers.pop(key, None)
        self._on_free(*key)
