"""The requests to the name server: registrations, routes, lists, key-value settings, and its own settings.

Mirrors `DefaultRequestProcessor` and `ClientRequestProcessor`.
"""

import logging
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.registration import (
    RegisterBrokerBody,
    TopicConfigAndMappingSerializeWrapper,
    UndecodedRegistration,
    decode_compressed_registration,
    decode_topic,
)
from pocketmq.protocol.bodies.routes import (
    BrokerMemberGroup,
    ClusterInfo,
    GetBrokerMemberGroupResponseBody,
    KVTable,
    QueueData,
    TopicList,
    TopicRouteData,
)
from pocketmq.protocol.languages import V3_0_11
from pocketmq.protocol.message.flags import PERM_READ, PERM_WRITE, TOPIC_UNIT, TOPIC_UNIT_SUB
from pocketmq.protocol.message.record import body_crc
from pocketmq.protocol.requests.name_server import (
    AddWritePermOfBroker,
    AddWritePermOfBrokerReply,
    BrokerHeartbeat,
    DeleteKvConfig,
    DeleteTopicInNamesrv,
    GetAllTopicListFromNameServer,
    GetBrokerClusterInfo,
    GetBrokerMemberGroup,
    GetHasUnitSubTopicList,
    GetHasUnitSubUnunitTopicList,
    GetKvConfig,
    GetKvConfigReply,
    GetKvListByNamespace,
    GetNamesrvConfig,
    GetRouteInfoByTopic,
    GetSystemTopicListFromNs,
    GetTopicsByCluster,
    GetUnitTopicList,
    PutKvConfig,
    QueryDataVersion,
    QueryDataVersionReply,
    RegisterBroker,
    RegisterTopicInNamesrv,
    UnregisterBroker,
    UpdateNamesrvConfig,
    WipeWritePermOfBroker,
    WipeWritePermOfBrokerReply,
)
from pocketmq.protocol.text import fastjson
from pocketmq.protocol.wire.command import RawBody
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..config import changes
from ..config import keys as config_keys
from ..errors import Refusal, faq
from ..network.dispatch import NAME_SERVER, Answer, Call, CallWithBody
from ..time.slices import encode_json, in_slices
from . import topic_routes
from .kv_config import ORDER_TOPIC_CONFIG
from .name_server import NameServer
from .route_table import without_write

_log = logging.getLogger("pocketmq.name_server")

# -- brokers


@NAME_SERVER.handles(RegisterBroker)
def register_broker(
    name_server: NameServer, request: RegisterBroker, call: Call
) -> Answer | Coroutine[Any, Any, Answer]:
    """Registers at once: a route that is asked for next has the topics. Only a long registration takes turns."""
    if request.body_crc32 and request.body_crc32 != body_crc(call.body or b""):
        raise Refusal(ResponseCode.SYSTEM_ERROR, "crc32 not match")
    body = call.body or b""
    is_plain = call.command.version >= V3_0_11 and not request.compressed
    if is_plain and len(body) > fastjson.MAX_REQUEST_BYTES:
        return _register_in_slices(name_server, request, call, body)
    return _register(name_server, request, call, _registration(request, call))


def _register(
    name_server: NameServer, request: RegisterBroker, call: Call, registration: RegisterBrokerBody
) -> Answer:
    filter_servers = registration.filter_server_list if call.command.version >= V3_0_11 else None
    wrapper = registration.topic_config_serialize_wrapper
    reply = name_server.routes.register(request, wrapper, filter_servers, call.connection)
    ordered = None
    if not name_server.is_5 or name_server.config.return_order_topic_config_to_broker:
        ordered = name_server.kv.list(ORDER_TOPIC_CONFIG)
    return Answer(reply=reply, body=None if ordered is None else KVTable(table=ordered).encode())


async def _register_in_slices(
    name_server: NameServer, request: RegisterBroker, call: Call, body: RawBody
) -> Answer:
    long = fastjson.decode_long(body, UndecodedRegistration)
    texts = long.topic_config_serialize_wrapper.topic_config_table.items()
    topics = {topic: decode_topic(text) async for topic, text in in_slices(texts)}
    return _register(name_server, request, call, long.with_topics(topics))


def _registration(request: RegisterBroker, call: Call) -> RegisterBrokerBody:
    """Topics and filter servers of a 103; a missing body means no topics."""
    if not call.body:
        return RegisterBrokerBody()
    if call.command.version < V3_0_11:
        wrapper = TopicConfigAndMappingSerializeWrapper.decode(call.body)
        return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper)
    if request.compressed:
        return decode_compressed_registration(bytes(call.body), call.command.version)
    return RegisterBrokerBody.decode(call.body)


@NAME_SERVER.handles(UnregisterBroker)
def unregister_broker(name_server: NameServer, request: UnregisterBroker) -> None:
    name_server.routes.unregister(
        request.cluster_name, request.broker_addr, request.broker_name, request.broker_id
    )


