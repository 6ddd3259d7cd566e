"""What one client instance knows of topics and brokers: routes, templates of new topics, and the address to call.

Which port a request goes to is decided here. With `vip_channel_enabled` it is the broker's VIP port, its main port
minus 2, as in the official client. Pulls, pops, acknowledgements, ends of transactions and one-way requests go to the
main port always: their callers say `main_port=True`. Mirrors the route part of `MQClientInstance`.
"""

import asyncio
import logging
import random
from collections.abc import Iterable, Mapping
from typing import Final

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC, is_retry_topic

from ..connections.name_servers import NameServers
from ..connections.route import MASTER_ID, Route
from ..errors import ClientError, RouteNotFound
from .broker_addresses import BrokerAddresses

_log = logging.getLogger(__name__)

VIP_PORT_OFFSET: Final = 2


class RouteBook:
    """Owned by the event loop. Every call that may ask a name server is a `find_...` coroutine."""

    def __init__(self, name_servers: NameServers, *, vip_channel: bool) -> None:
        self.name_servers = name_servers
        self.brokers = BrokerAddresses()
        self._vip_channel = vip_channel
        self._routes: dict[str, Route] = {}
        self._templates: dict[str, Route] = {}
        """Routes of topics that the broker creates with the first message sent to them."""
        self._finding: dict[str, asyncio.Lock] = {}

    # -- routes

    def route(self, topic: str) -> Route | None:
        """The topic's route, if it was found before."""
        return self._routes.get(topic)

    def publish_route(self, topic: str) -> Route | None:
        """The route to send to a topic, if it was found before: the topic's own, or that of its template."""
        return self._routes.get(topic) or self._templates.get(topic)

    def missing(self, topics: Iterable[str]) -> set[str]:
        """Those of the topics that have no route yet."""
        return {topic for topic in topics if topic not in self._routes}

    def forget(self, topic: str) -> None:
        """The next `find_route` asks a name server."""
        self._routes.pop(topic, None)

    async def find_route(self, topic: str) -> Route:
        """Ask a name server and keep the answer. Raises what `NameServers.find` raises."""
        known = self._routes.get(topic)
        async with self._finding.setdefault(topic, asyncio.Lock()):
            fresh = self._routes.get(topic)
            if fresh is not None and fresh is not known:
                return fresh  # another caller asked while this one waited
            route = await self.name_servers.find(topic)
            if known is None or known != route:
                self._routes[topic] = route
                self.brokers.keep(route.addresses)
            self._templates.pop(topic, None)
            return self._routes[topic]

    async def find_publish_route(self, topic: str, create_topic: str, queue_nums: int) -> Route:
        """The route to send to a topic: its own, or that of the template `create_topic` if it does not exist yet.
        `RouteNotFound` says why there is neither.

        The route of a topic that may not be written has no queues.
        """
        try:
            return await self.find_route(topic)
        except RouteNotFound:
            if create_topic == topic:
                raise
        try:
            template = await self.name_servers.find(create_topic)
        except RouteNotFound as error:
            why = await self.name_servers.why_no_route(create_topic)
            raise RouteNotFound(f"No route info of this topic: {topic}{why and '; '}{why}") from error
        route = self._templates[topic] = template.for_new_topic(topic, queue_nums)
        self.brokers.keep(route.addresses)
        return route

    async def refresh(self, topics: Iterable[str]) -> None:
        """Ask a name server for each topic; a route that cannot be found stays as it was."""
        for topic in topics:
            try:
                await self.find_route(topic)
            except RouteNotFound as error:
                if not is_retry_topic(topic) and topic != AUTO_CREATE_TOPIC:
                    _log.debug("%s", error)
            except ClientError as error:
                _log.warning("route of %s: %s", topic, error)

    # -- brokers

    def keep_addresses(self, addresses: Mapping[str, Mapping[int, str]]) -> None:
        """Remember the brokers of a route that is not kept itself."""
        self.brokers.keep(addresses)

    def forget_offline_brokers(self) -> None:
        """Forget addresses that no known route names any more."""
        self.brokers.keep_only((*self._routes.values(), *self._templates.values()))

    def vip(self, address: str) -> str:
        """The port for ordinary requests: the VIP port if that channel is on (official MixAll.brokerVIPChannel)."""
        if not self._vip_channel:
            return address
        host, _, port = address.rpartition(":")
        return f"{host}:{int(port) - VIP_PORT_OFFSET}"

    def master(self, broker_name: str, *, main_port: bool = False) -> str | None:
        """The address of a broker's master, if a route named it."""
        address = self.brokers.master(broker_name)
        if address is None or main_port or not self._vip_channel:
            return address
        return self.vip(address)

    def known_master(self, queue: MessageQueue) -> str:
        """As `master`; `RouteNotFound` if no route named it."""
        address = self.master(queue.broker_name)
        if address is None:
            raise broker_not_found(queue.broker_name)
        return address

    async def find_master(self, queue: MessageQueue, *, main_port: bool = False) -> str:
        """As `master`, after one question to a name server if it is unknown; then `RouteNotFound`."""
        address = self.master(queue.broker_name, main_port=main_port)
        if address is None:
            await self.find_route(queue.topic)
            address = self.master(queue.broker_name, main_port=main_port)
        if address is None:
            raise broker_not_found(queue.broker_name)
        return address

    def member(self, broker_name: str) -> str | None:
        """The master of a broker group, else any slave."""
        found = self.brokers.reader(broker_name, MASTER_ID)
        return None if found is None else self.vip(found[0])

    async def find_member(self, queue: MessageQueue) -> str:
        """As `member`, after one question to a name server if none is known; then `RouteNotFound`."""
        return self.vip((await self.find_reader(queue, MASTER_ID))[0])

    async def find_reader(self, queue: MessageQueue, broker_id: int) -> tuple[str, bool]:
        """Where to pull a queue from, on the main port, and whether that is a slave."""
        found = self.brokers.reader(queue.broker_name, broker_id)
        if found is None:
            await self.find_route(queue.topic)
            found = self.brokers.reader(queue.broker_name, broker_id)
        if found is None:
            raise broker_not_found(queue.broker_name)
        return found

    async def find_any_broker(self, topic: str, *, main_port: bool = False) -> str:
        """Some broker of a topic: its master, else any address of it (official findBrokerAddrByTopic)."""
        route = self._routes.get(topic) or await self.find_route(topic)
        if not route.addresses:
            raise RouteNotFound(f"no broker for topic {topic}")
        by_id = route.addresses[random.choice(sorted(route.addresses))]
        address = by_id.get(MASTER_ID) or random.choice(list(by_id.values()))
        return address if main_port else self.vip(address)


def broker_not_found(broker_name: str) -> RouteNotFound:
    """The error for a broker that no route names, in the official words."""
    return RouteNotFound(f"The broker[{broker_name}] not exist")
