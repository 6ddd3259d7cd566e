"""The part of a broker that stores what producers send."""

from pocketmq.core.properties import Changes
from pocketmq.protocol.message import properties as names

from ..cluster.cluster import Cluster
from ..config.broker_config import BrokerConfig
from ..delayed.delayed import Delayed
from ..membership.membership import Membership
from ..state.broker_state import BrokerState
from ..state.part import Part
from ..transactions.transactions import Transactions


class Sending(Part):
    """Everything a send uses, as attributes of this object: it is the hottest path."""

    def __init__(
        self,
        state: BrokerState,
        delayed: Delayed,
        transactions: Transactions,
        cluster: Cluster,
        membership: Membership,
    ) -> None:
        super().__init__(state)
        self.store_host = state.identity.store_host
        self.unique_ids = state.unique_ids
        self.random = state.random
        self.delayed = delayed
        self.transactions = transactions
        self.durable_log = cluster.durable_log
        self.locks = membership.locks
        self.producers = membership.producers
        self._added: Changes = ()
        self._added_with: object = None
        self.waiting_sends = 0
        """Sends that are stored but not answered yet: they wait for the disk, for slaves, or for the topic table."""

    @property
    def additions(self) -> Changes:
        """What the broker adds to the properties of a message, with the settings of now."""
        if self._added_with is not self.state.settings_version:
            self._added, self._added_with = _list_additions(self.config), self.state.settings_version
        return self._added


def _list_additions(config: BrokerConfig) -> Changes:
    """What the broker adds to the properties of a message that is not part of a batch, and takes away."""
    cluster = (names.CLUSTER, config.broker_cluster_name)
    if not config.is_5:
        # 4.9 encodes the properties without WAIT and then adds WAIT again: a delayed message, which is encoded a second
        # time, has it as the last one of its hash bucket.
        return (names.WAIT, None, *cluster)
    return (
        *(names.MSG_REGION, config.region_id),
        *(names.TRACE_ON, "true" if config.trace_on else "false"),
        *(names.POP_CK, None),
        *cluster,
    )
