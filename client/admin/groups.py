"""Consumer groups: create, change, delete; and the consumers and producers that are online."""

from contextlib import suppress
from typing import Unpack

from pocketmq.protocol.bodies.client import SetMessageRequestModeRequestBody
from pocketmq.protocol.bodies.client_state import (
    ConsumerConnection,
    ConsumerRunningInfo,
    ProducerConnection,
    ProducerInfo,
)
from pocketmq.protocol.bodies.group_config import SubscriptionGroupConfig, SubscriptionGroupWrapper
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import dlq_topic, retry_topic
from pocketmq.protocol.requests.group import (
    DeleteSubscriptionGroup,
    GetAllSubscriptionGroupConfig,
    QueryTopicsByConsumer,
    UpdateAndCreateSubscriptionGroup,
)
from pocketmq.protocol.requests.membership import (
    GetAllProducerInfo,
    GetConsumerConnectionList,
    GetProducerConnectionList,
)
from pocketmq.protocol.requests.pop import SetMessageRequestMode
from pocketmq.protocol.requests.to_client import GetConsumerRunningInfo
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..arguments import checks_arguments
from ..errors import ClientError, NotOnline, RequestRefused, RouteNotFound
from .calls import Place
from .topics import AdminTopics


@checks_arguments
class AdminGroups(AdminTopics):
    """Deleting a group deletes its topics too, so this builds on `AdminTopics`.

    `address` is a broker's `host:port`; `cluster` means the masters of a cluster. One of them is given.
    """

    async def update_group(self, config: SubscriptionGroupConfig, **place: Unpack[Place]) -> list[str]:
        """Create a group or change it; the addresses of the brokers that did (createAndUpdateSubscriptionGroupConfig).

        The group's retry topic, and with it its route, is created by the first heartbeat of a member.
        """
        return await self._change(place, UpdateAndCreateSubscriptionGroup(), config)

    async def delete_group(
        self, group: str, *, remove_offset: bool = False, **place: Unpack[Place]
    ) -> list[str]:
        """Delete a group, with `remove_offset` its offsets too; the brokers that did (deleteSubscriptionGroup).

        With `cluster` its retry and dead-letter topics are deleted as well, if they exist.
        """
        request = DeleteSubscriptionGroup(
            group_name=group, clean_offset=remove_offset, remove_offset=remove_offset
        )
        targets = await self._change(place, request)
        if (cluster := place.get("cluster")) is not None:
            for topic in (retry_topic(group), dlq_topic(group)):
                await self.delete_topic(topic, cluster)
        return targets

    async def group_config(self, address: str, group: str) -> SubscriptionGroupConfig | None:
        """A group's settings at one broker, `None` if it does not know the group
        (examineSubscriptionGroupConfig)."""
        return (await self.group_configs(address)).get(group)

    async def group_configs(self, address: str) -> dict[str, SubscriptionGroupConfig]:
        """Every group of one broker with its settings, by name (getAllSubscriptionGroup)."""
        table = await self._read_body(
            address, GetAllSubscriptionGroupConfig(), SubscriptionGroupWrapper.decode
        )
        return dict(sorted(table.subscription_group_table.items()))

    async def topics_of_group(self, group: str) -> list[str]:
        """Topics a group has offsets in, sorted; 5.x (queryTopicsByConsumer)."""
        topics: set[str] = set()
        for address in await self._brokers_of(retry_topic(group)):
            topics.update((await self._call(address, QueryTopicsByConsumer(group=group))).topic_list)
        return sorted(topics)

    async def set_consume_mode(
        self, topic: str, group: str, mode: str, pop_share_queue_num: int = 0, **place: Unpack[Place]
    ) -> list[str]:
        """How members with `client_rebalance=False` read: mode PULL or POP; 5.x (setMessageRequestMode)."""
        body = SetMessageRequestModeRequestBody(
            topic=topic, consumer_group=group, mode=mode, pop_share_queue_num=pop_share_queue_num
        )
        return await self._change(place, SetMessageRequestMode(), body)

    # -- online clients

    async def consumer_connections(self, group: str, *, address: str | None = None) -> ConsumerConnection:
        """Members of a group as one of its brokers sees them (examineConsumerConnectionInfo).

        `NotOnline` if no member is connected, `RouteNotFound` if the group never had one.
        """
        broker = address or await self._any_broker_of(retry_topic(group))
        try:
            connections = await self._call(broker, GetConsumerConnectionList(consumer_group=group))
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.CONSUMER_NOT_ONLINE:
                raise NotOnline(refusal.remark) from refusal
            raise
        if not connections.connection_set:
            raise NotOnline("Not found the consumer group connection")
        return connections

    async def producer_connections(self, group: str, topic: str) -> ProducerConnection:
        """Producers of a group as a broker of the topic sees them (examineProducerConnectionInfo)."""
        broker = await self._any_broker_of(topic)
        connections = await self._call(broker, GetProducerConnectionList(producer_group=group))
        if not connections.connection_set:
            raise NotOnline("Not found the producer group connection")
        return connections

    async def producers(self, address: str) -> dict[str, list[ProducerInfo]]:
        """Every producer connected to a broker, by group (getAllProducerInfo)."""
        table = await self._call(address, GetAllProducerInfo())
        return dict(sorted((table.data or {}).items()))

    async def consumer_running_info(
        self, group: str, client_id: str, *, jstack: bool = False
    ) -> ConsumerRunningInfo:
        """The inner state of a member, asked through a broker of its group (getConsumerRunningInfo)."""
        broker = await self._any_broker_of(retry_topic(group))
        request = GetConsumerRunningInfo(consumer_group=group, client_id=client_id, jstack_enable=jstack)
        # The broker waits for the member, up to ten seconds.
        return await self._call(broker, request, is_slow=True)

    async def queue_holders(self, group: str) -> dict[MessageQueue, list[str]]:
        """The client ids of the members that read each queue, as the members say; silent ones have no queues here."""
        holders: dict[MessageQueue, list[str]] = {}
        try:
            members = (await self.consumer_connections(group)).connection_set
        except (NotOnline, RouteNotFound):
            return holders
        for client_id in sorted(member.client_id or "" for member in members):
            with suppress(ClientError):
                info = await self.consumer_running_info(group, client_id)
                for queue in info.mq_table:
                    holders.setdefault(queue, []).append(client_id)
        return holders
