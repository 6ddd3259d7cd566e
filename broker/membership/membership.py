"""The part of a broker that keeps its clients: members of consumer and producer groups, and their queue locks."""

from collections.abc import Iterator

from ..filters.consumer_filters import ConsumerFilters
from ..network.dispatch import Peer
from ..state.broker_state import BrokerState
from ..state.part import Part
from ..time.periodic import Periodic
from .consumer_groups import ConsumerGroups
from .consumer_notices import ConsumerNotices
from .hints import MembershipHints
from .producer_groups import ProducerGroups
from .queue_locks import QueueLocks
from .request_modes import RequestModes

EXPIRY_SCAN_SECONDS = 10.0
NOTICE_SECONDS = 15.0
FILTER_SAVE_SECONDS = 10.0


class Membership(Part):
    """In memory, except the SQL92 filters and the request modes, which have files."""

    def __init__(self, state: BrokerState) -> None:
        super().__init__(state)
        config, now_ms = state.config, state.clock.now_ms
        self.notices = ConsumerNotices(config, state.timers.call_soon)
        self.filters = ConsumerFilters(config, now_ms)
        self.consumers = ConsumerGroups(
            self.notices.notify_change,
            is_5=config.is_5,
            expiry_ms=config.channel_expired_timeout,
            on_empty=self.filters.unregister,
        )
        self.producers = ProducerGroups(is_5=config.is_5, expiry_ms=config.channel_expired_timeout)
        self.locks = QueueLocks()
        self.hints = MembershipHints(state.topics)
        self.request_modes = RequestModes(state.folder, now_ms)
        self.own_tables = (self.filters, self.request_modes) if self.is_5 else (self.filters,)

    def connection_closed(self, connection: Peer) -> None:
        self.consumers.connection_closed(connection)
        self.producers.connection_closed(connection)

    def periodic(self) -> Iterator[Periodic]:
        now_ms, wall_ms = self.clock.now_ms, self.clock.wall_ms
        yield Periodic("notices", NOTICE_SECONDS, self.notices.flush)
        yield Periodic("consumers", EXPIRY_SCAN_SECONDS, lambda: self.consumers.expire(wall_ms()))
        yield Periodic("producers", EXPIRY_SCAN_SECONDS, lambda: self.producers.expire(wall_ms()))
        locks = self.locks
        yield Periodic("locks", EXPIRY_SCAN_SECONDS, lambda: locks.expire(now_ms()), locks.next_expiry_ms)
        yield Periodic("filters", FILTER_SAVE_SECONDS, lambda: self.tables.save(self.filters))
