"""The part of a broker that stores what producers send."""

from ..cluster.cluster import Cluster
from ..delayed.delayed import Delayed
from ..membership.membership import Membership
from ..state.broker_state import BrokerState
from ..storing.batch_templates import BatchTemplates
from ..storing.log_waiters import LogWaiters
from ..transactions.transactions import Transactions


class Sending:
    """Everything a send uses, as attributes of this object: it is the hottest path."""

    def __init__(
        self,
        state: BrokerState,
        delayed: Delayed,
        transactions: Transactions,
        cluster: Cluster,
        membership: Membership,
    ) -> None:
        self.config = state.config
        self.is_5 = state.config.is_5
        self.is_slave = state.config.is_slave
        self.clock = state.clock
        self.store = state.store
        self.topics = state.topics
        self.groups = state.groups
        self.statistics = state.statistics
        self.tables = state.tables
        self.store_host = state.identity.store_host
        self.unique_ids = state.unique_ids
        self.random = state.random
        self.batch_templates = BatchTemplates(state.store, state.identity.store_host)
        self.delayed = delayed
        self.transactions = transactions
        self.replication = cluster.replication
        self.locks = membership.locks
        self.producers = membership.producers
        self.disk_waiters = LogWaiters(
            lambda: state.store.flushed_position,
            lambda: state.config.store.sync_flush_timeout,
            lambda: state.store.admission.disk_failure is not None,
        )
        state.store.on_flushed = self.disk_waiters.look
        self.waiting_sends = 0
        """Sends that are stored but not answered yet: they wait for the disk, for slaves, or for the topic table."""
