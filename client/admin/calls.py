"""The parts that all administrative calls share: one request to a server, the members of a cluster, brokers of a topic.

The calls themselves are in the other files. Official class: DefaultMQAdminExtImpl.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypedDict, TypeVar, Unpack

from pocketmq.protocol.bodies.routes import BrokerData, ClusterInfo, TopicRouteData
from pocketmq.protocol.errors import ProtocolError
from pocketmq.protocol.requests.name_server import GetBrokerClusterInfo
from pocketmq.protocol.wire.schema import ReplyT, Request, RequestBody

from ..arguments import checks_arguments
from ..connections.route import MASTER_ID
from ..errors import ClientError, InvalidArgument, InvalidSetting, RouteNotFound, UnreadableReply
from ..hooks.rpc_hooks import RPCHook
from ..instance.instance_config import settings_of
from ..offsets.queue_offsets import QueueReader
from ..settings.client_settings import ClientSettings
from ..settings.keywords import ClientOptions

TIMEOUT_MS: Final = 5_000
TOOLS_GROUP: Final = "TOOLS_CONSUMER"
"""The group in whose name messages are read; it commits nothing."""
UNKNOWN_CLUSTER: Final = (
    "Make sure the specified clusterName exists or the name server connected to is correct."
)

ReadT = TypeVar("ReadT")


class Place(TypedDict, total=False):
    """Where to change something; exactly one of the two is given."""

    address: str | None
    """A broker's `host:port`."""
    cluster: str | None
    """The masters of a cluster."""


