"""The part of a broker that answers pops: suspended requests, orderly pops, and the revival of messages."""

from collections.abc import Callable, Generator, Iterator

from ..cluster.cluster import Cluster
from ..delayed.delayed import Delayed
from ..membership.membership import Membership
from ..state.broker_state import BrokerState
from ..state.part import Part
from ..time.periodic import Periodic
from .ordered_pops import OrderedPops
from .pop_waiters import ANY_QUEUE, PopWaiters
from .revive import Revive
from .revive_log import ReviveLog

ORDER_SAVE_SECONDS = 10.0


class Popping(Part):
    """`stop` answers every suspended request."""

    def __init__(
        self, state: BrokerState, delayed: Delayed, membership: Membership, cluster: Cluster
    ) -> None:
        super().__init__(state)
        self.consumers = membership.consumers
        self.request_modes = membership.request_modes
        self.registration = cluster.registration
        self.durable_log = cluster.durable_log
        self.waiters = PopWaiters(self.config, self.clock, state.timers)
        self.notification_waiters = PopWaiters(self.config, self.clock, state.timers, wakes_last=True)
        self.ordered_pops = OrderedPops(state, self.wake_queue)
        self.revive_log = ReviveLog(state, delayed, cluster.durable_log)
        self.revive = Revive(state, delayed.timer, self.revive_log)
        self.when_rewound: list[Callable[[], None]] = []
        """Called when queues and tables went back to an earlier state."""
        self._pops = -1
        self.own_tables = (self.ordered_pops,) if self.is_5 else ()

    def stop(self) -> int:
        """Answer every suspended request because the broker stops; returns the number of loop iterations it takes."""
        self.ordered_pops.stop_alarms()
        return self.waiters.stop() + self.notification_waiters.stop()

    def rewind(self) -> None:
        """Follow queues and tables that went back to an earlier state; suspended requests are handled once more."""
        self.revive.forget()
        self.ordered_pops.stop_alarms()
        self.ordered_pops.set_alarms()
        for forget in self.when_rewound:
            forget()
        self.waiters.wake_all()
        self.notification_waiters.wake_all()

    def periodic(self) -> Iterator[Periodic]:
        seconds, revive = lambda: self.config.revive_interval / 1000, self.revive
        yield Periodic("revive", seconds, revive.tick, revive.next_due, is_event=True)
        yield Periodic("order", ORDER_SAVE_SECONDS, self._save_order)
        if self.state.timers.is_virtual:
            for waiters in (self.waiters, self.notification_waiters):
                yield Periodic("waiters by the wall's time", 0.5, waiters.scan_by_wall)

    @property
    def has_waiting(self) -> bool:
        return self.waiters.total > 0 or self.notification_waiters.total > 0

    def wake_queue(self, topic: str, group: str, queue_id: int) -> None:
        """A queue of an orderly pop is no longer blocked: wake the requests that wait for it."""
        for waiters in (self.waiters, self.notification_waiters):
            for requested_queue in (ANY_QUEUE, queue_id):
                waiters.wake(topic, group, requested_queue)

    def next_revive_queue(self) -> int:
        """Each pop uses the next revive queue."""
        self._pops = (self._pops + 1) % self.config.revive_queue_num
        return self._pops

    def _save_order(self) -> Generator[None]:
        """Delete the entries of orderly pops whose topic, group or queue was deleted, and save the others."""

        def queues_of(topic: str, group: str) -> int:
            config = self.topics.find(topic)
            return config.read_queue_nums if config is not None and group in self.groups else 0

        yield from self.ordered_pops.clean(queues_of)
        self.tables.save(self.ordered_pops)
