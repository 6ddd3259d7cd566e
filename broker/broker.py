"""Everything a broker handler may touch, in one place: the first argument of each.

`Broker` holds the parts and starts nothing; `node.py` builds it, starts it and stops it. All of it belongs to
the event loop's thread.
"""

from typing import TYPE_CHECKING

from pocketmq.protocol.message.unique_id import UniqueIdMaker
from pocketmq.store.clock import Clock
from pocketmq.store.message_store import MessageStore
from pocketmq.store.retention import Retention
from pocketmq.store.tables.delay_table import DelayTable
from pocketmq.store.tables.group_table import GroupTable
from pocketmq.store.tables.metric_table import MetricTable
from pocketmq.store.tables.offset_table import OffsetTable
from pocketmq.store.tables.topic_table import TopicTable

if TYPE_CHECKING:
    from .access.plain_acl import PlainAcl
    from .access.user_table import AclTable, UserTable
    from .cluster.metadata_sync import MetadataSync
    from .cluster.registration import Registration
    from .cluster.replication_master import ReplicationMaster
    from .cluster.replication_slave import ReplicationSlave
    from .config.broker_config import BrokerConfig
    from .delayed.delayed_messages import DelayedMessages
    from .delayed.timer_messages import TimedMessages
    from .filters.consumer_filters import ConsumerFilters
    from .first_position.broadcast_offsets import BroadcastOffsets
    from .membership.consumer_groups import ConsumerGroups
    from .membership.consumer_notices import ConsumerNotices
    from .membership.producer_groups import ProducerGroups
    from .membership.queue_locks import QueueLocks
    from .membership.request_modes import RequestModes
    from .network.role import Guard
    from .network.server import Server
    from .pop.ordered_pops import OrderedPops
    from .pop.pop_waiters import PopWaiters
    from .pop.popping import QueueAlarms
    from .pop.revive import Revive
    from .pulling.pull_waiters import PullWaiters
    from .state.statistics import Statistics
    from .state.table_saver import Rhythm
    from .transactions.half_messages import HalfMessages
    from .transactions.transaction_check import TransactionCheck


class Broker:
    """The parts of one broker (what `BrokerController` is to the official one)."""

    config: "BrokerConfig"
    clock: Clock
    store: MessageStore
    retention: Retention
    topics: TopicTable
    groups: GroupTable
    offsets: OffsetTable
    delays: DelayTable
    notices: "ConsumerNotices"
    filters: "ConsumerFilters"
    consumers: "ConsumerGroups"
    producers: "ProducerGroups"
    waiters: "PullWaiters"
    pop_waiters: "PopWaiters"
    notification_waiters: "PopWaiters"
    ordered_pops: "OrderedPops"
    request_modes: "RequestModes"
    queue_alarms: "QueueAlarms"
    revive: "Revive"
    locks: "QueueLocks"
    broadcasts: "BroadcastOffsets"
    statistics: "Statistics"
    delayed: "DelayedMessages"
    timed: "TimedMessages"
    half_messages: "HalfMessages"
    transaction_check: "TransactionCheck"
    open_transactions: MetricTable
    """Half messages nobody has ended, by the topic they are meant for."""
    registration: "Registration"
    replication: "ReplicationMaster"
    master_log: "ReplicationSlave"
    """Follows the master's log; idle unless this broker is a slave."""
    metadata_sync: "MetadataSync"
    rhythm: "Rhythm"
    users: "UserTable"
    acls: "AclTable"
    plain_acl: "PlainAcl | None"
    """With aclEnable."""
    guard: "Guard | None"
    """What every request passes first; `None` where everybody may do everything."""
    server: "Server"
    address: str
    """`host:port` told to clients (brokerIP1 and the listening port)."""
    store_host: bytes
    """The address packed as records carry it: IP and port."""
    boot_time_ms: int
    _pops: int = -1
    waiting_sends: int = 0
    """Sends that are stored and not answered yet: the disk, slaves or a topic's file are waited for."""
    unique_ids: UniqueIdMaker
    """For messages whose sender gave no UNIQ_KEY."""

    def next_revive_queue(self) -> int:
        """The revive queues are used in turn, one for each pop."""
        self._pops = (self._pops + 1) % self.config.revive_queue_num
        return self._pops

    def queue_freed(self, topic: str, group: str, queue_id: int) -> None:
        """A queue popped in order may go on: wake who waits for it."""
        for waiters in (self.pop_waiters, self.notification_waiters):
            for place in (-1, queue_id):
                waiters.wake(topic, group, place)

    @property
    def is_emulating_4(self) -> bool:
        """True where the 4.9 line's answers are wanted."""
        return self.config.emulate == 4
