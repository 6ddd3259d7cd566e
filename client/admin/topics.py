"""Topics: create, change, delete, list, their figures, and which brokers have the queues of an ordered one."""

from collections.abc import Mapping
from typing import Final, Unpack

from pocketmq.protocol.bodies.offsets import TopicStatsTable
from pocketmq.protocol.bodies.registration import TopicConfigAndMappingSerializeWrapper
from pocketmq.protocol.bodies.routes import TopicRouteData
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC
from pocketmq.protocol.requests.name_server import (
    DeleteTopicInNamesrv,
    GetAllTopicListFromNameServer,
    GetKvConfig,
    GetTopicsByCluster,
    PutKvConfig,
)
from pocketmq.protocol.requests.topic import (
    DeleteTopicInBroker,
    GetAllTopicConfig,
    GetSystemTopicListFromBroker,
    GetTopicStatsInfo,
    QueryTopicConsumeByWho,
    UpdateAndCreateTopic,
)
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..arguments import checks_arguments
from ..errors import ClientError, InvalidArgument, RequestRefused
from .calls import AdminCalls, Place, master_of

_PERM_MAX: Final = 7
_ORDER_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"
"""Where name servers keep the order configurations."""


@checks_arguments
class AdminTopics(AdminCalls):
    """`address` is a broker's `host:port`; `cluster` means the masters of a cluster. One of them is given."""

    async def update_topic(self, config: TopicConfig, **place: Unpack[Place]) -> list[str]:
        """Create a topic or change it; the addresses of the brokers that did (createAndUpdateTopicConfig).

        Attributes are changes: `{"+message.type": "FIFO", "-other": ""}`. An ordered topic also needs an order
        configuration: `update_order_conf`.
        """
        if not 0 <= config.perm <= _PERM_MAX:
            raise InvalidArgument(f"topicPermission value: {config.perm} is invalid.")
        attributes = ",".join(f"{key}={value}" if value else key for key, value in config.attributes.items())
        request = UpdateAndCreateTopic(
            topic=config.name,
            default_topic=AUTO_CREATE_TOPIC,
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            perm=config.perm,
            topic_filter_type=config.topic_filter_type,
            topic_sys_flag=config.topic_sys_flag,
            order=config.order,
            attributes=attributes,
        )
        return await self._change(place, request)

    async def delete_topic(self, topic: str, cluster: str) -> None:
        """Delete a topic at the masters of a cluster and its route at every name server (deleteTopic)."""
        for master in await self.master_addresses(cluster):
            await self._call(master, DeleteTopicInBroker(topic=topic))
        await self._call_name_servers(DeleteTopicInNamesrv(topic=topic, cluster_name=cluster))

    async def set_topic_perm(self, topic: str, perm: int, **place: Unpack[Place]) -> list[str]:
        """Change what a topic may be used for: 2 write, 4 read, 6 both; the brokers that did.

        Queue numbers stay those of the first broker in the route (official UpdateTopicPermSubCommand).
        """
        route = await self.topic_route(topic)
        if not route.queue_datas:
            raise ClientError(f"the route of {topic} has no queues")
        first = route.queue_datas[0]
        config = TopicConfig(
            topic_name=topic,
            read_queue_nums=first.read_queue_nums,
            write_queue_nums=first.write_queue_nums,
            topic_sys_flag=first.topic_sys_flag,
            perm=perm,
        )
        if (address := place.get("address")) is not None:
            name_of_master(route, address)
        return await self.update_topic(config, **place)

    async def topics(self) -> list[str]:
        """Every topic with a route, sorted (fetchAllTopicList)."""
        return sorted((await self._ask(GetAllTopicListFromNameServer())).topic_list)

    async def topics_of_cluster(self, cluster: str) -> list[str]:
        """Topics of one cluster, sorted (fetchTopicsByCLuster)."""
        return sorted((await self._ask(GetTopicsByCluster(cluster=cluster))).topic_list)

    async def clusters_of_topic(self, topic: str) -> list[str]:
        """Clusters that hold a topic, sorted (getTopicClusterList)."""
        info = await self.cluster_info()
        route = await self.topic_route(topic)
        names = {broker.broker_name for broker in route.broker_datas[:1]}
        table = info.cluster_addr_table or {}
        return sorted(cluster for cluster, members in table.items() if names & set(members))

    async def topic_status(self, topic: str, *, route_topic: str | None = None) -> TopicStatsTable:
        """Offsets and last times of every queue (examineTopicStats); `ClientError` if the topic has no queues.

        `route_topic`, a cluster's name or a light queue's parent, says whose brokers to ask instead.
        """
        offsets = {}
        tps = 0.0
        for address in await self._brokers_of(route_topic or topic):
            table = await self._call(address, GetTopicStatsInfo(topic=topic))
            offsets.update(table.offset_table)
            tps += table.topic_put_tps
        if not offsets:
            raise ClientError("Not found the topic stats info")
        return TopicStatsTable(offset_table=offsets, topic_put_tps=tps)

    async def topic_configs(self, address: str) -> dict[str, TopicConfig]:
        """Every topic of one broker with its settings, by name (getAllTopicConfig)."""
        table = await self._read_body(
            address, GetAllTopicConfig(), TopicConfigAndMappingSerializeWrapper.decode
        )
        return dict(sorted(table.topic_config_table.items()))

    async def system_topics(self, address: str) -> list[str]:
        """Topics a broker created for itself, sorted (getSystemTopicListFromBroker)."""
        return sorted((await self._call(address, GetSystemTopicListFromBroker())).topic_list)

    async def groups_of_topic(self, topic: str) -> list[str]:
        """Groups that consume a topic, sorted, as its first broker knows (queryTopicConsumeByWho)."""
        for address in await self._brokers_of(topic):
            return sorted((await self._call(address, QueryTopicConsumeByWho(topic=topic))).group_list)
        return []

    # -- order configurations: which brokers have how many queues of an ordered topic

    async def order_conf(self, topic: str) -> str:
        """The order configuration of a topic, `broker-a:4;broker-b:4`; `RequestRefused` 22 if it has none."""
        return (await self._ask(GetKvConfig(namespace=_ORDER_NAMESPACE, key=topic))).value or ""

    async def set_order_conf(self, topic: str, order_conf: str) -> None:
        """Replace the order configuration at every name server (createOrUpdateOrderConf, cluster)."""
        if not order_conf.strip():
            raise InvalidArgument("order_conf must not be empty: expected broker-a:4;broker-b:4")
        request = PutKvConfig(namespace=_ORDER_NAMESPACE, key=topic, value=order_conf)
        await self._call_name_servers(request)

    async def update_order_conf(self, topic: str, order_conf: str) -> str:
        """Set the queue number of one broker, `broker-a:4`, and keep those of others; the result
        (createOrUpdateOrderConf, broker)."""
        try:
            present = await self.order_conf(topic)
        except RequestRefused as refusal:
            if refusal.code != ResponseCode.QUERY_NOT_FOUND:
                raise
            present = ""
        merged = _order_numbers(present) | _order_numbers(order_conf)
        text = order_conf_of(dict(sorted(merged.items())))
        await self.set_order_conf(topic, text)
        return text


