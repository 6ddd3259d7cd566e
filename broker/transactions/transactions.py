"""The part of a broker that holds half messages until their transaction ends."""

from pocketmq.protocol.requests.send import EndTransaction

from ..delayed.delayed import Delayed
from ..membership.membership import Membership
from ..state.broker_state import BrokerState
from ..tables.json_table import JsonTable
from ..tables.metric_table import MetricTable
from ..time.periodic import Periodic
from .end_plans import PlannedHalf
from .half_messages import HalfMessages
from .transaction_check import TransactionCheck


class Transactions:
    """`start` and `stop` mirror each other."""

    def __init__(self, state: BrokerState, delayed: Delayed, membership: Membership) -> None:
        self.state = state
        self.config = state.config
        self.clock = state.clock
        self.store = state.store
        self.open_count = MetricTable(state.folder, state.clock.now_ms, "transactionCount")
        """Number of half messages whose transaction has not ended, by their real topic."""
        self.half_messages = HalfMessages(state, delayed, self.open_count)
        self.check = TransactionCheck(state, self.half_messages, membership.producers)

    @property
    def own_tables(self) -> tuple[JsonTable, ...]:
        return (self.open_count,) if self.config.is_5 else ()

    def planned_half(self, request: EndTransaction) -> PlannedHalf | None:
        """The half message of a request, if it has a plan and matches the request: nothing is left to check."""
        position = request.commit_log_offset
        record = self.store.read_record(position) if position >= 0 else None
        half = None if record is None else self.half_messages.plans.find(record)
        if (
            half is None
            or half.plan.group != request.producer_group
            or half.parts.queue_offset != request.tran_state_table_offset
            or half.parts.position != position
        ):
            return None
        return half

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
