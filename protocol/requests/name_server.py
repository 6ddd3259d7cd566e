"""Requests answered by the name server: routes, broker registration, key-value settings.

Route and topic lists are JSON bodies.
"""

from ..bodies.body import DataVersion, PropertiesText
from ..bodies.registration import (
    CompressedRegistration,
    RegisterBrokerBody,
    TopicConfigAndMappingSerializeWrapper,
)
from ..bodies.routes import ClusterInfo, GetBrokerMemberGroupResponseBody, KVTable, TopicList, TopicRouteData
from ..wire.schema import Int, Long, NoReply, Reply, Request, field, request


@request(100)
class PutKvConfig(Request[NoReply], frozen=True, kw_only=True):
    """Set a key of a namespace. `PutKVConfigRequestHeader`."""

    namespace: str
    key: str
    value: str


class GetKvConfigReply(Reply, frozen=True, kw_only=True):
    """The value of a key. `GetKVConfigResponseHeader`."""

    value: str | None = None


@request(101)
class GetKvConfig(Request[GetKvConfigReply], frozen=True, kw_only=True):
    """A key's value, QUERY_NOT_FOUND without one. `GetKVConfigRequestHeader`."""

    namespace: str
    key: str


@request(102)
class DeleteKvConfig(Request[NoReply], frozen=True, kw_only=True):
    """Remove a key, there or not. `DeleteKVConfigRequestHeader`."""

    namespace: str
    key: str


@request(219, "GET_KVLIST_BY_NAMESPACE")
class GetKvListByNamespace(Request[KVTable], frozen=True, kw_only=True):
    """All keys of a namespace; the reply's body is KVTable. `GetKVListByNamespaceRequestHeader`."""

    namespace: str


class RegisterBrokerReply(Reply, frozen=True, kw_only=True):
    """To a slave, its master. `RegisterBrokerResponseHeader`; the body is the KVTable of ordered topics."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


@request(
    103,
    body=RegisterBrokerBody,
    body_variants={
        "compressed=true": CompressedRegistration,
        "before V3_0_11": TopicConfigAndMappingSerializeWrapper,
    },
    reply_body=KVTable,
)
class RegisterBroker(Request[RegisterBrokerReply], frozen=True, kw_only=True):
    """A broker and its topics, every 30 s. `RegisterBrokerRequestHeader`; body RegisterBrokerBody.

    `body_crc32` is the CRC of the body as sent, 0 unchecked. `zone_name` stands beside the official header.
    """

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Long
    heartbeat_timeout_millis: Long | None = None
    enable_acting_master: bool | None = None
    compressed: bool = False
    body_crc32: Int = 0
    zone_name: str | None = field(name="__ZONE_NAME", default=None)


@request(104)
class UnregisterBroker(Request[NoReply], frozen=True, kw_only=True):
    """A broker leaves. `UnRegisterBrokerRequestHeader`."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


@request(105, "GET_ROUTEINFO_BY_TOPIC")
class GetRouteInfoByTopic(Request[TopicRouteData], frozen=True, kw_only=True):
    """Brokers and queues of a topic; the reply's body is TopicRouteData. `GetRouteInfoRequestHeader`.

    TOPIC_NOT_EXIST without a route. `accept_standard_json_only` asks for quoted keys whatever the version of the
    client. A zone is put beside the header and filters brokers when `zone_mode` is true.
    """

    topic: str
    accept_standard_json_only: bool | None = None
    logical: bool | None = field(name="lo", default=None)
    zone_name: str | None = field(name="__ZONE_NAME", default=None)
    zone_mode: bool | None = field(name="__ZONE_MODE", default=None)


@request(106)
class GetBrokerClusterInfo(Request[ClusterInfo], frozen=True, kw_only=True):
    """Every broker and cluster; the reply's body is ClusterInfo."""


class WipeWritePermOfBrokerReply(Reply, frozen=True, kw_only=True):
    """How many topics changed. `WipeWritePermOfBrokerResponseHeader`."""

    wipe_topic_count: Int


@request(205)
class WipeWritePermOfBroker(Request[WipeWritePermOfBrokerReply], frozen=True, kw_only=True):
    """Routes no longer offer this broker for writing. `WipeWritePermOfBrokerRequestHeader`."""

    broker_name: str


