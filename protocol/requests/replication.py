"""Replication: what slaves ask their master, what tools ask about it, and the controller that elects masters.

The log itself has a protocol of its own on the HA port (`wire/ha_stream.py`). Slaves fetch topics and groups with the
requests of tools (21, 201). The controller is a separate official process: name servers and brokers here answer its
requests with REQUEST_CODE_NOT_SUPPORTED. They are declared so that a recorded exchange can be named and read.
"""

from ..bodies.body import PropertiesText, Text
from ..bodies.broker import TimerCheckpointBytes, TimerMetricsSerializeWrapper
from ..bodies.offsets import ConsumerOffsetSerializeWrapper
from ..bodies.replication import (
    BrokerReplicasInfo,
    ElectMasterResponseBody,
    EpochEntryCache,
    HARuntimeInfo,
    SyncStateSet,
)
from ..wire.schema import Int, Long, NoReply, Reply, Request, request


@request(43)
class GetAllConsumerOffset(Request[ConsumerOffsetSerializeWrapper], frozen=True, kw_only=True):
    """All committed offsets."""


@request(45)
class GetAllDelayOffset(Request[Text], frozen=True, kw_only=True):
    """Offsets of the delay levels: the text of the file."""


@request(60, only_in=5)
class GetTimerCheckPoint(Request[TimerCheckpointBytes], frozen=True, kw_only=True):
    """The timer's checkpoint."""


@request(61, only_in=5)
class GetTimerMetrics(Request[TimerMetricsSerializeWrapper], frozen=True, kw_only=True):
    """The number of delayed messages of each topic."""


class ExchangeBrokerHaInfoReply(Reply, frozen=True, kw_only=True):
    """The master's side of the exchange. `ExchangeHAInfoResponseHeader`."""

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@request(906, only_in=5)
class ExchangeBrokerHaInfo(Request[ExchangeBrokerHaInfoReply], frozen=True, kw_only=True):
    """Without an address: where is the master's log? With an address: the master's log is here.
    `ExchangeHAInfoRequestHeader`.
    """

    master_ha_address: str | None = None
    master_flush_offset: Long | None = None
    master_address: str | None = None


@request(907, only_in=5)
class GetBrokerHaStatus(Request[HARuntimeInfo], frozen=True, kw_only=True):
    """The state of replication."""


@request(908, only_in=5)
class ResetMasterFlushOffset(Request[NoReply], frozen=True, kw_only=True):
    """Tool to slave: use this as the master's flushed offset. `ResetMasterFlushOffsetHeader`."""

    master_flush_offset: Long


class ControllerAlterSyncStateSetReply(Reply, frozen=True, kw_only=True):
    """Epoch of the set as it is now. `AlterSyncStateSetResponseHeader`."""

    new_sync_state_set_epoch: Int = 0


@request(1001, only_in=5, body=SyncStateSet, reply_body=SyncStateSet)
class ControllerAlterSyncStateSet(Request[ControllerAlterSyncStateSetReply], frozen=True, kw_only=True):
    """A master reports which slaves are in sync. `AlterSyncStateSetRequestHeader`.

    `invoke_time` in ms; the official class sets the current time.
    """

    broker_name: str | None = None
    master_broker_id: Long | None = None
    master_epoch: Int | None = None
    invoke_time: Long = 0


class ControllerElectMasterReply(Reply, frozen=True, kw_only=True):
    """The elected master. `ElectMasterResponseHeader`."""

    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None


@request(1002, only_in=5, reply_body=ElectMasterResponseBody)
class ControllerElectMaster(Request[ControllerElectMasterReply], frozen=True, kw_only=True):
    """Choose a master, the named broker if `designate_elect`. `ElectMasterRequestHeader`."""

    cluster_name: str = ""
    broker_name: str = ""
    broker_id: Long = -1
    designate_elect: bool = False
    invoke_time: Long | None = None


class ControllerRegisterBrokerReply(Reply, frozen=True, kw_only=True):
    """The group of the broker. `RegisterBrokerToControllerResponseHeader`."""

    cluster_name: str | None = None
    broker_name: str | None = None
    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None