@NAME_SERVER.handles(QueryDataVersion)
def query_data_version(name_server: NameServer, request: QueryDataVersion, call: Call) -> Answer:
    routes = name_server.routes
    cluster, address = request.cluster_name, request.broker_addr
    version = fastjson.decode(call.body, DataVersion) if call.body else None
    if version is None and not name_server.is_5:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "BodyError: the data version is missing")
    changed = routes.is_changed(cluster, address, version)
    if name_server.is_5 or not changed:
        routes.touch(cluster, address)
    known: Any = routes.known_version(cluster, address)
    if known is not None and not name_server.is_5:  # 4.x has no state version
        known = {"counter": known.counter, "timestamp": known.timestamp}
    body = None if known is None else fastjson.dumps(known)
    return Answer(reply=QueryDataVersionReply(changed=changed), body=body)


@NAME_SERVER.handles(BrokerHeartbeat)
def broker_heartbeat(name_server: NameServer, request: BrokerHeartbeat) -> None:
    name_server.routes.touch(request.cluster_name, request.broker_addr)


@NAME_SERVER.handles(GetBrokerMemberGroup)
def get_broker_member_group(name_server: NameServer, request: GetBrokerMemberGroup) -> Answer:
    group = name_server.routes.brokers.get(request.broker_name)
    members = BrokerMemberGroup(
        cluster=request.cluster_name,
        broker_name=request.broker_name,
        broker_addrs=(group.broker_addrs or {}) if group is not None else {},
    )
    body = GetBrokerMemberGroupResponseBody(broker_member_group=members).encode()
    return Answer(remark="not set any response code", body=body)


@NAME_SERVER.handles(WipeWritePermOfBroker)
async def wipe_write_perm_of_broker(
    name_server: NameServer, request: WipeWritePermOfBroker
) -> WipeWritePermOfBrokerReply:
    count = await name_server.routes.change_permissions(request.broker_name, without_write)
    _log.info("write permission of %s wiped in %d topics", request.broker_name, count)
    return WipeWritePermOfBrokerReply(wipe_topic_count=count)


@NAME_SERVER.handles(AddWritePermOfBroker)
async def add_write_perm_of_broker(
    name_server: NameServer, request: AddWritePermOfBroker
) -> AddWritePermOfBrokerReply:
    both = PERM_READ | PERM_WRITE
    count = await name_server.routes.change_permissions(request.broker_name, lambda _: both)
    _log.info("write permission of %s added in %d topics", request.broker_name, count)
    return AddWritePermOfBrokerReply(add_topic_count=count)


# -- routes


@NAME_SERVER.handles(GetRouteInfoByTopic)
def get_route_info_by_topic(name_server: NameServer, request: GetRouteInfoByTopic, call: Call) -> Answer:
    if not name_server.is_ready:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "name server not ready")
    config, is_5 = name_server.config, name_server.is_5
    route = topic_routes.find_route(
        name_server.routes, request.topic, with_acting_master=is_5 and config.support_acting_master
    )
    if route is None:
        name_server.say_why_no_route(request.topic)
        text = f"No topic route info in name server for the topic: {request.topic}"
        raise Refusal(ResponseCode.TOPIC_NOT_EXIST, f"{text}{faq(is_5=is_5)}")
    if config.order_message_enable:
        order = name_server.kv.get(ORDER_TOPIC_CONFIG, request.topic)
        route = msgspec.structs.replace(route, order_topic_conf=order)
    if is_5 and request.zone_mode and request.zone_name and not request.zone_name.isspace():
        # The official filter decodes the answer and writes it in the old dialect for every client.
        return Answer(body=topic_routes.in_zone(route, request.zone_name).encode())
    body = route.encode_for(
        call.command.version,
        accept_standard_json_only=bool(request.accept_standard_json_only),
        emulate=5 if is_5 else 4,
    )
    return Answer(body=body)


@NAME_SERVER.handles(GetBrokerClusterInfo)
def get_broker_cluster_info(name_server: NameServer, request: GetBrokerClusterInfo) -> ClusterInfo:
    routes = name_server.routes
    clusters = {cluster: list(names) for cluster, names in routes.clusters.items()}
    return ClusterInfo(broker_addr_table=routes.brokers, cluster_addr_table=clusters)


# -- topics


@NAME_SERVER.handles(RegisterTopicInNamesrv)
def register_topic_in_namesrv(
    name_server: NameServer, request: RegisterTopicInNamesrv, call: CallWithBody[TopicRouteData]
) -> None:
    if call.body:
        name_server.routes.register_topic(request.topic, call.read_body().queue_datas)


@NAME_SERVER.handles(DeleteTopicInNamesrv)
def delete_topic_in_namesrv(name_server: NameServer, request: DeleteTopicInNamesrv) -> None:
    name_server.routes.delete_topic(request.topic, request.cluster_name)


