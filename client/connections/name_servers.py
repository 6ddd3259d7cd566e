"""Which broker has which queues of a topic, as a name server tells. Mirrors the route part of `MQClientInstance`.

`namesrv_addr` may name several servers (`;` between them): one, chosen at random, is asked until it does not answer,
then the next. Logical queues of static topics (5.x) are not followed.
"""

import os
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from pocketmq.protocol.bodies.routes import TopicRouteData
from pocketmq.protocol.errors import BodyError, ProtocolError
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
from .pool import ConnectionPool
from .route import Route

API_TIMEOUT_SECONDS: Final = 3.0
NO_NAME_SERVER: Final = "no name server: give namesrv_addr or set NAMESRV_ADDR"
MAX_QUEUES: Final = 65536
"""Of one topic at one broker, beyond which a route is taken for garbage."""

ReadT = TypeVar("ReadT")


class NameServers:
    """Asks the name servers. Keeps nothing but which of them answers."""

    def __init__(
        self,
        connections: ConnectionPool,
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