class AddWritePermOfBrokerReply(Reply, frozen=True, kw_only=True):
    """How many topics changed. `AddWritePermOfBrokerResponseHeader`."""

    add_topic_count: Int


@request(327)
class AddWritePermOfBroker(Request[AddWritePermOfBrokerReply], frozen=True, kw_only=True):
    """Undo `WipeWritePermOfBroker`. `AddWritePermOfBrokerRequestHeader`."""

    broker_name: str


@request(206, "GET_ALL_TOPIC_LIST_FROM_NAMESERVER")
class GetAllTopicListFromNameServer(Request[TopicList], frozen=True, kw_only=True):
    """Every topic with a route; the reply's body is TopicList."""


@request(216)
class DeleteTopicInNamesrv(Request[NoReply], frozen=True, kw_only=True):
    """Forget a topic's route, of one cluster if named. `DeleteTopicFromNamesrvRequestHeader`."""

    topic: str
    cluster_name: str | None = None


@request(217, only_in=5, body=TopicRouteData)
class RegisterTopicInNamesrv(Request[NoReply], frozen=True, kw_only=True):
    """Add a topic to the routes of known brokers. `RegisterTopicRequestHeader`; body TopicRouteData."""

    topic: str


@request(224)
class GetTopicsByCluster(Request[TopicList], frozen=True, kw_only=True):
    """Topics of a cluster; the reply's body is TopicList. `GetTopicsByClusterRequestHeader`."""

    cluster: str


@request(304)
class GetSystemTopicListFromNs(Request[TopicList], frozen=True, kw_only=True):
    """Names of clusters and brokers, which are topics too; the reply's body is TopicList."""


@request(311)
class GetUnitTopicList(Request[TopicList], frozen=True, kw_only=True):
    """Topics with the unit flag; the reply's body is TopicList."""


@request(312)
class GetHasUnitSubTopicList(Request[TopicList], frozen=True, kw_only=True):
    """Topics with the unit-subscription flag; the reply's body is TopicList."""


@request(313)
class GetHasUnitSubUnunitTopicList(Request[TopicList], frozen=True, kw_only=True):
    """Topics with the unit-subscription flag and without the unit flag; the reply's body is TopicList."""


@request(318, body=PropertiesText)
class UpdateNamesrvConfig(Request[NoReply], frozen=True, kw_only=True):
    """Change settings. Body: properties text, a `key=value` a line."""


@request(319)
class GetNamesrvConfig(Request[PropertiesText], frozen=True, kw_only=True):
    """The settings; the reply's body is properties text."""


class QueryDataVersionReply(Reply, frozen=True, kw_only=True):
    """Should the broker register its topics again? `QueryDataVersionResponseHeader`; body DataVersion if known."""

    changed: bool


@request(322, body=DataVersion, reply_body=DataVersion)
class QueryDataVersion(Request[QueryDataVersionReply], frozen=True, kw_only=True):
    """Is the topic table of this version known? Also a sign of life. `QueryDataVersionRequestHeader`.

    Body DataVersion.
    """

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


@request(901, only_in=5)
class GetBrokerMemberGroup(Request[GetBrokerMemberGroupResponseBody], frozen=True, kw_only=True):
    """Addresses of a broker's master and slaves; the reply's body is GetBrokerMemberGroupResponseBody.

    `GetBrokerMemberGroupRequestHeader`.
    """

    cluster_name: str
    broker_name: str


@request(904, only_in=5)
class BrokerHeartbeat(Request[NoReply], frozen=True, kw_only=True):
    """A sign of life between registrations, often one-way. `BrokerHeartbeatRequestHeader`.

    The fields after `broker_id` are for controllers.
    """

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Long | None = None
    epoch: Int | None = None
    max_offset: Long | None = None
    confirm_offset: Long | None = None
    heartbeat_timeout_millis: Long | None = field(name="heartbeatTimeoutMills", default=None)
    election_priority: Int | None = None


@request(905, only_in=5)
class NotifyMinBrokerIdChange(Request[NoReply], frozen=True, kw_only=True):
    """Name server to broker, one-way: another member has the smallest id. `NotifyMinBrokerIdChangeRequestHeader`."""

    min_broker_id: Long | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None
