"""The part of a broker that holds half messages until their transaction ends."""

from ..delayed.delayed import Delayed
from ..membership.membership import Membership
from ..state.broker_state import BrokerState
from ..state.part import Part
from ..tables.json_table import JsonTable
from ..tables.metric_table import MetricTable
from ..time.periodic import Periodic
from .ends import Ends
from .half_messages import HalfMessages
from .transaction_check import TransactionCheck


class Transactions(Part):
    """`start` and `stop` mirror each other; `open` is called once, with the store."""

    def __init__(self, state: BrokerState, delayed: Delayed, membership: Membership) -> None:
        super().__init__(state)
        self.open_count = MetricTable(state.folder, state.clock.now_ms, "transactionCount")
        """Number of half messages whose transaction has not ended, by their real topic."""
        self.half_messages = HalfMessages(state, self.open_count)
        self.ends = Ends(state, delayed, self.half_messages)
        self.check = TransactionCheck(state, self.half_messages, membership.producers)

    @property
    def own_tables(self) -> tuple[JsonTable, ...]:
        return (self.open_count,) if self.config.is_5 else ()

    def open(self) -> None:
        self.check.open()

    def start(self) -> None:
        self.check.start()

    async def stop(self) -> None:
        await self.check.stop()

    def close(self) -> None:
        """Write the offsets of half messages that have ended."""
        self.half_messages.stop()

    def periodic(self) -> tuple[Periodic, ...]:
        return (
            Periodic(
                "open transactions",
                lambda: self.config.transaction_metric_flush_interval / 1000,
                lambda: self.state.tables.save(self.open_count),
            ),
        )
