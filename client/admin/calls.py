"""What every administrative call stands on: a connection to any server, the cluster's members, a topic's brokers.

Calls to name servers ask one of them, the next where one does not answer; settings go to all of them, as in Java.
Not here: the calls themselves (`topics.py` and so on). Official class: DefaultMQAdminExtImpl.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

from pocketmq.protocol.bodies.body import PropertiesText
from pocketmq.protocol.bodies.routes import BrokerData, ClusterInfo, TopicRouteData
from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.requests.name_server import GetBrokerClusterInfo
from pocketmq.protocol.text.java_properties import parse_properties, set_properties
from pocketmq.protocol.wire.command import Body
from pocketmq.protocol.wire.schema import Request, RequestBody

from ..connections.route import MASTER_ID
from ..errors import ClientClosed, ClientError, NotReachable, RouteNotFound
from ..hooks.rpc_hooks import RPCHook
from ..instance.instance import ClientInstance
from ..instance.instance_config import instance_config, settings_of
from ..offsets.offset_questions import OffsetQuestions
from ..settings.client_settings import ClientSettings
from ..settings.keywords import ClientOptions

TIMEOUT_MS: Final = 5_000
TOOLS_GROUP: Final = "TOOLS_CONSUMER"
"""The group in whose name messages are read; it commits nothing."""
UNKNOWN_CLUSTER: Final = (
    "Make sure the specified clusterName exists or the name server connected to is correct."
)

ReplyT = TypeVar("ReplyT")


class AdminCalls:
    """Life and plumbing of `AdminClient`. Settings are those of `ClientSettings`; `timeout_ms` bounds one request."""

    def __init__(
        self,
        *,
        settings: ClientSettings | None = None,
        timeout_ms: int = TIMEOUT_MS,
        hooks: Sequence[RPCHook] = (),
        **options: Unpack[ClientOptions],
    ) -> None:
        if timeout_ms < 1:
            raise ClientError(f"timeout_ms is {timeout_ms}: expected at least 1")
        self.settings = settings_of(ClientSettings, settings, options)
        self.timeout_ms = timeout_ms
        self.hooks = tuple(hooks)
        self._instance: ClientInstance | None = None
        self._closed = False

    # -- life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    async def start(self) -> None:
        """Be ready for calls. Connections are opened when first needed; nothing runs in the background."""
        if self._instance is not None or self._closed:
            raise ClientClosed("the admin client was started before")
        instance = ClientInstance.get(instance_config(self.settings, self.hooks))
        try:
            await instance.find_name_servers()
        except BaseException:
            await instance.shutdown()
            raise
        self._instance = instance

    async def shutdown(self) -> None:
        """Close the connections."""
        instance, self._instance = self._instance, None
        self._closed = True
        if instance is not None:
            await instance.shutdown()

    @property
    def _running(self) -> ClientInstance:
        if self._instance is None:
            raise ClientClosed("the admin client is not started, or was shut down")
        self._instance.check_loop()
        return self._instance

    @property
    def _questions(self) -> OffsetQuestions:
        """Asks for the offsets of queues."""
        return OffsetQuestions(self._running)

    # -- one request

    async def _call(
        self,
        address: str,
        request: Request[ReplyT],
        body: RequestBody | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> ReplyT:
        """What the request declares of its reply; errors as `Connection.call`."""
        seconds = (timeout_ms or self.timeout_ms) / 1000
        return await self._running.connections.call(address, request, body, timeout_seconds=seconds)

    async def _body(
        self, address: str, request: Request[Any], body: Body | None = None, *, timeout_ms: int | None = None
    ) -> bytes:
        """The reply's body; `RequestRefused`, `NotReachable`."""
        seconds = (timeout_ms or self.timeout_ms) / 1000
        return await self._running.connections.call_for_body(address, request, body, timeout_seconds=seconds)

    async def _ask(self, request: Request[ReplyT]) -> ReplyT:
        """The header of a name server's reply; the next one is asked where one does not answer."""
        failure: NotReachable | None = None
        for server in list(self._running.routes.name_servers.servers):
            try:
                return await self._call(server, request)
            except NotReachable as error:
                failure = error
        raise failure or ClientError("no name server: give namesrv_addr or set NAMESRV_ADDR")

    async def _tell_name_servers(self, request: Request[Any], body: RequestBody | None = None) -> None:
        """Every name server is told, also after one that refused or was gone; the last failure is raised then."""
        failure: ClientError | None = None
        for server in self.name_servers:
            try:
                await self._call(server, request, body)
            except ClientError as error:
                failure = error
        if failure is not None:
            raise failure

    # -- who is there

    @property
    def name_servers(self) -> list[str]:
        """Addresses of the name servers in use, sorted (official getNameServerAddressList)."""
        return sorted(self._running.routes.name_servers.servers)

    async def cluster_info(self) -> ClusterInfo:
        """Every broker group with its addresses, and the groups of each cluster (examineBrokerClusterInfo)."""
        return await self._running.routes.name_servers.ask(GetBrokerClusterInfo())

    async def cluster_brokers(self, cluster: str) -> list[BrokerData]:
        """The broker groups of a cluster by name; `ClientError` where no cluster has that name."""
        info = await self.cluster_info()
        names = (info.cluster_addr_table or {}).get(cluster)
        if names is None:
            raise ClientError(UNKNOWN_CLUSTER)
        table = info.broker_addr_table or {}
        return [table[name] for name in sorted(names) if name in table]

    async def master_addresses(self, cluster: str) -> list[str]:
        """The masters of a cluster (official CommandUtil.fetchMasterAddrByClusterName)."""
        brokers = await self.cluster_brokers(cluster)
        return [addrs[MASTER_ID] for broker in brokers if MASTER_ID in (addrs := broker.broker_addrs or {})]

    async def broker_addresses(self, cluster: str) -> list[str]:
        """Masters and slaves of a cluster (official fetchMasterAndSlaveAddrByClusterName)."""
        brokers = await self.cluster_brokers(cluster)
        return [address for broker in brokers for _, address in sorted((broker.broker_addrs or {}).items())]

    async def broker_name_at(self, address: str) -> str:
        """The name of the broker group an address belongs to; `ClientError` where it is none's."""
        table = (await self.cluster_info()).broker_addr_table or {}
        for name, broker in sorted(table.items()):
            if address in (broker.broker_addrs or {}).values():
                return name
        raise ClientError(UNKNOWN_CLUSTER)

    async def topic_route(self, topic: str) -> TopicRouteData:
        """Brokers and queues of a topic (examineTopicRouteInfo); `RouteNotFound` where it has none."""
        route = await self._running.routes.name_servers.find(topic)
        self._running.routes.keep_addresses(route.addresses)
        return route.data

    async def _targets(self, address: str | None, cluster: str | None) -> list[str]:
        """The broker at an address, or the masters of a cluster; exactly one of the two is given."""
        if (address is None) == (cluster is None):
            raise ClientError("give either the address of a broker or the name of a cluster")
        return [address] if address is not None else await self.master_addresses(cluster or "")

    async def _brokers_of(self, topic: str) -> list[str]:
        """One address of each broker group of a topic, its master where it has one (selectBrokerAddr)."""
        route = await self.topic_route(topic)
        chosen = (one_address(broker) for broker in route.broker_datas)
        return [address for address in chosen if address is not None]

    async def _first_route(self, topics: Iterable[str]) -> TopicRouteData:
        """The route of the first of these topics that has one; the last refusal where none has."""
        failure: RouteNotFound | None = None
        for topic in topics:
            try:
                return await self.topic_route(topic)
            except RouteNotFound as error:
                failure = failure or error
        raise failure or RouteNotFound("no topic given")

    async def queues(self, topic: str) -> list[MessageQueue]:
        """Readable queues of a topic, sorted (fetchSubscribeMessageQueues)."""
        return (await self._running.routes.find_route(topic)).read_queues()


def one_address(broker: BrokerData) -> str | None:
    """The master of a broker group, else any slave (official BrokerData.selectBrokerAddr)."""
    addresses = broker.broker_addrs or {}
    return addresses.get(MASTER_ID) or (random.choice(list(addresses.values())) if addresses else None)


def settings_text(settings: Mapping[str, str]) -> PropertiesText:
    """Settings as the body of an update."""
    return PropertiesText(set_properties("", settings))


def parse_settings(text: PropertiesText) -> dict[str, str]:
    """The settings in the body of a reply; the last of equal keys wins."""
    return {entry.key: entry.value for entry in parse_properties(text)}