@NAME_SERVER.handles(GetAllTopicListFromNameServer)
async def get_all_topic_list(name_server: NameServer, request: GetAllTopicListFromNameServer) -> Answer:
    if name_server.is_5 and not name_server.config.enable_all_topic_list:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "disable")
    return await _topics_where(name_server, lambda queues: True)


@NAME_SERVER.handles(GetTopicsByCluster)
async def get_topics_by_cluster(name_server: NameServer, request: GetTopicsByCluster) -> Answer:
    _check_topic_list_enabled(name_server)
    names = frozenset(name_server.routes.clusters.get(request.cluster, ()))
    return await _topics_where(name_server, lambda queues: not names.isdisjoint(queues))


@NAME_SERVER.handles(GetSystemTopicListFromNs)
def get_system_topic_list(name_server: NameServer, request: GetSystemTopicListFromNs) -> TopicList:
    return topic_routes.system_topics(name_server.routes)


_UNIT_FLAGS: Final = {
    GetUnitTopicList.code: (TOPIC_UNIT, TOPIC_UNIT),
    GetHasUnitSubTopicList.code: (TOPIC_UNIT_SUB, TOPIC_UNIT_SUB),
    GetHasUnitSubUnunitTopicList.code: (TOPIC_UNIT | TOPIC_UNIT_SUB, TOPIC_UNIT_SUB),
}
"""The flags of a topic that a request looks at, and those of them that are set in the topics of its answer."""


@NAME_SERVER.handles(GetUnitTopicList, GetHasUnitSubTopicList, GetHasUnitSubUnunitTopicList)
async def get_topics_by_unit(
    name_server: NameServer, request: GetUnitTopicList | GetHasUnitSubTopicList | GetHasUnitSubUnunitTopicList
) -> Answer:
    """The first broker that registered a topic decides: all brokers should have the same flags."""
    _check_topic_list_enabled(name_server)
    mask, wanted = _UNIT_FLAGS[request.code]
    return await _topics_where(
        name_server, lambda queues: next(iter(queues.values())).topic_sys_flag & mask == wanted
    )


def _check_topic_list_enabled(name_server: NameServer) -> None:
    if name_server.is_5 and not name_server.config.enable_topic_list:
        raise Refusal(ResponseCode.SYSTEM_ERROR, "disable")


async def _topics_where(name_server: NameServer, is_wanted: Callable[[dict[str, QueueData]], bool]) -> Answer:
    async with name_server.reports:
        topics = list(name_server.routes.topics.items())
        found = [topic async for topic, queues in in_slices(topics) if queues and is_wanted(queues)]
        return Answer(body=await encode_json(TopicList(topic_list=found), len(found)))


# -- key-value settings


@NAME_SERVER.handles(PutKvConfig)
async def put_kv_config(name_server: NameServer, request: PutKvConfig) -> None:
    name_server.kv.put(request.namespace, request.key, request.value)
    await name_server.kv.wait_until_saved()


@NAME_SERVER.handles(GetKvConfig)
def get_kv_config(name_server: NameServer, request: GetKvConfig) -> GetKvConfigReply:
    value = name_server.kv.get(request.namespace, request.key)
    if value is None:
        text = f"No config item, Namespace: {request.namespace} Key: {request.key}"
        raise Refusal(ResponseCode.QUERY_NOT_FOUND, text)
    return GetKvConfigReply(value=value)


@NAME_SERVER.handles(DeleteKvConfig)
async def delete_kv_config(name_server: NameServer, request: DeleteKvConfig) -> None:
    name_server.kv.delete(request.namespace, request.key)
    await name_server.kv.wait_until_saved()


@NAME_SERVER.handles(GetKvListByNamespace)
def get_kv_list_by_namespace(name_server: NameServer, request: GetKvListByNamespace) -> KVTable:
    table = name_server.kv.list(request.namespace)
    if table is None:
        text = f"No config item, Namespace: {request.namespace}"
        raise Refusal(ResponseCode.QUERY_NOT_FOUND, text)
    return KVTable(table=table)


# -- the name server's own settings


@NAME_SERVER.handles(UpdateNamesrvConfig)
async def update_namesrv_config(name_server: NameServer, request: UpdateNamesrvConfig, call: Call) -> None:
    if not call.body:
        return
    config = name_server.config
    requested = changes.read_changes(call.body)
    changes.refuse_changes(config, requested, is_5=name_server.is_5)
    accepted = changes.apply_changes(config, requested, call.connection.peer)
    path = Path(config.config_store_path) if config.config_store_path else None
    await name_server.files.write_and_wait("changed settings", partial(changes.write_changes, path, accepted))


@NAME_SERVER.handles(GetNamesrvConfig)
def get_namesrv_config(name_server: NameServer, request: GetNamesrvConfig) -> Answer:
    return Answer(body=config_keys.official_text(name_server.config, is_5=name_server.is_5).encode())
