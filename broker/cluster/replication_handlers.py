"""Requests about replication (5.x): its state (907), and addresses that master and slave exchange (906, 908).

Those by which slaves copy topics, groups and offsets are in `admin/`. Mirrors AdminBrokerProcessor.
"""

from pocketmq.protocol.bodies.replication import HARuntimeInfo
from pocketmq.protocol.requests.replication import (
    ExchangeBrokerHaInfo,
    ExchangeBrokerHaInfoReply,
    GetBrokerHaStatus,
    ResetMasterFlushOffset,
)

from ..network.dispatch import handles
from .cluster import Cluster


@handles(GetBrokerHaStatus)
def get_broker_ha_status(cluster: Cluster, request: GetBrokerHaStatus) -> HARuntimeInfo:
    """The slaves of a master, or the master of a slave."""
    if cluster.is_slave:
        return HARuntimeInfo(ha_client_runtime_info=cluster.replication_slave.runtime_info())
    replication = cluster.replication
    return HARuntimeInfo(
        master=True,
        master_commit_log_max_offset=cluster.store.log_end,
        in_sync_slave_nums=sum(replication.in_sync(slave) for slave in replication.slaves),
        ha_connection_info=[slave.runtime_info() for slave in replication.slaves],
    )


@handles(ExchangeBrokerHaInfo)
def exchange_broker_ha_info(cluster: Cluster, request: ExchangeBrokerHaInfo) -> ExchangeBrokerHaInfoReply:
    """Set the master's addresses on a slave; a master answers its own addresses."""
    if cluster.is_slave and request.master_ha_address is not None:
        cluster.replication_slave.given_address = request.master_ha_address
        cluster.metadata_sync.given_address = request.master_address
    if cluster.is_slave or request.master_ha_address is not None:
        return ExchangeBrokerHaInfoReply()
    return ExchangeBrokerHaInfoReply(
        master_ha_address=cluster.identity.ha_address,
        master_flush_offset=report.end if (report := cluster.store.recovery_report) is not None else -1,
        master_address=cluster.identity.address,
    )


@handles(ResetMasterFlushOffset)
def reset_master_flush_offset(cluster: Cluster, request: ResetMasterFlushOffset) -> None:
    """Sent by a tool to a slave. Our slave copies whatever its master sends, so this only sets the number that 907
    answers."""
    if cluster.is_slave:
        cluster.replication_slave.master_flushed_offset = request.master_flush_offset