def parse_attributes(text: str) -> dict[str, str]:
    """`+a=b,-c` to `{"+a": "b", "-c": ""}`; `InvalidArgument` for anything else."""
    attributes: dict[str, str] = {}
    for part in text.split(",") if text else ():
        key, has_value, value = part.partition("=")
        if not key[1:] or key[0] != ("+" if has_value else "-"):
            raise InvalidArgument(f"an attribute must be +key=value or -key, got {part!r}")
        if key in attributes:
            raise InvalidArgument(f"the attribute {key} is given twice")
        attributes[key] = value
    return attributes


def order_conf_of(brokers: Mapping[str, int | str]) -> str:
    """Broker names with their queue numbers as an order configuration."""
    return ";".join(f"{name}:{count}" for name, count in brokers.items())


def _order_numbers(order_conf: str) -> dict[str, str]:
    return {
        broker: count
        for broker, colon, count in (part.partition(":") for part in order_conf.split(";"))
        if broker and colon
    }


def name_of_master(route: TopicRouteData, address: str) -> str:
    """The broker name of a master; `InvalidArgument` if the route has no master at that address."""
    for broker in route.broker_datas:
        if master_of(broker) == address:
            return broker.broker_name or ""
    raise InvalidArgument("updateTopicPerm error broker not exit or broker is not master!")
