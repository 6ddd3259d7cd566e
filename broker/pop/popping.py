"""The parts of pop, put together: who waits, what is out in order, which group pops, what comes again.

`build` makes them for a broker, `arrived` passes a message on to those that wait, `end_waiting` answers everybody
when the broker stops. `QueueAlarms` ring when a queue popped in order is free again. Reading order of the rest:
`pop_handlers.py`, `pop_reading.py`, `pop_waiters.py`, `ack_handlers.py`, `ordered_pops.py`, `revive_log.py`,
`revive.py`.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..membership.request_modes import RequestModes
from .ordered_pops import OrderedPops
from .pop_waiters import PopWaiters
from .revive import Revive

if TYPE_CHECKING:
    from ..broker import Broker
    from ..delayed.delayed_messages import Timer

MAX_ALARMS: Final = 10_000
"""Queues with an alarm; others are free in time as well, only nobody is woken."""


class QueueAlarms:
    """One timer for each queue that is out in order; it wakes who waits. Owned by the event loop."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._timers: dict[tuple[str, str, int], Timer] = {}

    def set(self, topic: str, group: str, queue_id: int, free_at_ms: int) -> None:
        """The queue is free at that time; an earlier word about it no longer holds."""
        broker, key = self._broker, (topic, group, queue_id)
        if not broker.config.enable_notify_after_pop_order_lock_release:
            return
        earlier = self._timers.pop(key, None)
        if earlier is not None:
            earlier.cancel()
        if len(self._timers) >= MAX_ALARMS:
            return
        seconds = max(free_at_ms - broker.clock.now_ms() + 1, 0) / 1000
        self._timers[key] = asyncio.get_running_loop().call_later(seconds, self._ring, key)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _ring(self, key: tuple[str, str, int]) -> None:
        self._timers.pop(key, None)
        self._broker.queue_freed(*key)


def build(broker: "Broker") -> None:
    """Make the parts of pop; their tables are not loaded yet."""
    config, now_ms = broker.config, broker.clock.now_ms
    folder = config.store.root / "config"

    def waiters(*, wakes_last: bool) -> PopWaiters:
        return PopWaiters(
            now_ms,
            place_limit=lambda: config.pop_polling_size,
            total_limit=lambda: config.max_pop_polling_size,
            force_interval=lambda: config.pop_long_polling_force_notify_interval,
            wakes_last=wakes_last,
        )

    broker.pop_waiters = waiters(wakes_last=False)
    broker.notification_waiters = waiters(wakes_last=True)
    broker.queue_alarms = QueueAlarms(broker)
    broker.ordered_pops = OrderedPops(folder, now_ms, broker.queue_alarms.set)
    broker.request_modes = RequestModes(folder, now_ms)
    broker.revive = Revive(broker)


def arrived(
    broker: "Broker",
    topic: str,
    queue_id: int,
    queue_offset: int,
    tags_code: int,
    property_map: Mapping[str, str] | None,
) -> None:
    """A message can be read: wake a pop and a notification of each group that waits for its topic."""
    broker.pop_waiters.arrived(topic, queue_id, queue_offset, tags_code, property_map)
    broker.notification_waiters.arrived(topic, queue_id, queue_offset, tags_code, property_map)


def clean(broker: "Broker") -> None:
    """Forget what is out in order of topics, groups and queues that are gone."""

    def queues_of(topic: str, group: str) -> int:
        config = broker.topics.find(topic)
        return config.read_queue_nums if config is not None and group in broker.groups else 0

    broker.ordered_pops.clean(queues_of)


def end_waiting(broker: "Broker") -> int:
    """Nobody waits any more; how many turns of the loop it takes to answer everybody. The broker is stopping."""
    broker.queue_alarms.stop()
    return broker.pop_waiters.stop() + broker.notification_waiters.stop()
