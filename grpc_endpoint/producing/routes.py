"""The brokers and queues of a topic, as they are now.

The topics of this broker are read from its own table, those of other brokers from the name server: from its route
table if it runs in this process, by a request otherwise. Nothing is remembered: the official proxy keeps a route for
20 seconds, also a missing one, so that a topic made just now is not there.

Each broker of a route is expected to have a gRPC port of the same number, as behind official proxies. Other brokers on
this machine cannot have that one, so a friendly route leaves them out, unless their ports are known: the brokers of a
test's cluster run in one process.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Final

import msgspec
from pocketmq.broker.broker import Broker
from pocketmq.broker.config.addresses import host_and_port
from pocketmq.broker.errors import PeerError, Refusal
from pocketmq.broker.name_server.name_server import NameServer
from pocketmq.broker.name_server.topic_routes import find_route
from pocketmq.protocol.bodies.routes import BrokerData, QueueData, TopicRouteData
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC, is_dlq_topic, is_retry_topic
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic

from ..calls.handler import RpcRefused
from ..messages import Address, AddressScheme, Code, Endpoints

_log = logging.getLogger("pocketmq.grpc")

OFFICIAL_PORT: Final = 8081
MAX_ASKING: Final = 1000
"""Routes that are asked of a name server at once; one more is answered from the broker's own topics."""
NEW_TOPIC_QUEUES: Final = 4
"""Queues of a topic made by a client, as remoting producers ask for."""


class RoutedBroker(msgspec.Struct, frozen=True):
    """The queues of a topic on one broker. `endpoints` by broker id; 0 is the master."""

    name: str
    endpoints: dict[int, Endpoints]
    read_queues: int
    write_queues: int
    perm: int


class TopicRoute(msgspec.Struct, frozen=True):
    """`message_type` is the topic's attribute; `None` if this broker does not have the topic."""

    brokers: list[RoutedBroker]
    message_type: str | None


OnRoute = Callable[[TopicRoute | None], None]


class Routes:
    """`port` is that of the endpoint, known after it is bound. Owned by the event loop."""

    def __init__(
        self,
        broker: Broker,
        name_server: NameServer | None = None,
        neighbours: Mapping[str, str] | None = None,
    ) -> None:
        """`neighbours`: the gRPC ports of other brokers by the brokers' addresses, where they are known."""
        self.port = OFFICIAL_PORT
        self._broker = broker
        self._config = broker.config.endpoint
        self._name_server = name_server
        self._neighbours = {} if neighbours is None else neighbours
        self._host = host_and_port(broker.identity.address)[0]
        self._tasks: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """End the questions to name servers; their calls stay unanswered."""
        for task in self._tasks:
            task.cancel()

    # -- topics of this broker

    def own_topic(self, topic: str) -> TopicConfig | None:
        """The topic at this broker; made, if clients may make topics. The broker's own retry and dead-letter topics are
        not made here; and a slave has those of its master."""
        broker = self._broker
        config = broker.topics.find(topic)
        if config is not None or self._config.grpc_strict or not broker.config.auto_create_topic_enable:
            return config
        if broker.config.is_slave:
            return None
        if is_retry_topic(topic) or is_dlq_topic(topic):
            return None
        return broker.topics.create_for_send(topic, AUTO_CREATE_TOPIC, NEW_TOPIC_QUEUES)

    # -- routes

    def lookup(self, topic: str, on_route: OnRoute) -> None:
        """Call back with the route, or `None` for a topic that nobody has; at once unless a name server is asked."""
        config = self._broker.config
        if self._name_server is not None:
            table = self._name_server.routes
            on_route(self._merged(topic, find_route(table, topic, with_acting_master=False)))
        elif not config.namesrv_addr or len(self._tasks) >= MAX_ASKING:
            on_route(self._merged(topic, None))
        else:
            task = asyncio.get_running_loop().create_task(
                self._ask(topic, on_route), name=f"gRPC route of {topic}"
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask(self, topic: str, on_route: OnRoute) -> None:
        route: TopicRouteData | None = None
        try:
            route = await self._broker.cluster.registration.ask(GetRouteInfoByTopic(topic=topic))
        except Refusal:
            pass  # no broker has registered the topic
        except (PeerError, ProtocolError) as error:
            _log.warning("no route of topic %s from a name server: %s", topic, error)
        on_route(self._merged(topic, route))

    def _merged(self, topic: str, known: TopicRouteData | None) -> TopicRoute | None:
        """The name server's route, with this broker's queues as they are now."""
        own_name, has_others = self._broker.config.broker_name, False
        groups: dict[str, BrokerData] = {}
        queues: dict[str, QueueData] = {}
        if known is not None:
            groups = {group.broker_name or "": group for group in known.broker_datas}
            queues = {data.broker_name or "": data for data in known.queue_datas}
            has_others = bool(queues.keys() - {own_name})
        config = self._broker.topics.find(topic) if has_others else self.own_topic(topic)
        if config is not None:
            queues[own_name] = self._own_queues(config)
        brokers = []
        for name, data in queues.items():
            endpoints = self._endpoints(name, groups.get(name))
            if endpoints:
                brokers.append(
                    RoutedBroker(name, endpoints, data.read_queue_nums, data.write_queue_nums, data.perm)
                )
        if not brokers:
            return None
        return TopicRoute(brokers, None if config is None else config.message_type)

    def _own_queues(self, config: TopicConfig) -> QueueData:
        return QueueData(
            broker_name=self._broker.config.broker_name,
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            perm=config.perm & self._broker.config.broker_permission,
        )

    def _endpoints(self, name: str, group: BrokerData | None) -> dict[int, Endpoints]:
        """Where the brokers of a group are, by their ids."""
        config = self._broker.config
        found = {}
        if name == config.broker_name:
            found[config.broker_id] = _endpoints(self._host, self.port)
        for broker_id, address in ((group.broker_addrs or {}) if group is not None else {}).items():
            host = address.rpartition(":")[0].strip("[]")
            if not host or broker_id in found:
                continue
            if address in self._neighbours:
                found[broker_id] = _endpoints(*host_and_port(self._neighbours[address]))
            elif self._config.grpc_strict or host != self._host:
                found[broker_id] = _endpoints(host, self.port)
        return dict(sorted(found.items()))


def topic_not_found(topic: str) -> RpcRefused:
    """Nobody has the topic, and it cannot be made."""
    return RpcRefused(
        Code.TOPIC_NOT_FOUND,
        f"CODE: 17  DESC: No topic route info in name server for the topic: {topic}\n"
        "For more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ",
    )


def _endpoints(host: str, port: int) -> Endpoints:
    return Endpoints(scheme=_scheme(host), addresses=[Address(host=host, port=port)])


def _scheme(host: str) -> AddressScheme:
    try:
        return AddressScheme.IPv4 if ip_address(host).version == 4 else AddressScheme.IPv6
    except ValueError:
        return AddressScheme.DOMAIN_NAME