@checks_arguments
class AdminCalls(QueueReader):
    """Settings are those of `ClientSettings`; `timeout_ms` is for one request. It is in no group."""

    _display_name = "AdminClient"

    def __init__(
        self,
        *,
        settings: ClientSettings | None = None,
        timeout_ms: int = TIMEOUT_MS,
        hooks: Sequence[RPCHook] = (),
        **options: Unpack[ClientOptions],
    ) -> None:
        if timeout_ms < 1:
            raise InvalidArgument(f"timeout_ms must be at least 1, got {timeout_ms}")
        chosen = settings_of(ClientSettings, settings, options)
        if chosen.namespace:
            raise InvalidSetting(
                f"namespace={chosen.namespace!r} changes no name here: write them as brokers have them, "
                f"'{chosen.namespace}%Orders', or set namespace_v2"
            )
        super().__init__("", chosen, hooks)
        self.timeout_ms = timeout_ms
        self.hooks = tuple(hooks)

    # -- one request

    async def _call(
        self,
        address: str,
        request: Request[ReplyT],
        body: RequestBody | None = None,
        *,
        is_slow: bool = False,
    ) -> ReplyT:
        """What the request returns; `RequestRefused`, `NotReachable`. A slow request gets three times as long."""
        connections, seconds = self._require_running().connections, self._seconds(is_slow)
        return await connections.call(address, request, body, timeout_seconds=seconds)

    async def _read_body(
        self, address: str, request: Request[Any], read: Callable[[bytes], ReadT], *, is_slow: bool = False
    ) -> ReadT:
        """The body of a reply that has header fields too. Errors as `_call`."""
        connections, seconds = self._require_running().connections, self._seconds(is_slow)
        body = await connections.call_for_body(address, request, timeout_seconds=seconds)
        try:
            return read(body)
        except ProtocolError as error:
            raise UnreadableReply(
                f"the reply of {address} to {request.name} cannot be read: {error}"
            ) from error

    def _seconds(self, is_slow: bool) -> float:
        return self.timeout_ms * (3 if is_slow else 1) / 1000

    async def _ask(self, request: Request[ReplyT]) -> ReplyT:
        """What a name server returns; the next one is asked if one does not answer."""
        return await self._require_running().routes.name_servers.ask(request)

    async def _call_name_servers(self, request: Request[Any]) -> None:
        """Every name server gets the request, also after one that failed; then the last failure is raised."""
        failure: ClientError | None = None
        for server in self.name_servers:
            try:
                await self._call(server, request)
            except ClientError as error:
                failure = error
        if failure is not None:
            raise failure

    # -- the cluster

    @property
    def name_servers(self) -> list[str]:
        """Addresses of the name servers in use, sorted (official getNameServerAddressList)."""
        return sorted(self._require_running().routes.name_servers.servers)

    async def cluster_info(self) -> ClusterInfo:
        """Every broker group with its addresses, and the groups of each cluster (examineBrokerClusterInfo)."""
        return await self._ask(GetBrokerClusterInfo())

    async def cluster_brokers(self, cluster: str) -> list[BrokerData]:
        """The broker groups of a cluster by name; `InvalidArgument` if no cluster has that name."""
        info = await self.cluster_info()
        names = (info.cluster_addr_table or {}).get(cluster)
        if names is None:
            raise InvalidArgument(UNKNOWN_CLUSTER)
        table = info.broker_addr_table or {}
        return [table[name] for name in sorted(names) if name in table]

    async def master_addresses(self, cluster: str) -> list[str]:
        """The masters of a cluster (official CommandUtil.fetchMasterAddrByClusterName)."""
        masters = map(master_of, await self.cluster_brokers(cluster))
        return [address for address in masters if address is not None]

    async def broker_addresses(self, cluster: str) -> list[str]:
        """Masters and slaves of a cluster (official fetchMasterAndSlaveAddrByClusterName)."""
        brokers = await self.cluster_brokers(cluster)
        return [address for broker in brokers for _, address in sorted((broker.broker_addrs or {}).items())]

    async def broker_name_at(self, address: str) -> str:
        """The name of the broker group an address belongs to; `InvalidArgument` if it belongs to none."""
        table = (await self.cluster_info()).broker_addr_table or {}
        for name, broker in sorted(table.items()):
            if address in (broker.broker_addrs or {}).values():
                return name
        raise InvalidArgument(UNKNOWN_CLUSTER)

    async def topic_route(self, topic: str) -> TopicRouteData:
        """Brokers and queues of a topic (examineTopicRouteInfo); `RouteNotFound` if it has none."""
        routes = self._require_running().routes
        route = await routes.name_servers.find(topic)
        routes.brokers.keep(route.addresses)
        return route.data

    # -- which servers a call goes to

    async def _change(
        self,
        place: Place,
        request: Request[Any],
        body: RequestBody | None = None,
        *,
        with_slaves: bool = False,
    ) -> list[str]:
        """One broker of a place after the other gets the request, and if it is a cluster `with_slaves` its slaves too;
        the brokers."""
        address, cluster = place.get("address"), place.get("cluster")
        if (address is None) == (cluster is None):
            raise InvalidArgument("give either the address of a broker or the name of a cluster")
        if address is not None:
            targets = [address]
        else:
            targets = await (self.broker_addresses if with_slaves else self.master_addresses)(cluster or "")
        for target in targets:
            await self._call(target, request, body)
        return targets

    async def _brokers_of(self, topic: str) -> list[str]:
        """One address of each broker group of a topic, its master if it has one (selectBrokerAddr)."""
        route = await self.topic_route(topic)
        chosen = (one_address(broker) for broker in route.broker_datas)
        return [address for address in chosen if address is not None]

    async def _any_broker_of(self, topic: str) -> str:
        """The address of some broker of a topic; `RouteNotFound` if its route names none."""
        addresses = await self._brokers_of(topic)
        if not addresses:
            raise RouteNotFound(f"no broker for topic {topic}")
        return random.choice(addresses)

    async def _first_route(self, topics: Iterable[str]) -> TopicRouteData:
        """The route of the first of these topics that has one; the first failure if none has."""
        failure: RouteNotFound | None = None
        for topic in topics:
            try:
                return await self.topic_route(topic)
            except RouteNotFound as error:
                failure = failure or error
        raise failure or RouteNotFound("no topic given")


def master_of(broker: BrokerData | None) -> str | None:
    """The master of a broker group; `None` if it has none, or does not exist."""
    return None if broker is None else (broker.broker_addrs or {}).get(MASTER_ID)


def one_address(broker: BrokerData) -> str | None:
    """The master of a broker group, or if it has none any slave (official BrokerData.selectBrokerAddr)."""
    return master_of(broker) or random.choice(list((broker.broker_addrs or {}).values()) or [None])