@request(1003, only_in=5, reply_body=SyncStateSet)
class ControllerRegisterBroker(Request[ControllerRegisterBrokerReply], frozen=True, kw_only=True):
    """A broker with its id takes part. `RegisterBrokerToControllerRequestHeader`."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: Long | None = None
    broker_address: str | None = None
    invoke_time: Long = 0


class ControllerGetReplicaInfoReply(Reply, frozen=True, kw_only=True):
    """The master. `GetReplicaInfoResponseHeader`."""

    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None


@request(1004, only_in=5, reply_body=SyncStateSet)
class ControllerGetReplicaInfo(Request[ControllerGetReplicaInfoReply], frozen=True, kw_only=True):
    """Master and slaves of a broker name. `GetReplicaInfoRequestHeader`."""

    broker_name: str | None = None


class ControllerGetMetadataInfoReply(Reply, frozen=True, kw_only=True):
    """The controllers themselves; `peers` joined by `;`. `GetMetaDataResponseHeader`."""

    group: str | None = None
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None
    is_leader: bool = False
    peers: str | None = None


@request(1005, only_in=5)
class ControllerGetMetadataInfo(Request[ControllerGetMetadataInfoReply], frozen=True, kw_only=True):
    """Which controller leads."""


@request(1006, only_in=5, body=list[str])
class ControllerGetSyncStateData(Request[BrokerReplicasInfo], frozen=True, kw_only=True):
    """The state of the broker names in the body."""


@request(1007, only_in=5)
class GetBrokerEpochCache(Request[EpochEntryCache], frozen=True, kw_only=True):
    """To a broker: the epochs of its masters."""


@request(1008, only_in=5, body=SyncStateSet)
class NotifyBrokerRoleChanged(Request[NoReply], frozen=True, kw_only=True):
    """Controller to broker, one-way: a master was elected. `NotifyBrokerRoleChangedRequestHeader`."""

    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None
    master_broker_id: Long | None = None


@request(1009, only_in=5, body=PropertiesText)
class UpdateControllerConfig(Request[NoReply], frozen=True, kw_only=True):
    """Change settings."""


@request(1010, only_in=5)
class GetControllerConfig(Request[PropertiesText], frozen=True, kw_only=True):
    """The settings."""


@request(1011, only_in=5)
class CleanBrokerData(Request[NoReply], frozen=True, kw_only=True):
    """Delete brokers, those with the ids listed (joined by `;`). `CleanControllerBrokerDataRequestHeader`."""

    cluster_name: str | None = None
    broker_name: str
    broker_controller_ids_to_clean: str | None = None
    is_clean_living_broker: bool = False
    invoke_time: Long = 0


class ControllerGetNextBrokerIdReply(Reply, frozen=True, kw_only=True):
    """The next free id. `GetNextBrokerIdResponseHeader`."""

    cluster_name: str | None = None
    broker_name: str | None = None
    next_broker_id: Long | None = None


@request(1012, only_in=5)
class ControllerGetNextBrokerId(Request[ControllerGetNextBrokerIdReply], frozen=True, kw_only=True):
    """A broker without an id asks for one. `GetNextBrokerIdRequestHeader`."""

    cluster_name: str | None = None
    broker_name: str | None = None


class ControllerApplyBrokerIdReply(Reply, frozen=True, kw_only=True):
    """The broker that now has the id. `ApplyBrokerIdResponseHeader`."""

    cluster_name: str | None = None
    broker_name: str | None = None


@request(1013, only_in=5)
class ControllerApplyBrokerId(Request[ControllerApplyBrokerIdReply], frozen=True, kw_only=True):
    """Take an id for good; the check code proves it later. `ApplyBrokerIdRequestHeader`."""

    cluster_name: str | None = None
    broker_name: str | None = None
    applied_broker_id: Long | None = None
    register_check_code: str | None = None


@request(1014, only_in=5)
class BrokerCloseChannelRequest(Request[NoReply], frozen=True, kw_only=True):
    """Between controllers on JRaft: a broker's connection closed. The official class has the same name."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: Long | None = None


@request(1015, only_in=5)
class CheckNotActiveBrokerRequest(Request[NoReply], frozen=True, kw_only=True):
    """Between controllers on JRaft: which brokers were silent at this time (ms)? Same official class name."""

    check_time_millis: Long | None = None


@request(1016, only_in=5)
class GetBrokerLiveInfoRequest(Request[NoReply], frozen=True, kw_only=True):
    """Between controllers on JRaft: when was a broker last heard? The official class has the same name."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: Long | None = None


@request(1017, only_in=5)
class GetSyncStateDataRequest(Request[NoReply], frozen=True, kw_only=True):
    """Between controllers on JRaft: brokers without a live master. The official class has the same name."""

    invoke_time: Long | None = None


@request(1018, only_in=5)
class RaftBrokerHeartBeatEventRequest(Request[NoReply], frozen=True, kw_only=True):
    """Between controllers on JRaft: the keep-alive of a broker. The official class has the same name."""

    cluster_name_identity_info: str | None = None
    broker_name_identity_info: str | None = None
    broker_id_identity_info: Long | None = None
    broker_name: str | None = None
    broker_addr: str | None = None
    heartbeat_timeout_millis: Long | None = None
    broker_id: Long | None = None
    last_update_timestamp: Long | None = None
    epoch: Int | None = None
    max_offset: Long | None = None
    confirm_offset: Long | None = None
    election_priority: Int | None = None
