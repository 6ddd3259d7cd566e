"""One process: a name server and a broker, built, started and stopped in order.

`Node.start` opens the store, serves the ports, and returns once the broker stands in every reachable route table;
`stop` mirrors it. `run` does both around the signals of a terminal. Everything periodic is in `state/table_saver.py`.
"""

import asyncio
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pocketmq.protocol.languages import V4_9_7, V5_5_0
from pocketmq.protocol.message.offset_id import pack_host
from pocketmq.protocol.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from pocketmq.protocol.message.unique_id import UniqueIdMaker
from pocketmq.protocol.wire.command import Command
from pocketmq.store.clock import Clock, WallClock
from pocketmq.store.errors import StoreError
from pocketmq.store.message_store import MessageStore
from pocketmq.store.retention import Retention
from pocketmq.store.tables.delay_table import DelayTable
from pocketmq.store.tables.group_table import GroupTable
from pocketmq.store.tables.json_table import JsonTable
from pocketmq.store.tables.light_offset_table import LmqOffsetTable
from pocketmq.store.tables.metric_table import MetricTable
from pocketmq.store.tables.offset_table import OffsetTable
from pocketmq.store.tables.topic_table import TopicTable

from .access.access_control import (
    AccessControl,
    make_first_users,
    signer_of,
    warn_if_open,
)
from .access.plain_acl import PlainAcl
from .access.user_table import AclTable, UserTable
from .broker import Broker
from .cluster.metadata_sync import MetadataSync
from .cluster.registration import Registration, socket_address
from .cluster.replication_master import ReplicationMaster
from .cluster.replication_slave import ReplicationSlave
from .config.broker_config import BrokerConfig
from .config.name_server_config import NameServerConfig
from .delayed.delayed_messages import DelayedMessages
from .delayed.timer_messages import TimedMessages
from .errors import StartError
from .filters.consumer_filters import ConsumerFilters
from .first_position.broadcast_offsets import BroadcastOffsets
from .handler_modules import HANDLER_MODULES
from .membership.consumer_groups import ConsumerGroups
from .membership.consumer_notices import ConsumerNotices
from .membership.producer_groups import ProducerGroups
from .membership.queue_locks import QueueLocks
from .name_server.name_server import NameServer
from .network.connection import Connection
from .network.dispatch import BROKER, NAME_SERVER, Peer
from .network.role import Guard, Limits, Role, Signer
from .network.server import Server
from .network.tls import Tls
from .pop import popping
from .pulling.pull_waiters import PullWaiters
from .state.statistics import Statistics
from .state.store_owner import refuse_other_brokers_store
from .state.table_saver import Rhythm
from .transactions.half_messages import HalfMessages
from .transactions.transaction_check import TransactionCheck

if TYPE_CHECKING:
    from .network.journal import Journal

_log = logging.getLogger("pocketmq.node")
assert HANDLER_MODULES, "importing them fills the tables of handlers"


