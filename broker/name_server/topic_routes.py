"""The answers about topics: the route of one topic, and the system topics.

These functions read a `RouteTable` and do not change it. They build each route anew, because a name server has few
topics and answers may differ (zone, acting master). Mirrors the reading half of `RouteInfoManager` and
`ZoneRouteRPCHook`.
"""

from typing import Final

from msgspec.structs import replace
from pocketmq.protocol.bodies.routes import BrokerData, QueueData, TopicList, TopicRouteData
from pocketmq.protocol.message.flags import is_writeable
from pocketmq.protocol.message.topics import sync_member_topic

from ..config.broker_config import MASTER_ID
from .route_table import RouteTable

MEMBER_TOPIC_PREFIX: Final = sync_member_topic("")
"""Brokers read these routes to find each other: they never show an acting master."""


def find_route(table: RouteTable, topic: str, *, with_acting_master: bool) -> TopicRouteData | None:
    """Queues and brokers of a topic; None if no queue, or none of its brokers, is known.

    `with_acting_master` (5.x, supportActingMaster): a group without a master shows its smallest id as 0, if it enabled
    acting masters and the topic has no write permission there.
    """
    queues = table.topics.get(topic)
    if queues is None:
        return None
    groups = [table.brokers[name] for name in queues if name in table.brokers]
    if not groups:
        return None
    if with_acting_master and not topic.startswith(MEMBER_TOPIC_PREFIX):
        groups = [_with_acting_master(group, queues[group.broker_name or ""]) for group in groups]
    return TopicRouteData(
        queue_datas=list(queues.values()),
        broker_datas=groups,
        filter_server_table=_filter_servers(table, groups),
        topic_queue_mapping_by_broker=table.queue_mappings.get(topic),
    )


def in_zone(route: TopicRouteData, zone_name: str) -> TopicRouteData:
    """The part of a route in a zone: the groups of that zone, and the groups without a master."""
    wanted = zone_name.lower()
    kept = [
        group
        for group in route.broker_datas
        if MASTER_ID not in (group.broker_addrs or {}) or (group.zone_name or "").lower() == wanted
    ]
    names = {group.broker_name for group in kept}
    known = {group.broker_name for group in route.broker_datas}
    removed = {
        address
        for group in route.broker_datas
        if group.broker_name not in names
        for address in (group.broker_addrs or {}).values()
    }
    return replace(
        route,
        queue_datas=[
            queue
            for queue in route.queue_datas
            if queue.broker_name in names or queue.broker_name not in known
        ],
        broker_datas=kept,
        filter_server_table={
            address: servers
            for address, servers in route.filter_server_table.items()
            if address not in removed
        },
    )


def system_topics(table: RouteTable) -> TopicList:
    """Names of clusters and brokers, which are topics too, and the address of a broker that has the others (304)."""
    names = dict.fromkeys(table.clusters)
    for brokers in table.clusters.values():
        names.update(brokers)
    addresses = (
        address for group in table.brokers.values() for address in (group.broker_addrs or {}).values()
    )
    return TopicList(topic_list=list(names), broker_addr=next(addresses, None))


def _with_acting_master(group: BrokerData, queue: QueueData) -> BrokerData:
    addresses = group.broker_addrs or {}
    if not addresses or MASTER_ID in addresses or not group.enable_acting_master or is_writeable(queue.perm):
        return group
    smallest = min(addresses)
    shown = {MASTER_ID: addresses[smallest]}
    shown.update({broker_id: address for broker_id, address in addresses.items() if broker_id != smallest})
    return replace(group, broker_addrs=shown)


def _filter_servers(table: RouteTable, groups: list[BrokerData]) -> dict[str, list[str]]:
    return {
        address: table.filter_servers[key]
        for group in groups
        for address in (group.broker_addrs or {}).values()
        if (key := table.key(group.cluster or "", address)) in table.filter_servers
    }
