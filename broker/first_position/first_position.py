"""The part of a broker that answers at which offset a group continues or starts reading."""

from collections.abc import Iterator

from ..membership.membership import Membership
from ..state.broker_state import BrokerState
from ..state.part import Part
from ..time.periodic import Periodic
from .broadcast_offsets import BroadcastOffsets
from .skipped_messages import SkippedMessages

BROADCAST_SECONDS = 5.0


class FirstPosition(Part):
    def __init__(self, state: BrokerState, membership: Membership) -> None:
        super().__init__(state)
        self.broadcasts = BroadcastOffsets(state, membership.consumers)
        self.skipped = SkippedMessages(state)

    def periodic(self) -> Iterator[Periodic]:
        expire, next_due = self.broadcasts.expire, self.broadcasts.next_expiry_ms
        yield Periodic("broadcasts", BROADCAST_SECONDS, expire, next_due, also_in_real_time=True)
