"""The part of a broker that connects it with name servers, its slaves and its master."""

from ..delayed.delayed import Delayed
from ..membership.membership import Membership
from ..state.broker_state import BrokerState
from ..state.part import Part
from .durable_log import DurableLog
from .metadata_sync import MetadataSync
from .name_server_link import Connect
from .registration import Registration
from .replication_master import ReplicationMaster
from .replication_slave import ReplicationSlave


class Cluster(Part):
    """`start` and `stop` mirror each other."""

    def __init__(
        self, state: BrokerState, delayed: Delayed, membership: Membership, connect: Connect
    ) -> None:
        super().__init__(state)
        self.registration = Registration(state, connect)
        self.replication = ReplicationMaster(state)
        self.durable_log = DurableLog(state, self.replication)
        self.replication_slave = ReplicationSlave(state, self.registration)
        self.metadata_sync = MetadataSync(
            state, self.registration, delayed.timer, membership.request_modes, connect
        )

    async def start(self) -> None:
        """Register at the name servers; a slave starts to copy its master."""
        await self.registration.start()
        self.replication_slave.start()
        self.metadata_sync.start()

    async def stop(self) -> None:
        """The HA port is closed even if an earlier step fails."""
        try:
            await self.metadata_sync.stop()
            await self.replication_slave.stop()
            await self.registration.stop()
        finally:
            await self.replication.stop()
