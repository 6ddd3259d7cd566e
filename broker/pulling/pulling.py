"""The part of a broker that answers pulls."""

from collections.abc import Generator, Iterator

from ..first_position.first_position import FirstPosition
from ..membership.membership import Membership
from ..state.broker_state import BrokerState
from ..state.part import Part
from ..time.periodic import Periodic
from .pull_waiters import PullWaiters

WAITER_SCAN_SECONDS = 5.0
"""How often suspended pulls are checked with long polling on; shortPollingTimeMills otherwise."""


class Pulling(Part):
    """Everything a pull uses, as attributes of this object: it is a hot path."""

    def __init__(self, state: BrokerState, membership: Membership, first_position: FirstPosition) -> None:
        super().__init__(state)
        self.consumers = membership.consumers
        self.hints = membership.hints
        self.filters = membership.filters
        self.broadcasts = first_position.broadcasts
        self.waiters = PullWaiters(state.config.pull_thread_pool_queue_capacity, state.timers.call_soon)

    def periodic(self) -> Iterator[Periodic]:
        config = self.config
        short_poll_seconds = config.short_polling_time_mills / 1000
        seconds = WAITER_SCAN_SECONDS if config.long_polling_enable else short_poll_seconds
        yield Periodic(
            "waiters", seconds, self._scan, lambda: self.waiters.earliest_ms, also_in_real_time=True
        )

    def _scan(self) -> Generator[None]:
        return self.waiters.scan(self.clock.now_ms(), self.clock.wall_ms(), self.store.max_offset)
