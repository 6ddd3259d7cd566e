"""Requests to the name server: routes, broker registration, key-value settings."""

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
    """The value of a key; QUERY_NOT_FOUND if it has none. `GetKVConfigRequestHeader`."""

    namespace: str
    key: str


@request(102)
class DeleteKvConfig(Request[NoReply], frozen=True, kw_only=True):
    """Remove a key, whether it exists or not. `DeleteKVConfigRequestHeader`."""

    namespace: str
    key: str


@request(219, "GET_KVLIST_BY_NAMESPACE")
class GetKvListByNamespace(Request[KVTable], frozen=True, kw_only=True):
    """All keys of a namespace. `GetKVListByNamespaceRequestHeader`."""

    namespace: str


class RegisterBrokerReply(Reply, frozen=True, kw_only=True):
    """For a slave: its master. `RegisterBrokerResponseHeader`. The body names the ordered topics."""

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
    """A broker and its topics, every 30 s. `RegisterBrokerRequestHeader`.

    `body_crc32` is the CRC of the body as sent; 0 is not checked. `zone_name` is not part of the official header
    class.
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
    """Brokers and queues of a topic; TOPIC_NOT_EXIST without a route. `GetRouteInfoRequestHeader`.

    `accept_standard_json_only` asks for quoted keys whatever the version of the client is. The zone is not part of
    the header class; it filters brokers if `zone_mode` is true.
    """

    topic: str
    accept_standard_json_only: bool | None = None
    logical: bool | None = field(name="lo", default=None)
    zone_name: str | None = field(name="__ZONE_NAME", default=None)
    zone_mode: bool | None = field(name="__ZONE_MODE", default=None)


@request(106)
class GetBrokerClusterInfo(Request[ClusterInfo], frozen=True, kw_only=True):
    """All brokers and clusters."""


class WipeWritePermOfBrokerReply(Reply, frozen=True, kw_only=True):
    """How many topics changed. `WipeWritePermOfBrokerResponseHeader`."""

    wipe_topic_count: Int


@request(205)
class WipeWritePermOfBroker(Request[WipeWritePermOfBrokerReply], frozen=True, kw_only=True):
    """Stop offering this broker for writing in routes. `WipeWritePermOfBrokerRequestHeader`."""

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
    """All topics that have a route."""


@request(216)
class DeleteTopicInNamesrv(Request[NoReply], frozen=True, kw_only=True):
    """Delete the route of a topic, in one cluster if named. `DeleteTopicFromNamesrvRequestHeader`."""

    topic: str
    cluster_name: str | None = None


@request(217, only_in=5, body=TopicRouteData)
class RegisterTopicInNamesrv(Request[NoReply], frozen=True, kw_only=True):
    """Add a topic to the routes of known brokers. `RegisterTopicRequestHeader`."""

    topic: str


@request(224)
class GetTopicsByCluster(Request[TopicList], frozen=True, kw_only=True):
    """Topics of a cluster. `GetTopicsByClusterRequestHeader`."""

    cluster: str


@request(304)
class GetSystemTopicListFromNs(Request[TopicList], frozen=True, kw_only=True):
    """Names of clusters and brokers, which are topics, too."""


@request(311)
class GetUnitTopicList(Request[TopicList], frozen=True, kw_only=True):
    """Topics with the unit flag."""


@request(312)
class GetHasUnitSubTopicList(Request[TopicList], frozen=True, kw_only=True):
    """Topics with the unit-subscription flag."""


@request(313)
class GetHasUnitSubUnunitTopicList(Request[TopicList], frozen=True, kw_only=True):
    """Topics with the unit-subscription flag and without the unit flag."""


@request(318, body=PropertiesText)
class UpdateNamesrvConfig(Request[NoReply], frozen=True, kw_only=True):
    """Change settings."""


@request(319)
class GetNamesrvConfig(Request[PropertiesText], frozen=True, kw_only=True):
    """The settings."""


class QueryDataVersionReply(Reply, frozen=True, kw_only=True):
    """Must the broker register its topics again? `QueryDataVersionResponseHeader`. The body is absent if the name
    server knows no version.
    """

    changed: bool


@request(322, body=DataVersion, reply_body=DataVersion)
class QueryDataVersion(Request[QueryDataVersionReply], frozen=True, kw_only=True):
    """Does the name server know this version of the topic table? Also a keep-alive. `QueryDataVersionRequestHeader`."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


@request(901, only_in=5)
class GetBrokerMemberGroup(Request[GetBrokerMemberGroupResponseBody], frozen=True, kw_only=True):
    """Addresses of a broker's master and slaves. `GetBrokerMemberGroupRequestHeader`."""

    cluster_name: str
    broker_name: str


@request(904, only_in=5)
class BrokerHeartbeat(Request[NoReply], frozen=True, kw_only=True):
    """A keep-alive between registrations, often one-way. `BrokerHeartbeatRequestHeader`.

    The fields behind `broker_id` are for controllers.
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
    """Name server to broker, one-way: the smallest id of the group changed. `NotifyMinBrokerIdChangeRequestHeader`."""

    min_broker_id: Long | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None
