"""A broker: builds, starts and stops its parts, each after the parts it depends on.

    BrokerState < Access, Membership < Delayed < Transactions, FirstPosition < Pulling < Cluster < Popping < Sending

The constructor of each part gets what the part needs and sets every attribute. A handler names its part by the type of
its first parameter (`network/dispatch.py`); the handlers of `admin/` use the whole `Broker`, as the official
`AdminBrokerProcessor` uses its `BrokerController`, which this class mirrors. `node.py` binds the sockets first, because
the addresses of a broker are part of its state.
"""

import asyncio
from collections.abc import Iterator
from socket import socket

from pocketmq.protocol.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from pocketmq.store import Clock
from pocketmq.store.lookup.dispatch import Arrival

from .access.access_control import Access
from .cluster.cluster import Cluster
from .cluster.name_server_link import Connect
from .config.broker_config import BrokerConfig
from .delayed.delayed import Delayed
from .first_position.first_position import FirstPosition
from .membership.membership import Membership
from .pop.popping import Popping
from .pulling.pulling import Pulling
from .sending.sending import Sending
from .sending.sends import Sends
from .state.broker_state import BrokerState, Identity, persist
from .state.part import Part
from .time.periodic import Periodic, PeriodicActions
from .time.timers import Timers
from .transactions.transactions import Transactions


class Broker(Part):
    """`open` and `close` mirror each other, and so do `start` and `stop`; all run on the event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        identity: Identity,
        *,
        connect: Connect,
        timers: Timers | None = None,
        writes_in_background: bool = True,
        seed: int | None = None,
    ) -> None:
        state = BrokerState(
            config,
            clock,
            identity,
            on_arrivals=self._arrived,
            is_awaited=self._is_awaited,
            on_topics_changed=lambda: self.cluster.registration.topics_changed(),
            timers=timers,
            writes_in_background=writes_in_background,
            seed=seed,
        )
        super().__init__(state)
        self.retention, self.delays = state.retention, state.delays
        self.access = Access(state)
        self.membership = Membership(state)
        self.delayed = Delayed(state)
        self.transactions = Transactions(state, self.delayed, self.membership)
        self.first_position = FirstPosition(state, self.membership)
        self.pulling = Pulling(state, self.membership, self.first_position)
        self.cluster = Cluster(state, self.delayed, self.membership, connect)
        self.popping = Popping(state, self.delayed, self.membership, self.cluster)
        self.sending = Sending(state, self.delayed, self.transactions, self.cluster, self.membership)
        self.sends = Sends(state, self.sending)
        self.reports = state.reports
        lower = self.access, self.membership, self.delayed, self.transactions, self.first_position
        self.parts: tuple[Part, ...] = (self, *lower, self.pulling, self.cluster, self.popping, self.sending)
        """The objects that a handler may have as its first parameter."""
        self._periodic_actions = PeriodicActions(state.timers)

    # -- files

    def open(self) -> None:
        """Open the store and read every table. Raises `StoreError` or `StartError`; call `close` even then."""
        self.state.open()
        for part in self.parts:
            for table in part.own_tables:
                table.load()
        self.access.open()
        self.transactions.check.open()
        self.popping.ordered_pops.set_alarms()

    def close(self) -> None:
        """Write all tables and close the store, if it is open."""
        if not self.state.is_open:
            return
        try:
            self.transactions.half_messages.stop()
            self.delayed.timer.stop()
            for part in self.parts:
                persist(part.own_tables)
        finally:
            self.state.close()

    # -- work

    async def start(self, ha_sockets: list[socket]) -> None:
        """Start deliveries, checks and timers, and register. When it returns, a client can send."""
        await self.cluster.replication.start(ha_sockets)
        self.delayed.levels.start()
        self.delayed.timer.start()
        self.transactions.check.start()
        # Requests are served already, and a name server may be slow.
        self._periodic_actions.start(self._periodic())
        await self.cluster.start()

    async def stop(self) -> None:
        """Unregister, and answer the held requests. The timer runs until `close`: it may be in the middle of a slot."""
        self._periodic_actions.stop()
        self.tables.stop()
        self.delayed.levels.stop()
        await self._stop_waiting()

    async def abandon(self) -> None:
        """End as a killed process does: no peer is notified, nothing is saved. The connections are closed already."""
        self._periodic_actions.stop()
        self.tables.stop()
        self.delayed.levels.stop()
        self.delayed.timer.stop(saves=False)
        self.transactions.half_messages.abandon()
        await self.cluster.registration.abandon()
        await self._stop_waiting()
        self.state.abandon()

    async def _stop_waiting(self) -> None:
        await self.transactions.check.stop()
        await self.cluster.stop()
        for _ in range(self.pulling.waiters.wake_all() + self.popping.stop()):
            await asyncio.sleep(0)

    def _periodic(self) -> Iterator[Periodic]:
        yield from self.state.periodic()
        for part in self.parts:
            yield from part.periodic()

    # -- between the parts

    def _arrived(self, topic: str, queue_id: int, arrivals: list[Arrival]) -> None:
        pulls, popping = self.pulling.waiters, self.popping
        if pulls.has_waiting(topic, queue_id) or popping.has_waiting:
            for arrival in arrivals:
                arrived = topic, queue_id, *arrival[:3]
                pulls.arrived(*arrived)
                popping.waiters.arrived(*arrived)
                popping.notification_waiters.arrived(*arrived)
        if topic == SCHEDULE_TOPIC:
            self.delayed.levels.arrived(queue_id, arrivals[0][1])  # the tags code is the due time
        elif topic == TIMER_TOPIC:
            self.delayed.timer.arrived(arrivals)

    def _is_awaited(self, topic: str, queue_id: int) -> bool:
        """Whether `_arrived` would do anything for a message of this queue."""
        return (
            self.pulling.waiters.has_waiting(topic, queue_id)
            or self.popping.has_waiting
            or topic == TIMER_TOPIC
            or (topic == SCHEDULE_TOPIC and self.delayed.levels.awaits(queue_id))
        )
