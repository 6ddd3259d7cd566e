"""Asks the name servers for the route of a topic, and for anything else they know. Mirrors the route part of
`MQClientAPIImpl`.

`namesrv_addr` may name several servers (`;` between them): one, chosen at random, is asked until it does not answer,
then the next. Logical queues of static topics (5.x) are not followed.
"""

import logging
import os
import random
from collections.abc import Callable, Sequence
from typing import Final

from pocketmq.protocol.bodies.routes import TopicRouteData
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC
from pocketmq.protocol.requests.name_server import GetBrokerClusterInfo, GetRouteInfoByTopic
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import ReplyT, Request

from ..errors import ClientError, InvalidSetting, NotReachable, RequestRefused, RouteNotFound, UnreadableReply
from ..settings.client_settings import name_servers
from .address_server import fetch_name_servers
from .pool import ConnectionPool
from .route import Route

_log = logging.getLogger(__name__)

API_TIMEOUT_SECONDS: Final = 3.0
NO_NAME_SERVER: Final = "no name server: give namesrv_addr or set NAMESRV_ADDR"
NAMED: Final = 3
"""Brokers that an error names."""
MAX_QUEUES: Final = 65536
"""Of one topic at one broker; a route with more is refused as damaged."""


class NameServers:
    """Asks the name servers. Remembers only which of them answers."""

    def __init__(
        self,
        connections: ConnectionPool,
        namesrv_addr: str | None = None,
        *,
        timeout_seconds: float = API_TIMEOUT_SECONDS,
        address_server: str | None = None,
    ) -> None:
        """InvalidSetting if neither the setting nor NAMESRV_ADDR names a server and there is no `address_server`, the
        page that `find_servers` reads them from."""
        self.connections = connections
        self._timeout_seconds = timeout_seconds
        self.servers = name_servers(namesrv_addr, os.environ)
        if not self.servers and address_server is None:
            raise InvalidSetting(NO_NAME_SERVER)
        random.shuffle(self.servers)
        """In the order in which they are asked."""
        self.address_server = None if self.servers else address_server
        """Asked for the servers; None if they are known."""

    async def find_servers(self) -> None:
        """Read the address server's page, if the servers come from one. A failure is logged: it is read again later."""
        if self.address_server is None:
            return
        try:
            self.use(await fetch_name_servers(self.address_server))
        except ClientError as error:
            _log.warning("%s", error)

    def use(self, servers: Sequence[str]) -> None:
        """Ask these name servers from now on; the one in use stays first while it is among them."""
        current = self.servers[0] if self.servers else ""
        fresh = list(servers)
        random.shuffle(fresh)
        self.servers = sorted(fresh, key=lambda server: server != current)

    async def find(self, topic: str) -> Route:
        """The route of a topic. `RouteNotFound` if it has none, `NotReachable` if no name server answers."""
        try:
            data = await self.ask(GetRouteInfoByTopic(topic=topic), check=_check_size)
        except RequestRefused as refusal:
            if refusal.code == ResponseCode.TOPIC_NOT_EXIST:
                raise RouteNotFound(f"no route for topic {topic}") from refusal
            if refusal.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                not_one = (  # the answer of another kind of server
                    f"{self.servers[0]} is no name server, but perhaps a broker: namesrv_addr must be the address "
                    "of a name server, whose port is mostly 9876"
                )
                raise RequestRefused(refusal.code, not_one, GetRouteInfoByTopic.name) from refusal
            raise
        return Route(topic, data)

    async def why_no_route(self, create_topic: str = AUTO_CREATE_TOPIC) -> str:
        """Why neither a topic nor the template `create_topic` has a route, in words for a person. Asks for the brokers;
        empty if no name server answers."""
        try:
            brokers = sorted((await self.ask(GetBrokerClusterInfo())).broker_addr_table or {})
        except ClientError:
            return ""
        if not brokers:
            return f"no broker is registered at name server {self.servers[0]}"
        if create_topic != AUTO_CREATE_TOPIC:
            return f"it does not exist, and neither does its template {create_topic}"
        names = ", ".join(brokers[:NAMED]) + (f" and {len(brokers) - NAMED} more" if brokers[NAMED:] else "")
        why = f"is not created by a send (autoCreateTopicEnable=false at {names})"
        return f"it does not exist, and {why}: create it first"

    async def ask(self, request: Request[ReplyT], *, check: Callable[[ReplyT], None] | None = None) -> ReplyT:
        """What a request returns; the next server is asked if one does not answer, or not readably.

        `check` may raise `UnreadableReply` for an answer that cannot be true.
        """
        failure: NotReachable | None = None
        for server in list(self.servers):
            try:
                answer = await self.connections.call(server, request, timeout_seconds=self._timeout_seconds)
                if check is not None:
                    check(answer)
                return answer
            except UnreadableReply as error:
                failure = UnreadableReply(f"name server {server}: {error}")
                failure.__cause__ = error
            except NotReachable as error:
                failure = error
            if len(self.servers) > 1 and self.servers[0] == server:
                self.servers.append(self.servers.pop(0))
        if failure is None:
            raise InvalidSetting(NO_NAME_SERVER)
        raise failure


def _check_size(route: TopicRouteData) -> None:
    """Raises UnreadableReply for a route with more than MAX_QUEUES."""
    for queues in route.queue_datas:
        if max(queues.read_queue_nums, queues.write_queue_nums) > MAX_QUEUES:
            raise UnreadableReply(
                f"{GetRouteInfoByTopic.name} names {queues.read_queue_nums} queues of {queues.broker_name}"
            )
