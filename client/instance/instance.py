"""What the producers and consumers of one client id share: connections, routes, heartbeats, the rebalance rhythm.

Facades with one instance name in one event loop get the same `ClientInstance`; by default the name is made unique, so
each has its own, as in Java. The first facade starts it, the last one stops it. Mirrors `MQClientInstance` and
`RebalanceService`. What brokers ask of a client is in `broker_pushes.py`.
"""

import asyncio
import logging
import os
import random
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pocketmq.protocol.message.message_queue import MessageQueue
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.topics import AUTO_CREATE_TOPIC, is_retry_topic
from pocketmq.protocol.message.unique_id import UniqueIdMaker
from pocketmq.protocol.requests.membership import UnregisterClient

from ..clock import wall_ms
from ..connections.address_server import FIRST_REFRESH_SECONDS, REFRESH_MS, fetch_name_servers
from ..connections.name_servers import NameServers
from ..connections.pool import ConnectionPool
from ..connections.route import MASTER_ID, Route
from ..errors import ClientClosed, ClientError, RouteNotFound
from ..settings.local_address import local_ip
from ..tasks import until_ended
from .broker_addresses import BrokerAddresses
from .broker_pushes import BrokerPushes
from .groups import GroupConsumer, GroupProducer
from .heartbeats import Heartbeats
from .instance_config import InstanceConfig

_log = logging.getLogger("pocketmq.client")

FIRST_HEARTBEAT_SECONDS: Final = 1.0
FIRST_PERSIST_SECONDS: Final = 10.0
UNBALANCED_WAIT_SECONDS: Final = 1.0


