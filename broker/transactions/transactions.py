"""The part of a broker that holds half messages until their transaction ends."""

from collections.abc import Iterator

from ..delayed.delayed import Delayed
from ..membership.membership import Membership
from ..state.broker_state import BrokerState
from ..state.part import Part
from ..tables.metric_table import MetricTable
from ..time.periodic import Periodic
from .ends import Ends
from .half_messages import HalfMessages
from .transaction_check import TransactionCheck


class Transactions(Part):
    def __init__(self, state: BrokerState, delayed: Delayed, membership: Membership) -> None:
        super().__init__(state)
        self.open_count = MetricTable(state.folder, state.clock.now_ms, "transactionCount")
        """Number of half messages whose transaction has not ended, by their real topic."""
        self.half_messages = HalfMessages(state, self.open_count)
        self.ends = Ends(state, delayed, self.half_messages)
        self.check = TransactionCheck(state, self.half_messages, membership.producers)
        self.own_tables = (self.open_count,) if self.is_5 else ()

    def periodic(self) -> Iterator[Periodic]:
        yield Periodic(
            "open transactions",
            lambda: self.config.transaction_metric_flush_interval / 1000,
            lambda: self.tables.save(self.open_count),
        )