class Node:
    """Name server (unless `name_server_config` is None) and broker of one process. All on the running loop.

    `start` raises `StartError` or `StoreError` with one clear line where it cannot, and leaves nothing behind.
    """

    def __init__(
        self,
        config: BrokerConfig,
        name_server_config: NameServerConfig | None,
        *,
        host: str = "127.0.0.1",
        clock: Clock | None = None,
        journal_folder: Path | None = None,
    ) -> None:
        self._config = config
        self._name_server_config = name_server_config
        self._host = host
        self._clock = clock or WallClock()
        self._servers: list[Server] = []
        self._rhythm = Rhythm()
        self._journal_folder = journal_folder
        self._journal: Journal | None = None
        self._tls = Tls(config)
        self.broker = Broker()
        self.name_server: NameServer | None = None
        self.namesrv_address = ""
        self.broker_address = ""

    async def start(self) -> None:
        """Open the store, serve, register. When it returns, a client can send."""
        try:
            self._start_journal()
            self._tls.check()
            warn_if_open(self._config, self._host)
            await self._start_name_server()
            self._build_broker()
            await self._serve_broker()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Unregister, answer what waits, close the sockets, save everything, close the store.

        Whatever fails on the way, the store is closed in the end.
        """
        self._rhythm.stop()
        broker = self.broker
        try:
            await self._stop_serving()
        finally:
            if self.name_server is not None:
                self.name_server.stop()
                self.name_server = None
            if hasattr(broker, "store"):
                _close_store(broker)
                del broker.store
            if self._journal is not None:
                self._journal.stop()
                self._journal = None

    def _start_journal(self) -> None:
        if self._journal_folder is None:
            return
        from .network.journal import journal_of

        config = self._config
        journal = journal_of(
            self._journal_folder,
            broker_name=config.broker_name,
            cluster=config.broker_cluster_name,
            emulate=config.emulate,
        )
        journal.start()
        self._journal = journal

    def _new_connection(self, role: Role) -> Connection:
        if self._journal is None:
            return Connection(role)
        from .network.journaled_connection import JournaledConnection

        return JournaledConnection(role, self._journal)

    async def _stop_serving(self) -> None:
        broker = self.broker
        try:
            if hasattr(broker, "registration"):
                broker.delayed.stop()
                await broker.metadata_sync.stop()
                await broker.master_log.stop()
                await broker.transaction_check.stop()
                await broker.registration.stop()
                await broker.replication.stop()
            if hasattr(broker, "revive"):
                for _ in range(broker.waiters.wake_all() + popping.end_waiting(broker)):
                    await asyncio.sleep(0)
        finally:
            for server in reversed(self._servers):
                await server.close()
            self._servers.clear()

    # -- the name server

    async def _start_name_server(self) -> None:
        config = self._name_server_config
        if config is None:
            return
        self.name_server = NameServer(config, self._clock, is_5=self._config.is_5)
        server = self._new_server("name server")
        port = await server.bind(self._host, config.listen_port)
        handlers = NAME_SERVER.of_line(self._config.emulate).bind(self.name_server)
        await server.serve(handlers, on_close=self.name_server.connection_closed)
        self.namesrv_address = socket_address(_reachable(self._host), port)
        self.name_server.start(server)

    # -- the broker

    def _build_broker(self) -> None:
        config, clock, broker = self._config, self._clock, self.broker
        loop = asyncio.get_running_loop()
        broker.config = config
        broker.clock = clock
        broker.boot_time_ms = clock.now_ms()
        broker.rhythm = self._rhythm
        folder = config.store.root / "config"
        broker.topics = TopicTable(folder, clock.now_ms, config.topic_settings(), self._topics_changed)
        broker.groups = GroupTable(folder, clock.now_ms, config.group_settings(), self._groups_changed)
        offset_table = LmqOffsetTable if config.store.enable_lmq else OffsetTable
        broker.offsets = offset_table(folder, clock.now_ms)
        broker.delays = DelayTable(folder, clock.now_ms, config.store.message_delay_level)
        broker.open_transactions = MetricTable(folder, clock.now_ms, "transactionCount")
        broker.filters = ConsumerFilters(config, clock.now_ms)
        popping.build(broker)
        broker.users = UserTable(folder, clock.now_ms, lambda: self._rhythm.save_soon(broker.users))
        broker.acls = AclTable(
            folder, clock.now_ms, broker.users, lambda: self._rhythm.save_soon(broker.acls)
        )
        broker.waiters = PullWaiters(loop, config.pull_thread_pool_queue_capacity)
        broker.store = MessageStore(
            config.store,
            clock,
            on_arrival=self._arrived,
            is_awaited=self._is_awaited,
            call_soon=loop.call_soon_threadsafe,
        )
        refuse_other_brokers_store(config.store.root, config.broker_name)
        broker.store.open()
        broker.retention = Retention(config.store, broker.store, clock)
        for table in _tables(broker):
            table.load()
        broker.ordered_pops.announce()
        self._build_guard()
        broker.notices = ConsumerNotices(broker)
        expiry_ms = config.channel_expired_timeout
        broker.consumers = ConsumerGroups(
            broker.notices.changed,
            emulate=config.emulate,
            expiry_ms=expiry_ms,
            on_gone=broker.filters.unregister,
        )
        broker.producers = ProducerGroups(emulate=config.emulate, expiry_ms=expiry_ms)
        broker.locks = QueueLocks()
        broker.broadcasts = BroadcastOffsets(broker)
        broker.statistics = Statistics(broker)
        broker.delayed = DelayedMessages(broker)
        broker.timed = TimedMessages(broker)
        broker.half_messages = HalfMessages(broker)
        broker.transaction_check = TransactionCheck(broker)
        broker.registration = Registration(broker)
        broker.replication = ReplicationMaster(broker)
        broker.master_log = ReplicationSlave(broker)
        broker.metadata_sync = MetadataSync(broker)
        ip = pack_host(config.broker_ip1, 0)[:-4]
        broker.unique_ids = UniqueIdMaker(ip, os.getpid(), id(broker), clock.now_ms)

    def _build_guard(self) -> None:
        config, broker = self._config, self.broker
        guards: list[Guard] = []
        broker.plain_acl = None
        if config.acl_enable:
            broker.plain_acl = PlainAcl(Path(config.rocketmq_home or config.store.root) / "conf")
            broker.plain_acl.load()
            guards.append(broker.plain_acl)
        if config.emulate >= 5:
            make_first_users(config, broker.users)
            if config.authentication_enabled or config.authorization_enabled:
                guards.append(AccessControl(config, broker.users, broker.acls))
        broker.guard = guards[0] if len(guards) == 1 else _all_of(guards) if guards else None

    async def _serve_broker(self) -> None:
        config, broker = self._config, self.broker
        broker.server = self._new_server("broker", signer=signer_of(config))
        port = await broker.server.bind(self._host, config.listen_port)
        handlers = BROKER.of_line(config.emulate).bind(broker)
        await broker.server.serve(handlers, guard=broker.guard, on_close=self._connection_closed)
        config.listen_port = port
        broker.address = self.broker_address = socket_address(config.broker_ip1, port)
        broker.store_host = pack_host(config.broker_ip1, port)
        await self._serve_fast_port(port - 2)
        await broker.replication.start(self._host)
        if self.namesrv_address:
            others = [one for one in config.namesrv_addr.split(";") if one and one != self.namesrv_address]
            config.namesrv_addr = ";".join([self.namesrv_address, *others])
        broker.delayed.start()
        broker.timed.start()
        broker.transaction_check.start()
        await broker.registration.start()
        broker.master_log.start()
        broker.metadata_sync.start()
        self._rhythm.start(broker)

    async def _serve_fast_port(self, port: int) -> None:
        """The official second port; without it a client with vipChannelEnabled finds nothing."""
        if port <= 0:
            return
        fast = self._new_server("broker")
        try:
            await fast.bind(self._host, port)
        except StartError as error:
            if self._config.is_fast_port_required:
                raise
            _log.warning("%s; clients with vipChannelEnabled cannot connect", error)
            return
        handlers = BROKER.of_line(self._config.emulate).without_main_port_only().bind(self.broker)
        await fast.serve(handlers, guard=self.broker.guard, on_close=self._connection_closed)

    def _new_server(self, name: str, signer: Signer | None = None) -> Server:
        server = Server(
            name,
            version=V5_5_0 if self._config.is_5 else V4_9_7,
            json_replies=self._config.is_5,
            limits=self._limits,
            connection=self._new_connection,
            tls=self._tls,
            signer=signer,
        )
        self._servers.append(server)
        return server

    @property
    def _limits(self) -> Limits:
        config = self._config
        return Limits(
            idle_seconds=config.server_channel_max_idle_time_seconds,
            unread_bytes=config.write_buffer_high_water_mark,
            tasks=config.max_tasks_per_connection,
            calls=config.max_calls_per_connection,
        )

    # -- what the parts tell each other

    def _arrived(
        self,
        topic: str,
        queue_id: int,
        queue_offset: int,
        tags_code: int,
        property_map: dict[str, str] | None,
        store_timestamp: int,
    ) -> None:
        self.broker.waiters.arrived(topic, queue_id, queue_offset, tags_code, property_map)
        if self.broker.pop_waiters.total or self.broker.notification_waiters.total:
            popping.arrived(self.broker, topic, queue_id, queue_offset, tags_code, property_map)
        if topic == SCHEDULE_TOPIC:
            self.broker.delayed.arrived(queue_id, tags_code)  # the tags code is the time it is due
        elif topic == TIMER_TOPIC:
            self.broker.timed.arrived(queue_offset, property_map)

    def _is_awaited(self, topic: str, queue_id: int) -> bool:
        """Whether `_arrived` would do anything for a message of this queue."""
        broker = self.broker
        return (
            broker.waiters.has_waiting(topic, queue_id)
            or broker.pop_waiters.total > 0
            or broker.notification_waiters.total > 0
            or topic in (SCHEDULE_TOPIC, TIMER_TOPIC)
        )

    def _connection_closed(self, connection: Peer) -> None:
        self.broker.consumers.connection_closed(connection)
        self.broker.producers.connection_closed(connection)

    def _topics_changed(self) -> None:
        if hasattr(self.broker, "registration"):
            self.broker.registration.topics_changed()
        self._rhythm.save_soon(self.broker.topics)

    def _groups_changed(self) -> None:
        self._rhythm.save_soon(self.broker.groups)


def _tables(broker: Broker) -> tuple[JsonTable, ...]:
    tables: tuple[JsonTable, ...] = (
        broker.topics,
        broker.groups,
        broker.offsets,
        broker.delays,
        broker.filters,
        broker.users,
        broker.acls,
    )
    if broker.is_emulating_4:
        return tables
    return (*tables, broker.open_transactions, broker.ordered_pops, broker.request_modes)


def _all_of(guards: list[Guard]) -> Guard:
    def ask_all(command: Command, peer: str) -> None:
        for guard in guards:
            guard(command, peer)

    return ask_all


def _close_store(broker: Broker) -> None:
    if hasattr(broker, "half_messages"):
        broker.half_messages.stop()
        broker.timed.stop()
    for table in _tables(broker):
        try:
            table.persist()
        except StoreError as error:  # a full disk, say: the others and the log are still worth saving
            _log.error("not saved: %s", error)
    broker.store.close()


def _reachable(host: str) -> str:
    """The address a client on this machine uses for a server bound to `host`."""
    return {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