class ClientInstance:
    """Get with `ClientInstance.get`, then `register_*`; `shutdown` when the group is unregistered."""

    def __init__(self, config: InstanceConfig) -> None:
        self.config = config
        self.client_id = config.client_id
        self.client_ip = config.client_ip
        self.loop = asyncio.get_running_loop()
        self.consumers: dict[str, GroupConsumer] = {}
        self.producers: dict[str, GroupProducer] = {}
        self.routes: dict[str, Route] = {}
        self.templates: dict[str, Route] = {}
        """Routes of topics that exist only once somebody has sent to them."""
        self.brokers = BrokerAddresses()
        self.connections = ConnectionPool(
            BrokerPushes(self),
            hooks=config.hooks,
            tls=config.tls,
            header_type=config.header_type,
            language=config.language,
            on_open=self._opened,
        )
        self.name_servers = NameServers(
            self.connections,
            config.namesrv_addr,
            timeout_seconds=self.api_timeout_seconds,
            finds_servers=config.address_server is not None,
        )
        self._asks_address_server = not self.name_servers.servers
        self.heartbeats = Heartbeats(self, use_v2=config.use_heartbeat_v2, at_once=config.heartbeats_at_once)
        self.ids = UniqueIdMaker(pack_host(local_ip(), 0)[:-4], os.getpid(), id(self.loop), wall_ms)
        self.is_running = False
        self._expected = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._finding: dict[str, asyncio.Lock] = {}
        self._rebalance_wanted = asyncio.Event()
        self._opened_before: set[str] = set()

    @property
    def api_timeout_seconds(self) -> float:
        return self.config.mq_client_api_timeout / 1000

    @classmethod
    def get(cls, config: InstanceConfig) -> "ClientInstance":
        """The instance of a client id in the running loop, made where there is none (official MQClientManager)."""
        loop = asyncio.get_running_loop()
        table = _instances.setdefault(loop, {})
        instance = table.get(config.client_id)
        if instance is None:
            instance = table[config.client_id] = cls(config)
        return instance

    # -- life

    def start(self) -> None:
        """Start the periodic tasks; nothing where they run already."""
        if self.is_running:
            return
        self.is_running = True
        config = self.config
        if self._asks_address_server:
            self._repeat(self.find_name_servers, FIRST_REFRESH_SECONDS, REFRESH_MS)
        self._repeat(self.refresh_routes, 0.01, config.poll_name_server_interval)
        self._repeat(self._beat, FIRST_HEARTBEAT_SECONDS, config.heartbeat_broker_interval)
        first_persist = min(FIRST_PERSIST_SECONDS, config.persist_consumer_offset_interval / 500)
        self._repeat(self._persist_offsets, first_persist, config.persist_consumer_offset_interval)
        self.spawn(self._rebalance_forever(), "rebalance")

    async def shutdown(self) -> None:
        """Stop tasks and connections, unless another group still needs them, or soon will."""
        if self.consumers or self.producers or self._expected:
            return
        self.is_running = False
        _instances.get(self.loop, {}).pop(self.client_id, None)
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        try:
            await until_ended(tasks)
        finally:
            self.connections.close()

    @contextmanager
    def expecting(self) -> Iterator[None]:
        """While a group makes its parts it is in no table yet, and a client without a group is in none ever, but the
        instance must not end."""
        self._expected += 1
        try:
            yield
        finally:
            self._expected -= 1

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run something beside everything else until it ends or the instance does; failures are logged."""
        task = self.loop.create_task(work, name=f"{self.client_id} {name}")
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

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

    def register_consumer(self, consumer: GroupConsumer) -> None:
        if consumer.group in self.consumers:
            raise ClientError(
                f"The consumer group[{consumer.group}] has been created before, specify another name please."
            )
        self.consumers[consumer.group] = consumer

    def register_producer(self, producer: GroupProducer) -> None:
        if producer.group in self.producers:
            raise ClientError(
                f"The producer group[{producer.group}] has been created before, specify another name please."
            )
        self.producers[producer.group] = producer

    async def unregister_consumer(self, group: str) -> None:
        """Take a group off the tables and tell every broker, after the last heartbeat that names it.

        Official brokers take heartbeats and farewells in different threads: one that overtakes the other would leave a
        member that is gone in the group, with a share of the queues (official unregisterClientWithLock).
        """
        self.consumers.pop(group, None)
        await self.heartbeats.settled()
        await self._unregister(UnregisterClient(client_id=self.client_id, consumer_group=group))

    async def unregister_producer(self, group: str) -> None:
        """The same for a group of producers."""
        self.producers.pop(group, None)
        await self.heartbeats.settled()
        await self._unregister(UnregisterClient(client_id=self.client_id, producer_group=group))

    def rebalance_now(self) -> None:
        """Start a round as soon as the minimum distance from the last one allows."""
        self._rebalance_wanted.set()

    # -- routes and addresses

    async def find_name_servers(self) -> None:
        """Ask the address server, where name servers come from one; a failure is logged, for it is asked again."""
        url = self.config.address_server
        if url is None or not self._asks_address_server:
            return
        try:
            self.name_servers.use(await fetch_name_servers(url))
        except ClientError as error:
            _log.warning("%s", error)

    def vip(self, address: str) -> str:
        """Where a broker takes what is not for its main port: port minus 2 with `vip_channel_enabled`, else the same
        (official MixAll.brokerVIPChannel)."""
        if not self.config.vip_channel:
            return address
        host, _, port = address.rpartition(":")
        return f"{host}:{int(port) - 2}"

    def route(self, topic: str) -> Route | None:
        """What is known of a topic without asking."""
        return self.routes.get(topic) or self.templates.get(topic)

    async def find_route(self, topic: str) -> Route:
        """Ask a name server and keep the answer. `RouteNotFound`, `NotReachable` as `NameServers.find`."""
        known = self.routes.get(topic)
        async with self._finding.setdefault(topic, asyncio.Lock()):
            fresh = self.routes.get(topic)
            if fresh is not None and fresh is not known:
                return fresh  # somebody else asked while this one waited
            route = await self.name_servers.find(topic)
            if known is None or known != route:
                self.routes[topic] = route
                self.brokers.keep(route.addresses)
            self.templates.pop(topic, None)
            return self.routes[topic]

    async def find_publish_route(self, topic: str, create_topic: str, queue_nums: int) -> Route:
        """The route to send to a topic: its own, or that of the template where it does not exist yet."""
        try:
            route = await self.find_route(topic)
            if route.queues:
                return route
        except RouteNotFound:
            if create_topic == topic:
                raise
        try:
            template = await self.name_servers.find(create_topic)
        except RouteNotFound as error:
            raise RouteNotFound(f"No route info of this topic: {topic}") from error
        route = self.templates[topic] = template.for_new_topic(topic, queue_nums)
        self.brokers.keep(route.addresses)
        return route

    async def refresh_routes(self) -> None:
        """Ask for every topic that is read or written; what cannot be found stays as it was."""
        topics = {topic for consumer in self.consumers.values() for topic in consumer.subscribed_topics()}
        topics |= {topic for producer in self.producers.values() for topic in producer.published_topics()}
        for topic in topics:
            try:
                await self.find_route(topic)
            except RouteNotFound as error:
                if not is_retry_topic(topic) and topic != AUTO_CREATE_TOPIC:
                    _log.debug("%s", error)
            except ClientError as error:
                _log.warning("route of %s: %s", topic, error)

    async def master_or_find(self, queue: MessageQueue) -> str:
        """The master's address, asking a name server once where it is unknown; else `RouteNotFound`."""
        address = self.brokers.master(queue.broker_name)
        if address is None:
            await self.find_route(queue.topic)
            address = self.known_master(queue)
        return address

    def known_master(self, queue: MessageQueue) -> str:
        """The master's address as the routes asked for so far tell it; else `RouteNotFound`."""
        address = self.brokers.master(queue.broker_name)
        if address is None:
            raise RouteNotFound(f"The broker[{queue.broker_name}] not exist")
        return address

    async def any_broker(self, topic: str) -> str:
        """Some broker of a topic: its master, else any address of it (official findBrokerAddrByTopic)."""
        route = self.routes.get(topic) or await self.find_route(topic)
        if not route.addresses:
            raise RouteNotFound(f"no broker for topic {topic}")
        by_id = route.addresses[random.choice(sorted(route.addresses))]
        return by_id.get(MASTER_ID) or random.choice(list(by_id.values()))

    # -- periodic work

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

    async def _beat(self) -> None:
        self.brokers.keep_only((*self.routes.values(), *self.templates.values()))
        await self.heartbeats.send()

    async def _persist_offsets(self) -> None:
        for consumer in list(self.consumers.values()):
            await consumer.persist_offsets()

    async def _rebalance_forever(self) -> None:
        """RebalanceService: a wake-up that comes during a round starts another one."""
        regular = self.config.rebalance_wait_interval / 1000
        shortest = self.config.rebalance_min_interval / 1000
        wait = regular
        last = self.loop.time() - shortest
        while True:
            try:
                async with asyncio.timeout(wait):
                    await self._rebalance_wanted.wait()
            except TimeoutError:
                pass
            remaining = shortest - (self.loop.time() - last)
            if remaining > 0.001:
                await asyncio.sleep(remaining)
            self._rebalance_wanted.clear()
            wait = regular if await self._rebalance() else UNBALANCED_WAIT_SECONDS
            last = self.loop.time()

    async def _rebalance(self) -> bool:
        balanced = True
        for consumer in list(self.consumers.values()):
            try:
                if not await consumer.rebalance():
                    balanced = False
            except Exception:
                _log.exception("rebalance of %s failed", consumer.group)
                balanced = False
        return balanced

    # -- connections

    def _opened(self, address: str) -> None:
        """A broker that sees this connection for the first time must learn which groups it carries."""
        if not self.is_running or address not in self.brokers.all_addresses():
            return
        if address in self._opened_before:
            for consumer in list(self.consumers.values()):
                consumer.reconnected(address)
        self._opened_before.add(address)
        if self.config.heartbeat_on_connect and not self.heartbeats.is_beating(address):
            self.spawn(self._greet(address), f"heartbeat to {address}")

    async def _greet(self, address: str) -> None:
        if await self.heartbeats.send_to(address):
            self.rebalance_now()

    async def _unregister(self, request: UnregisterClient) -> None:
        for address in self.brokers.all_addresses():
            if self.connections.live(address) is None:
                continue  # a broker that lost the connection has dropped the client already
            try:
                await self.connections.call(address, request, timeout_seconds=self.api_timeout_seconds)
            except ClientError as error:
                _log.warning("unregister at %s: %s", address, error)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s failed", task.get_name(), exc_info=error)


_instances: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, ClientInstance]]" = (
    weakref.WeakKeyDictionary()
)
