"""Topics: create, change, delete, list, and their figures.

Part of `AdminClient` (`client.py`). Each docstring names the official method.
"""

from collections.abc import Sequence
from typing import Final

from pocketmq.protocol.bodies.offsets import (
    QueueTimeSpan,
    TopicStatsTable,
)
from pocketmq.protocol.bodies.registration import (
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigAndQueueMapping,
)
from pocketmq.protocol.bodies.routes import BrokerData
from pocketmq.protocol.bodies.topic_config import CreateTopicListRequestBody, TopicConfig
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC
from pocketmq.protocol.requests.name_server import (
    DeleteTopicInNamesrv,
    GetAllTopicListFromNameServer,
    GetTopicsByCluster,
)
from pocketmq.protocol.requests.topic import (
    DeleteTopicInBroker,
    GetAllTopicConfig,
    GetSystemTopicListFromBroker,
    GetTopicConfig,
    GetTopicStatsInfo,
    QueryConsumeTimeSpan,
    QueryTopicConsumeByWho,
    UpdateAndCreateTopic,
    UpdateAndCreateTopicList,
)

from ..connections.route import MASTER_ID
from ..errors import ClientError, InvalidArgument
from ..settings.allocation import AllocateMessageQueueAveragely
from .name_servers import AdminNameServers

_PERM_MAX: Final = 7


class AdminTopics(AdminNameServers):
    """`address` is a broker's `host:port`; `cluster` means the masters of a cluster. One of them is given."""

    async def update_topic(
        self, config: TopicConfig, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
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
        return await self._call_targets(address, cluster, request)

    async def update_topics(
        self, configs: Sequence[TopicConfig], *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
        """Several topics with one request to each broker; 5.x (createAndUpdateTopicConfigList)."""
        body = CreateTopicListRequestBody(topic_config_list=list(configs))
        return await self._call_targets(address, cluster, UpdateAndCreateTopicList(), body)

    async def delete_topic(self, topic: str, cluster: str) -> None:
        """Delete a topic at the masters of a cluster and its route at every name server (deleteTopic)."""
        for master in await self.master_addresses(cluster):
            await self._call(master, DeleteTopicInBroker(topic=topic))
        await self._call_name_servers(DeleteTopicInNamesrv(topic=topic, cluster_name=cluster))

    async def set_topic_perm(
        self, topic: str, perm: int, *, address: str | None = None, cluster: str | None = None
    ) -> list[str]:
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
        if address is not None:
            _check_is_master(route.broker_datas, address)
        return await self.update_topic(config, address=address, cluster=cluster)

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

    async def topic_config(self, address: str, topic: str) -> TopicConfigAndQueueMapping:
        """A topic's settings at one 5.x broker (examineTopicConfig)."""
        return await self._call(address, GetTopicConfig(topic=topic))

    async def topic_configs(self, address: str) -> dict[str, TopicConfig]:
        """Every topic of one broker with its settings, by name."""
        return dict(sorted((await self.topic_table(address)).topic_config_table.items()))

    async def topic_table(self, address: str) -> TopicConfigAndMappingSerializeWrapper:
        """The topic table of one broker with its version (getAllTopicConfig)."""
        return await self._read_body(
            address, GetAllTopicConfig(), TopicConfigAndMappingSerializeWrapper.decode
        )

    async def system_topics(self, address: str) -> list[str]:
        """Topics a broker created for itself, sorted (getSystemTopicListFromBroker)."""
        return sorted((await self._call(address, GetSystemTopicListFromBroker())).topic_list)

    async def groups_of_topic(self, topic: str) -> list[str]:
        """Groups that consume a topic, sorted, as its first broker knows (queryTopicConsumeByWho)."""
        for address in await self._brokers_of(topic):
            return sorted((await self._call(address, QueryTopicConsumeByWho(topic=topic))).group_list)
        return []

    async def consume_time_span(self, topic: str, group: str) -> list[QueueTimeSpan]:
        """Store times of the oldest, newest and last consumed message of each queue (queryConsumeTimeSpan)."""
        spans: list[QueueTimeSpan] = []
        for address in await self._brokers_of(topic):
            answer = await self._call(address, QueryConsumeTimeSpan(topic=topic, group=group))
            spans += answer.consume_time_span_set
        return spans

    async def allocate_queues(self, topic: str, members: Sequence[str]) -> dict[str, list[MessageQueue]]:
        """How members with these ids would share the queues, averagely (official AllocateMQSubCommand)."""
        queues = await self.queues(topic)
        strategy = AllocateMessageQueueAveragely()
        return {member: strategy.allocate("aa", member, queues, list(members)) for member in members}


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


def _check_is_master(brokers: Sequence[BrokerData], address: str) -> None:
    if not any((broker.broker_addrs or {}).get(MASTER_ID) == address for broker in brokers):
        raise InvalidArgument("updateTopicPerm error broker not exit or broker is not master!")
