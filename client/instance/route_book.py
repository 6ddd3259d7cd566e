"""What one client instance knows of topics and brokers: routes, templates of new topics, and the address to call.

Which port a request goes to is decided here. With `vip_channel_enabled` it is the broker's VIP port, its main port
minus 2, as in the official client. Pulls, pops, acknowledgements, ends of transactions and one-way requests go to the
main port always: their callers say `main_port=True`. However many callers need a topic's route, one question for it is
under way. What was not used lately is forgotten. Mirrors the route part of `MQClientInstance`.
"""

import asyncio
import logging
import random
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC, is_retry_topic
from pocketmq.protocol.requests.name_server import GetBrokerClusterInfo

from ..connections.name_servers import NameServers
from ..connections.route import MASTER_ID, Route
from ..errors import ClientError, NotReachable, RouteNotFound
from ..tasks import SharedWork

_log = logging.getLogger(__name__)

VIP_PORT_OFFSET: Final = 2
UNUSED_ROUNDS: Final = 20
"""Refreshes of the routes that a route outlives which no producer or consumer uses: ten minutes by default."""


class BrokerAddresses:
    """The brokers of all known routes: name to addresses by broker id, 0 is the master (official brokerAddrTable)."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[int, str]] = {}

    def keep(self, addresses: Mapping[str, Mapping[int, str]]) -> None:
        """Remember the addresses of a route."""
        for broker_name, by_id in addresses.items():
            self._by_name[broker_name] = dict(by_id)

    def keep_only(self, named: Iterable[Mapping[str, Mapping[int, str]]]) -> None:
        """Forget addresses that none of these names any more (official cleanOfflineBroker)."""
        alive = {address for brokers in named for by_id in brokers.values() for address in by_id.values()}
        for broker_name, by_id in list(self._by_name.items()):
            kept = {broker_id: address for broker_id, address in by_id.items() if address in alive}
            for address in by_id.values():
                if address not in alive:
                    _log.info("the broker %s at %s is offline", broker_name, address)
            if kept:
                self._by_name[broker_name] = kept
            else:
                del self._by_name[broker_name]

    def all_addresses(self) -> set[str]:
        """Masters and slaves."""
        return {address for by_id in self._by_name.values() for address in by_id.values()}

    def heartbeat_targets(self, *, with_slaves: bool) -> list[str]:
        """The brokers that get heartbeats: masters, and slaves if a consumer may read from them."""
        return list(
            dict.fromkeys(
                address
                for by_id in self._by_name.values()
                for broker_id, address in by_id.items()
                if with_slaves or broker_id == MASTER_ID
            )
        )

    def of(self, broker_name: str) -> Mapping[int, str]:
        """By broker id; empty for an unknown broker."""
        return self._by_name.get(broker_name, {})

    def reader(self, broker_name: str, broker_id: int) -> tuple[str, bool] | None:
        """Address to read from and whether it is a slave: the given id, for a slave the next one, else any
        (official findBrokerAddressInSubscribe)."""
        by_id = self._by_name.get(broker_name)
        if not by_id:
            return None
        for wanted in (broker_id, *((broker_id + 1,) if broker_id != MASTER_ID else ())):
            if wanted in by_id:
                return by_id[wanted], wanted != MASTER_ID
        found_id, address = next(iter(by_id.items()))
        return address, found_id != MASTER_ID


class RouteBook:
    """Owned by the event loop. Every call that may ask a name server is a `find_...` coroutine."""

    def __init__(self, name_servers: NameServers, *, vip_channel: bool) -> None:
        self.name_servers = name_servers
        self.brokers = BrokerAddresses()
        self._vip_channel = vip_channel
        self._routes: dict[str, Route] = {}
        self._templates: dict[str, Route] = {}
        """Routes of topics that the broker creates with the first message sent to them."""
        self._finding = SharedWork(self._find)
        self._finding_template = SharedWork(name_servers.find)
        self._finding_publish_route = SharedWork(self._find_publish_route)
        self._cluster: Mapping[str, Mapping[int, str]] | None = None
        """Every broker, for a client that all of them must know."""
        self._unused: dict[str, int] = {}
        """How many refreshes a topic was not among those in use."""

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
        self._unused.pop(topic, None)
        return await _shared(self._finding, topic)

    async def _find(self, topic: str) -> Route:
        route = await self.name_servers.find(topic)
        known = self._routes.get(topic)
        self.brokers.keep(route.addresses)
        self._templates.pop(topic, None)
        if known is not None and known == route:
            return known
        self._routes[topic] = route
        return route

    def close(self) -> set[asyncio.Task[Route]]:
        """End the questions under way, and return their tasks."""
        return self._finding_publish_route.cancel() | self._finding.cancel() | self._finding_template.cancel()

    async def find_publish_route(self, topic: str, create_topic: str, queue_nums: int) -> Route:
        """The route to send to a topic: its own, or that of the template `create_topic` if it does not exist yet.
        `RouteNotFound` says why there is neither.

        The route of a topic that may not be written has no queues.
        """
        return await _shared(self._finding_publish_route, topic, create_topic, queue_nums)

    async def _find_publish_route(self, topic: str, create_topic: str, queue_nums: int) -> Route:
        try:
            return await self.find_route(topic)
        except RouteNotFound:
            if create_topic == topic:
                raise
        try:
            template = await _shared(self._finding_template, create_topic)
        except RouteNotFound as error:
            why = await self.name_servers.why_no_route(create_topic)
            raise RouteNotFound(f"No route info of this topic: {topic}{why and '; '}{why}") from error
        route = self._templates[topic] = template.for_new_topic(topic, queue_nums)
        self.brokers.keep(route.addresses)
        return route

    async def refresh(self, topics: Iterable[str]) -> None:
        """Ask a name server for each of these topics, which are in use; a route that cannot be found stays as it was.
        Once no name server answers, the others are left for the next time."""
        if self._cluster is not None:
            try:
                await self.find_all_brokers()
            except ClientError as error:
                _log.warning("brokers: %s", error)
        for topic in topics:
            try:
                await self.find_route(topic)
            except RouteNotFound as error:
                if not is_retry_topic(topic) and topic != AUTO_CREATE_TOPIC:
                    _log.debug("%s", error)
            except NotReachable as error:
                _log.warning("routes: %s", error)
                return
            except ClientError as error:
                _log.warning("route of %s: %s", topic, error)

    def forget_unused(self, topics: Iterable[str]) -> None:
        """Called once a refresh, with the topics in use: forget the routes of others that were not asked for lately."""
        in_use = set(topics)
        for topic in [*self._routes, *self._templates]:
            rounds = 0 if topic in in_use else self._unused.get(topic, 0) + 1
            if rounds > UNUSED_ROUNDS:
                self._routes.pop(topic, None)
                self._templates.pop(topic, None)
                self._unused.pop(topic, None)
            elif rounds:
                self._unused[topic] = rounds
            else:
                self._unused.pop(topic, None)

    def topic_at(self, address: str) -> str | None:
        """Some topic whose route names this address, on either port."""
        main = address if not self._vip_channel else _moved(address, VIP_PORT_OFFSET)
        for routes in (self._routes, self._templates):
            for topic, route in routes.items():
                if any(
                    known in (address, main) for by_id in route.addresses.values() for known in by_id.values()
                ):
                    return topic
        return None

    # -- brokers

    def forget_offline_brokers(self) -> None:
        """Forget addresses that no known route names any more."""
        named = [route.addresses for routes in (self._routes, self._templates) for route in routes.values()]
        self.brokers.keep_only([*named, self._cluster or {}])

    async def find_all_brokers(self) -> None:
        """Find every broker of the cluster, and again at each refresh. `NotReachable`, `RequestRefused`."""
        self._cluster = self._cluster or {}
        table = (await self.name_servers.ask(GetBrokerClusterInfo())).broker_addr_table or {}
        self._cluster = {name: broker.broker_addrs or {} for name, broker in table.items()}
        self.brokers.keep(self._cluster)

    def vip(self, address: str) -> str:
        """The port for ordinary requests: the VIP port if that channel is on (official MixAll.brokerVIPChannel)."""
        if not self._vip_channel:
            return address
        return _moved(address, -VIP_PORT_OFFSET)

    def master(self, broker_name: str, *, main_port: bool = False) -> str | None:
        """The address of a broker's master, if a route named it."""
        address = self.brokers.of(broker_name).get(MASTER_ID)
        if address is None or main_port or not self._vip_channel:
            return address
        return self.vip(address)

    def known_master(self, queue: MessageQueue, *, main_port: bool = False) -> str:
        """As `master`; `RouteNotFound` if no route named it."""
        address = self.master(queue.broker_name, main_port=main_port)
        if address is None:
            raise broker_not_found(queue.broker_name)
        return address

    async def find_master(self, queue: MessageQueue, *, main_port: bool = False) -> str:
        """As `master`, after one question to a name server if it is unknown; then `RouteNotFound`."""
        if self.master(queue.broker_name) is None:
            await self.find_route(queue.topic)
        return self.known_master(queue, main_port=main_port)

    def member(self, broker_name: str) -> str | None:
        """The master of a broker group, else any slave."""
        found = self.brokers.reader(broker_name, MASTER_ID)
        return None if found is None else self.vip(found[0])

    async def find_member(self, queue: MessageQueue) -> str:
        """As `member`, after one question to a name server if none is known; then `RouteNotFound`."""
        return self.vip((await self.find_reader(queue, MASTER_ID))[0])

    async def find_reader(self, queue: MessageQueue, broker_id: int) -> tuple[str, bool]:
        """Where to pull a queue from, on the main port, and whether that is a slave."""
        if not self.brokers.of(queue.broker_name):
            await self.find_route(queue.topic)
        found = self.brokers.reader(queue.broker_name, broker_id)
        if found is None:
            raise broker_not_found(queue.broker_name)
        return found

    async def find_any_broker(self, topic: str, *, main_port: bool = False) -> str:
        """Some broker of a topic, one with a connection if there is one: its master, else any address of it (official
        findBrokerAddrByTopic, which may choose a dead one)."""
        route = self._routes.get(topic) or await self.find_route(topic)
        found = []
        for name, addresses in sorted(route.addresses.items()):
            by_id = self.brokers.of(name) or addresses
            address = by_id.get(MASTER_ID) or random.choice(list(by_id.values()))
            found.append(address if main_port else self.vip(address))
        if not found:
            raise RouteNotFound(f"no broker for topic {topic}")
        connected = [address for address in found if self.name_servers.connections.live(address) is not None]
        return random.choice(connected or found)


async def _shared(finding: SharedWork[Route], topic: str, *how: Hashable) -> Route:
    """The result of the one question for this topic; `NotReachable` if the client is shut down meanwhile."""
    joined = finding.is_under_way(topic, *how)
    try:
        route = await finding.result(topic, *how)
    except RouteNotFound:
        if not joined:
            raise
        route = await finding.result(topic, *how)  # it was asked before us: the topic may exist now
    if route is None:
        raise NotReachable(f"the client is shut down: no route of {topic}")
    return route


def _moved(address: str, by: int) -> str:
    """The same host, another port."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + by}"


def broker_not_found(broker_name: str) -> RouteNotFound:
    """The error for a broker that no route names, in the official words."""
    return RouteNotFound(f"The broker[{broker_name}] not exist")
