"""Which broker has which queues of a topic, as a name server tells. Mirrors the route part of `MQClientInstance`.

`namesrv_addr` may name several servers (`;` between them): one, chosen at random, is asked until it does not answer,
then the next. Logical queues of static topics (5.x) are not followed.
"""

import os
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from pocketmq.protocol.bodies.routes import TopicRouteData
from pocketmq.protocol.errors import BodyError, ProtocolError
from pocketmq.protocol.message.flags import PERM_READ, PERM_WRITE
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.name_server import GetRouteInfoByTopic
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import Request

from ..errors import (
    ClientError,
    NotReachable,
    RequestRefused,
    RouteNotFound,
    UnreadableReply,
)
from ..settings.client_settings import name_servers
from .pool import Connections

MASTER_ID: Final = 0
API_TIMEOUT_SECONDS: Final = 3.0
NO_NAME_SERVER: Final = "no name server: give namesrv_addr or set NAMESRV_ADDR"
MAX_QUEUES: Final = 65536
"""Of one topic at one broker, beyond which a route is taken for garbage."""

ReadT = TypeVar("ReadT")


class Route:
    """One topic's brokers and queues at one moment."""

    def __init__(self, topic: str, data: TopicRouteData) -> None:
        self.topic = topic
        self.data = msgspec.structs.replace(
            data,
            queue_datas=sorted(data.queue_datas, key=lambda one: one.broker_name or ""),
            broker_datas=sorted(data.broker_datas, key=lambda one: one.broker_name or ""),
        )
        self.addresses = {
            broker.broker_name: broker.broker_addrs
            for broker in self.data.broker_datas
            if broker.broker_name and broker.broker_addrs
        }
        """Broker name to its addresses by id; 0 is the master."""
        self.queues = tuple(self._writable())
        """Queues a producer may use (official TopicPublishInfo)."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Route) and self.data == other.data

    __hash__ = None  # type: ignore[assignment]

    @property
    def is_ordered(self) -> bool:
        """The name server holds an order configuration for the topic."""
        return bool(self.data.order_topic_conf)

    def master(self, broker_name: str) -> str:
        """`host:port` of a broker's master; `RouteNotFound` where it has none now."""
        address = self.addresses.get(broker_name, {}).get(MASTER_ID)
        if address is None:
            raise RouteNotFound(f"no master of broker {broker_name} for topic {self.topic}")
        return address

    def write_queues(self) -> list[MessageQueue]:
        """Queues a producer may use, sorted by broker name."""
        return list(self.queues)

    def read_queues(self) -> list[MessageQueue]:
        """Queues a consumer reads, sorted by broker name; also of a broker without a master."""
        return [
            MessageQueue(self.topic, queues.broker_name or "", queue_id)
            for queues in self.data.queue_datas
            if queues.perm & PERM_READ
            for queue_id in range(queues.read_queue_nums)
        ]

    def for_new_topic(self, topic: str, queue_nums: int) -> "Route":
        """This template's route as the route of a topic that a send is about to make."""
        capped = []
        for queues in self.data.queue_datas:
            nums = min(queue_nums, queues.read_queue_nums)
            capped.append(msgspec.structs.replace(queues, read_queue_nums=nums, write_queue_nums=nums))
        return Route(topic, msgspec.structs.replace(self.data, queue_datas=capped))

    def _writable(self) -> list[MessageQueue]:
        if self.data.order_topic_conf:
            return _ordered_queues(self.topic, self.data.order_topic_conf)
        return [
            MessageQueue(self.topic, queues.broker_name, queue_id)
            for queues in self.data.queue_datas
            if queues.broker_name
            and queues.perm & PERM_WRITE
            and MASTER_ID in self.addresses.get(queues.broker_name, {})
            for queue_id in range(queues.write_queue_nums)
        ]


class Routes:
    """Asks the name servers. Keeps nothing but which of them answers."""

    def __init__(
        self,
        connections: Connections,
        namesrv_addr: str | None = None,
        *,
        timeout_seconds: float = API_TIMEOUT_SECONDS,
        finds_servers: bool = False,
    ) -> None:
        """`finds_servers`: `use` will be called before the first question, so that none need be known yet."""
        self._connections = connections
        self._timeout_seconds = timeout_seconds
        self.servers = name_servers(namesrv_addr, os.environ)
        if not self.servers and not finds_servers:
            raise ClientError(NO_NAME_SERVER)
        random.shuffle(self.servers)
        """In the order in which they are asked."""

    def use(self, servers: Sequence[str]) -> None:
        """Ask these name servers from now on; the one in use stays first while it is among them."""
        current = self.servers[0] if self.servers else ""
        fresh = list(servers)
        random.shuffle(fresh)
        self.servers = sorted(fresh, key=lambda server: server != current)

    async def find(self, topic: str) -> Route:
        """The route of a topic. `RouteNotFound` where it has none, `NotReachable` where no name server answers."""
        try:
            data = await self._ask(GetRouteInfoByTopic(topic=topic), _read_route)
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.TOPIC_NOT_EXIST:
                raise RouteNotFound(f"no route for topic {topic}") from refusal
            raise
        return Route(topic, data)

    async def ask(self, request: Request[Any]) -> bytes:
        """The body a name server answers; the next one is asked where one does not answer."""
        return await self._ask(request, bytes)

    async def _ask(self, request: Request[Any], read: Callable[[bytes], ReadT]) -> ReadT:
        """What `read` makes of the answer; one that cannot be read counts as none."""
        failure: NotReachable | None = None
        for server in list(self.servers):
            try:
                body = await self._connections.call_for_body(
                    server, request, timeout_seconds=self._timeout_seconds
                )
                return read(body)
            except NotReachable as error:
                failure = error
            except ProtocolError as error:
                failure = UnreadableReply(f"{server} answered {request.name} with: {error}")
                failure.__cause__ = error
            if len(self.servers) > 1 and self.servers[0] == server:
                self.servers.append(self.servers.pop(0))
        if failure is None:
            raise ClientError(NO_NAME_SERVER)
        raise failure


def _read_route(body: bytes) -> TopicRouteData:
    """Raises ProtocolError for what is no route, or one with more queues than can be meant."""
    data = TopicRouteData.decode(body)
    for queues in data.queue_datas:
        if max(queues.read_queue_nums, queues.write_queue_nums) > MAX_QUEUES:
            raise BodyError(f"a route with {queues.read_queue_nums} queues of {queues.broker_name}")
    return data


def _ordered_queues(topic: str, configuration: str) -> list[MessageQueue]:
    """`broker-a:4;broker-b:4`: the first queues of each broker, whatever its route says."""
    queues = []
    for part in configuration.split(";"):
        broker_name, _, count = part.partition(":")
        if broker_name and count.strip().isdigit():
            queues += [MessageQueue(topic, broker_name, queue_id) for queue_id in range(int(count))]
    return queues
