"""What the producers and consumers of one client id share: connections, routes, heartbeats, rebalancing.

Clients with one instance name in one event loop get the same `ClientInstance`; by default the name is made unique, so
each client has its own, as in Java. The first client starts it, the last one stops it. Mirrors `MQClientInstance` and
`MQClientManager`.
"""

import asyncio
import itertools
import logging
import os
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ClassVar, Final

from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.unique_id import UniqueIdMaker
from pocketmq.protocol.requests.membership import UnregisterClient

from ..clock import wall_ms
from ..connections.address_server import FIRST_REFRESH_SECONDS, REFRESH_MS, address_server_url
from ..connections.name_servers import NameServers
from ..connections.pool import ConnectionPool
from ..connections.tls import tls_context
from ..errors import ClientClosed, ClientError, InvalidSetting
from ..settings.client_settings import local_ip
from ..tasks import Tasks, until_ended
from .broker_pushes import ServerRequestHandler
from .groups import GroupTable
from .heartbeats import Heartbeats
from .instance_config import InstanceConfig
from .rebalance_service import RebalanceService
from .route_book import RouteBook

_log = logging.getLogger(__name__)

FIRST_ROUTES_SECONDS: Final = 0.01
FIRST_HEARTBEAT_SECONDS: Final = 1.0
FIRST_PERSIST_SECONDS: Final = 10.0
ROUTE_PAUSE_SECONDS: Final = 1.0
"""Between two questions about a broker that cannot be connected to."""

_PROCESS_HASH: Final = id(ConnectionPool)
_ID_COUNTER: Final = itertools.count()
"""Message ids are counted for all instances of the process together, as in Java: ids of one millisecond differ."""


class ClientInstance:
    """Get with `ClientInstance.get`. Owned by the event loop it was made in."""

    by_loop: ClassVar["weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Instances]"] = (
        weakref.WeakKeyDictionary()
    )
    """The instances in use, by event loop and client id (official MQClientManager). Their clients keep them."""

    def __init__(self, config: InstanceConfig) -> None:
        settings = config.settings
        self.config = config
        self.settings = settings
        self.client_id = config.client_id
        self.client_ip = config.client_ip
        self.loop = asyncio.get_running_loop()
        self.api_timeout_seconds = settings.mq_client_api_timeout / 1000
        self.is_running = False
        self.groups = GroupTable()
        self._tasks = Tasks()
        self.references = 0
        """Clients that are not yet in a group, or in none at all: it does not end before they do."""
        self._opened_before: set[str] = set()
        self._asked_about: dict[str, float] = {}
        """Addresses that could not be connected to, and when a name server was asked about them."""
        self._rebalancing = RebalanceService(self.groups)
        self.connections = ConnectionPool(
            ServerRequestHandler(self.groups, self.spawn, self.rebalance_now),
            hooks=config.hooks,
            tls=tls_context(settings),
            language=settings.language,
            on_open=self._opened,
            on_failed=self._unreachable,
        )
        self.routes = RouteBook(
            NameServers(
                self.connections,
                settings.namesrv_addr,
                timeout_seconds=self.api_timeout_seconds,
                address_server=address_server_url(settings),
            ),
            vip_channel=settings.vip_channel_enabled,
        )
        self.heartbeats = Heartbeats(
            self.client_id,
            self.groups,
            self.routes.brokers,
            self.connections,
            timeout_seconds=self.api_timeout_seconds,
            use_v2=settings.use_heartbeat_v2,
        )
        self.ids = UniqueIdMaker(
            pack_host(local_ip(), 0)[:-4], os.getpid(), _PROCESS_HASH, wall_ms, counter=_ID_COUNTER
        )

    @classmethod
    def get(cls, config: InstanceConfig) -> "ClientInstance":
        """The instance of a client id in the running loop, a new one if there is none.

        InvalidSetting if other clients use it with settings that this config contradicts.
        """
        instances = cls.by_loop.setdefault(asyncio.get_running_loop(), weakref.WeakValueDictionary())
        instance = instances.get(config.client_id)
        if instance is None:
            instance = instances[config.client_id] = cls(config)
        elif differences := instance.config.differences(config):
            raise InvalidSetting(
                f"instance_name={config.settings.instance_name!r} is in use with other values of "
                f"{', '.join(differences)}: clients of one instance_name share one instance, so give them the same "
                "values, or different names"
            )
        return instance

    # -- life

    def start(self) -> None:
        """Start the periodic tasks; nothing if they run already."""
        if self.is_running:
            return
        self.is_running = True
        settings = self.settings
        name_servers = self.routes.name_servers
        if name_servers.address_server is not None:
            self._repeat(name_servers.find_servers, FIRST_REFRESH_SECONDS, REFRESH_MS)
        self._repeat(self._refresh_routes, FIRST_ROUTES_SECONDS, settings.poll_name_server_interval)
        self._repeat(self._send_heartbeats, FIRST_HEARTBEAT_SECONDS, settings.heartbeat_broker_interval)
        # Java waits 10 s. Whoever sets a short interval expects the first offsets after two of them.
        first_persist = min(FIRST_PERSIST_SECONDS, 2 * settings.persist_consumer_offset_interval / 1000)
        self._repeat(self._persist_offsets, first_persist, settings.persist_consumer_offset_interval)
        self.spawn(self._rebalancing.run(), "rebalance")

    async def shutdown(self) -> None:
        """Stop tasks and connections, unless a group or a holder still needs them."""
        if self.groups or self.references:
            return
        self.is_running = False
        instances = self.by_loop.get(self.loop)
        if instances is not None and instances.get(self.client_id) is self:
            del instances[self.client_id]
        tasks = self._tasks.cancel() | self.routes.close() | self.heartbeats.close()
        try:
            await until_ended(tasks)
        finally:
            self.connections.close()
        await self.connections.until_lost()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run something in the background until it ends or the instance does; failures are logged."""
        return self._tasks.spawn(work, f"{self.client_id} {name}")

    def check_loop(self) -> None:
        """`ClientClosed` outside the loop and thread the instance belongs to."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not self.loop:
            raise ClientClosed(
                "a producer or consumer is used in the event loop and thread that started it only"
            )

    # -- groups

    async def unregister(self, request: UnregisterClient) -> None:
        """Remove a group and unregister it at every broker at once; a broker that does not answer is waited for as long
        as for one request, and one without a connection not at all: it has dropped the client already."""
        self.groups.consumers.pop(request.consumer_group or "", None)
        self.groups.producers.pop(request.producer_group or "", None)
        known = self.routes.brokers.all_addresses()
        live = {address for address in known if self.connections.live(address) is not None}
        if self.groups or self.references:  # the instance goes on, and so do its heartbeats
            for address in known - live:
                self.spawn(self._unregister_at(address, request), f"unregister at {address}")
        await asyncio.gather(*(self._unregister_at(address, request) for address in live))

    async def _unregister_at(self, address: str, request: UnregisterClient) -> None:
        """After the last heartbeat to this broker that names the group. Official brokers handle heartbeats and
        unregistrations in different threads: if one overtook the other, a member that is gone would stay in the group,
        with a share of the queues (official unregisterClientWithLock)."""
        try:
            async with asyncio.timeout(self.api_timeout_seconds):
                await self.heartbeats.settled(address)
                if self.connections.live(address) is not None:
                    await self.connections.call(address, request, timeout_seconds=self.api_timeout_seconds)
        except (ClientError, TimeoutError) as error:
            _log.warning("unregister at %s: %s", address, str(error) or "no answer in time")

    # -- periodic work

    def rebalance_now(self) -> None:
        """Rebalance as soon as the minimum pause after the last round allows."""
        self._rebalancing.rebalance_now()

    def _repeat(self, action: Callable[[], Awaitable[None]], first_seconds: float, period_ms: int) -> None:
        async def forever() -> None:
            await asyncio.sleep(first_seconds)
            while True:
                try:
                    await action()
                except Exception:
                    _log.exception("%s failed", action)
                await asyncio.sleep(period_ms / 1000)

        self.spawn(forever(), getattr(action, "__name__", "periodic"))

    async def _refresh_routes(self) -> None:
        for producer in self.groups.producers.values():
            producer.forget_unused_topics()
        in_use = self.groups.topics()
        self.routes.forget_unused(in_use)
        await self.routes.refresh(in_use)

    async def _send_heartbeats(self) -> None:
        self.routes.forget_offline_brokers()
        known = self.routes.brokers.all_addresses()
        self._opened_before &= known
        self._asked_about = {address: at for address, at in self._asked_about.items() if address in known}
        await self.heartbeats.send()

    async def _persist_offsets(self) -> None:
        for consumer in [*self.groups.consumers.values()]:
            await consumer.persist_offsets()

    # -- connections

    def _opened(self, address: str) -> None:
        """A broker must learn which groups a new connection belongs to."""
        if not self.is_running or address not in self.routes.brokers.all_addresses():
            return
        if address in self._opened_before:
            for consumer in [*self.groups.consumers.values()]:
                consumer.reconnected(address)
        self._opened_before.add(address)
        greets = self.settings.enable_heartbeat_channel_event_listener
        if greets and not self.heartbeats.is_under_way(address):
            self.spawn(self._first_heartbeat(address), f"heartbeat to {address}")

    def _unreachable(self, address: str) -> None:
        """A broker may have moved: ask for a route that names its address, also if no group would."""
        now = self.loop.time()
        topic = self.routes.topic_at(address)
        if topic is None or now < self._asked_about.get(address, -ROUTE_PAUSE_SECONDS) + ROUTE_PAUSE_SECONDS:
            return
        self._asked_about[address] = now
        self.spawn(self.routes.refresh([topic]), f"route of {topic}")

    async def _first_heartbeat(self, address: str) -> None:
        if await self.heartbeats.send_to(address):
            self.rebalance_now()


Instances = weakref.WeakValueDictionary[str, ClientInstance]
