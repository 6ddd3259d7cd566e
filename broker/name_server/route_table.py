"""The route table: which brokers are registered, and which topics have queues on them.

It is a plain data structure without sockets, JSON or timers; `topic_routes.py` makes answers from it. Mirrors
`RouteInfoManager`, step by step if a client or a tool can see the difference between the two lines. Only the event
loop's thread touches it.

    topics      topic -> broker name -> QueueData       registered by masters (5.x: also by acting masters)
    brokers     broker name -> BrokerData               addresses by broker id, 0 is the master
    clusters    cluster -> broker names                 a dict used as a set with an order
    live        (cluster, address) -> LiveBroker        its last heartbeat and its connection
"""

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import msgspec
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.bodies.registration import TopicConfigAndMappingSerializeWrapper
from pocketmq.protocol.bodies.routes import BrokerData, QueueData, TopicQueueMappingInfo
from pocketmq.protocol.bodies.topic_config import TopicConfig
from pocketmq.protocol.message.flags import PERM_WRITE
from pocketmq.protocol.requests.name_server import RegisterBroker, RegisterBrokerReply
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.store import Clock

from ..bounded_cache import SaidOnce
from ..config.broker_config import MASTER_ID
from ..errors import Refusal
from ..network.dispatch import Peer
from ..time.slices import in_slices

if TYPE_CHECKING:
    from ..config.name_server_config import NameServerConfig

_log = logging.getLogger("pocketmq.name_server")

EXPIRY_MS: Final = 120_000
"""A broker without heartbeat for longer is removed; 5.x brokers may register another time."""

MAX_BROKERS: Final = 1000
MAX_NAMES: Final = 10_000
"""Pairs of a cluster and a broker name: one broker may register under several."""
MAX_ROUTES: Final = 500_000
"""Pairs of a topic and a broker, about 300 bytes each. Registrations beyond these three numbers are refused; official
name servers know no limit."""

BrokerKey = tuple[str, str]
"""Cluster and address. 4.x uses only the address: its cluster is the empty text."""
MinBrokerChanged = Callable[[dict[int, str], str | None, str | None], None]
"""Called with the addresses by id, the removed address (or None) and the HA address of the new broker (or None)."""


class LiveBroker(msgspec.Struct):
    """Official BrokerLiveInfo. `last_update_ms` is a time of the monotonic clock."""

    connection: Peer | None
    data_version: DataVersion
    ha_server_addr: str
    last_update_ms: int
    timeout_ms: int


class RouteTable:
    """Official RouteInfoManager. Calls `min_broker_changed` when 5.x sends 905, if the setting allows it."""

    def __init__(
        self,
        config: "NameServerConfig",
        clock: Clock,
        min_broker_changed: MinBrokerChanged,
        *,
        is_5: bool = True,
    ) -> None:
        self._config = config
        self._clock = clock
        self._min_broker_changed = min_broker_changed
        self._is_5 = is_5
        self.topics: dict[str, dict[str, QueueData]] = {}
        self.brokers: dict[str, BrokerData] = {}
        self.clusters: dict[str, dict[str, None]] = {}
        self.live: dict[BrokerKey, LiveBroker] = {}
        self.filter_servers: dict[BrokerKey, list[str]] = {}
        self.queue_mappings: dict[str, dict[str, TopicQueueMappingInfo]] = {}
        self._routes = 0
        """Pairs of a topic and a broker."""
        self._said = SaidOnce()

    def key(self, cluster: str, address: str) -> BrokerKey:
        """The key of a broker in `live` and `filter_servers`."""
        return (cluster, address) if self._is_5 else ("", address)

    # -- registration

    def register(
        self,
        request: RegisterBroker,
        wrapper: TopicConfigAndMappingSerializeWrapper,
        filter_servers: list[str] | None,
        connection: Peer | None,
    ) -> RegisterBrokerReply:
        """Register a broker and its topics; the reply names the master, for a slave.

        5.x refuses two cases. An unknown broker with exactly one topic gets a refusal: it may be the change report of a
        broker that was dropped. An address whose state version is older than that of the broker with the same id gets
        an empty reply.
        """
        address, broker_id = request.broker_addr, request.broker_id
        self._check_room(request, len(wrapper.topic_config_table))
        self.clusters.setdefault(request.cluster_name, {})[request.broker_name] = None
        group, is_first = self._group_of(request)
        addresses = _addresses(group)
        is_new_minimum = bool(addresses) and broker_id < min(addresses)
        for other_id in [key for key, known in addresses.items() if known == address and key != broker_id]:
            del addresses[other_id]
        if self._is_5:
            if self._is_behind(request, addresses.get(broker_id), wrapper.data_version):
                self.live.pop(self.key(request.cluster_name, address), None)
                return RegisterBrokerReply()
            if broker_id not in addresses and len(wrapper.topic_config_table) == 1:
                raise Refusal(ResponseCode.SYSTEM_ERROR, "register broker failed")
        is_first = is_first or not addresses.get(broker_id)
        addresses[broker_id] = address
        is_acting_master = request.enable_acting_master is not None and MASTER_ID != broker_id == min(
            addresses
        )
        if broker_id == MASTER_ID or (self._is_5 and is_acting_master):
            self._register_topics(request, group, wrapper, is_first)
        self._keep_alive(request, wrapper.data_version, filter_servers, connection)
        if is_new_minimum and self._config.notify_min_broker_id_changed:
            self._min_broker_changed(addresses, None, request.ha_server_addr)
        master = addresses.get(MASTER_ID)
        if broker_id == MASTER_ID or master is None:
            return RegisterBrokerReply()
        live = self.live.get(self.key(request.cluster_name, master))
        if live is None:
            return RegisterBrokerReply()
        return RegisterBrokerReply(ha_server_addr=live.ha_server_addr, master_addr=master)

    def _check_room(self, request: RegisterBroker, topics: int) -> None:
        """Raise `Refusal` for a registration that would fill the table."""
        is_new = self.key(request.cluster_name, request.broker_addr) not in self.live
        names = sum(map(len, self.clusters.values()))
        if (
            (is_new and len(self.live) >= MAX_BROKERS)
            or names > MAX_NAMES
            or self._routes + (topics if is_new else 0) > MAX_ROUTES
        ):
            raise Refusal(ResponseCode.SYSTEM_ERROR, "register broker failed: this name server is full")

    def _group_of(self, request: RegisterBroker) -> tuple[BrokerData, bool]:
        """The broker's group after this registration, and whether it is new."""
        held = self.brokers.get(request.broker_name)
        group = BrokerData(
            cluster=request.cluster_name if held is None else held.cluster,
            broker_name=request.broker_name,
            broker_addrs={} if held is None else held.broker_addrs,
            zone_name=request.zone_name if self._is_5 else None,
            enable_acting_master=bool(request.enable_acting_master) if self._is_5 else None,
        )
        self.brokers[request.broker_name] = group
        return group, held is None

    def _is_behind(self, request: RegisterBroker, holder: str | None, version: DataVersion) -> bool:
        if not holder or holder == request.broker_addr:
            return False
        live = self.live.get(self.key(request.cluster_name, holder))
        if live is None or live.data_version.state_version <= version.state_version:
            return False
        _log.warning(
            "broker id %s of %s stays with %s: %s has an older state version",
            request.broker_id, request.broker_name, holder, request.broker_addr,
        )  # fmt: skip
        return True

    def _register_topics(
        self,
        request: RegisterBroker,
        group: BrokerData,
        wrapper: TopicConfigAndMappingSerializeWrapper,
        is_first: bool,
    ) -> None:
        name = request.broker_name
        live = self.live.get(self.key(request.cluster_name, request.broker_addr))
        is_changed = is_first or live is None or live.data_version != self._seen(wrapper.data_version)
        mappings = wrapper.topic_queue_mapping_info_map
        if self._is_5 and self._config.delete_topic_with_broker_registration and not mappings:
            kept = wrapper.topic_config_table
            self._remove_topics(
                name, [topic for topic, queues in self.topics.items() if name in queues and topic not in kept]
            )
        is_read_only = request.broker_id != MASTER_ID and group.enable_acting_master
        for config in wrapper.topic_config_table.values():
            # 5.x also adds missing topics if the version is unchanged; 4.x trusts the version.
            if is_changed or (self._is_5 and name not in self.topics.get(config.name, {})):
                self._put_queues(name, config, config.perm & ~PERM_WRITE if is_read_only else config.perm)
        if is_changed and self._is_5:
            for topic, mapping in mappings.items():
                if topic in self.topics and len(self.queue_mappings) < MAX_ROUTES:
                    self.queue_mappings.setdefault(topic, {})[mapping.bname or ""] = mapping

    def _put_queues(self, broker_name: str, config: TopicConfig, perm: int) -> None:
        queues = self.topics.setdefault(config.name, {})
        self._routes += broker_name not in queues
        queues[broker_name] = QueueData(
            broker_name=broker_name,
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            perm=perm,
            topic_sys_flag=config.topic_sys_flag,
        )

    def _keep_alive(
        self,
        request: RegisterBroker,
        data_version: DataVersion,
        filter_servers: list[str] | None,
        connection: Peer | None,
    ) -> None:
        key = self.key(request.cluster_name, request.broker_addr)
        if key not in self.live:
            _log.info("broker %s (%d) registered at %s", request.broker_name, request.broker_id, key[1])
        timeout_ms = request.heartbeat_timeout_millis if self._is_5 else None
        self.live[key] = LiveBroker(
            connection,
            self._seen(data_version),
            request.ha_server_addr,
            self._clock.monotonic_ms(),
            EXPIRY_MS if timeout_ms is None else timeout_ms,
        )
        if filter_servers:
            self.filter_servers[key] = filter_servers
        elif filter_servers is not None:
            self.filter_servers.pop(key, None)

    def _seen(self, version: DataVersion) -> DataVersion:
        """4.x has no state version: it neither compares nor returns it."""
        return version if self._is_5 else msgspec.structs.replace(version, state_version=0)

    # -- heartbeats

    def known_version(self, cluster: str, address: str) -> DataVersion | None:
        live = self.live.get(self.key(cluster, address))
        return None if live is None else live.data_version

    def is_changed(self, cluster: str, address: str, version: DataVersion | None) -> bool:
        """Whether a broker with this data version must register again; true without a version."""
        return version is None or self.known_version(cluster, address) != self._seen(version)

    def touch(self, cluster: str, address: str) -> None:
        """A heartbeat arrived (904, 322)."""
        live = self.live.get(self.key(cluster, address))
        if live is not None:
            live.last_update_ms = self._clock.monotonic_ms()

    def expire(self) -> list[Peer]:
        """Drop the brokers whose heartbeat is overdue; returns their connections, for the caller to close."""
        now_ms = self._clock.monotonic_ms()
        overdue = [key for key, live in self.live.items() if live.last_update_ms + live.timeout_ms < now_ms]
        connections = []
        for key in overdue:
            live = self.live[key]
            _log.warning("broker %s dropped: no heartbeat for more than %d ms", key[1], live.timeout_ms)
            self._drop(key)
            if live.connection is not None:
                connections.append(live.connection)
        return connections

    def connection_closed(self, connection: Peer) -> None:
        """Drop the brokers whose last heartbeat arrived on this connection."""
        for key in [key for key, live in self.live.items() if live.connection is connection]:
            _log.info("broker %s dropped: its connection closed", key[1])
            self._drop(key)

    # -- leaving

    def unregister(self, cluster: str, address: str, broker_name: str, broker_id: int) -> None:
        """A broker unregisters (104). 5.x looks it up by address, 4.x by id."""
        key = self.key(cluster, address)
        if self.live.pop(key, None) is not None:
            _log.info("broker %s (%d) unregistered from %s", broker_name, broker_id, address)
        self.filter_servers.pop(key, None)
        group = self.brokers.get(broker_name)
        if group is None:
            return
        addresses = _addresses(group)
        was_minimum = bool(addresses) and broker_id == min(addresses)
        if self._is_5:
            for known_id in [key for key, known in addresses.items() if known == address]:
                del addresses[known_id]
        else:
            addresses.pop(broker_id, None)
        if not addresses:
            self._remove_group(broker_name, [cluster])
            return
        if self._is_5 and group.enable_acting_master:
            self._after_reduction(broker_name, addresses, address if was_minimum else None)

    def _drop(self, key: BrokerKey) -> None:
        """Remove a broker that did not unregister."""
        cluster, address = key
        self.live.pop(key, None)
        self.filter_servers.pop(key, None)
        for name, group in self.brokers.items():
            addresses = _addresses(group)
            broker_id = next((key for key, known in addresses.items() if known == address), None)
            if broker_id is None or (self._is_5 and group.cluster != cluster):
                continue
            if self._is_5:
                self.unregister(cluster, address, name, broker_id)
                return
            del addresses[broker_id]
            if not addresses:
                clusters = [cluster for cluster, names in self.clusters.items() if name in names]
                self._remove_group(name, clusters[:1])
            return

    def _remove_group(self, broker_name: str, clusters: Iterable[str]) -> None:
        del self.brokers[broker_name]
        for cluster in clusters:
            names = self.clusters.get(cluster, {})
            names.pop(broker_name, None)
            if not names:
                self.clusters.pop(cluster, None)
        self._remove_topics(
            broker_name, [topic for topic, queues in self.topics.items() if broker_name in queues]
        )
        for topic in [topic for topic, of_topic in self.queue_mappings.items() if broker_name in of_topic]:
            del self.queue_mappings[topic][broker_name]
            if not self.queue_mappings[topic]:
                del self.queue_mappings[topic]

    def _after_reduction(self, broker_name: str, addresses: dict[int, str], lost: str | None) -> None:
        """A group with acting masters lost a member: without a master its topics lose their write permission."""
        if MASTER_ID not in addresses:
            for queues in self._with_broker(broker_name):
                _change_permission(queues, broker_name, without_write)
        if lost is not None and self._config.notify_min_broker_id_changed:
            self._min_broker_changed(addresses, lost, None)

    def _remove_topics(self, broker_name: str, topics: Iterable[str]) -> None:
        for topic in topics:
            queues = self.topics[topic]
            del queues[broker_name]
            self._routes -= 1
            if not queues:
                del self.topics[topic]

    # -- administration

    async def change_permissions(self, broker_name: str, changed: Callable[[int], int]) -> int:
        """Change the permission of each topic of a broker, until it registers a change; returns how many (205, 327)."""
        count = 0
        async for queues in in_slices(self._with_broker(broker_name)):
            if broker_name in queues:  # not deleted meanwhile
                _change_permission(queues, broker_name, changed)
                count += 1
        return count

    def _with_broker(self, broker_name: str) -> list[dict[str, QueueData]]:
        return [queues for queues in self.topics.values() if broker_name in queues]

    def register_topic(self, topic: str, queues: list[QueueData]) -> None:
        """Add queues of one topic (217), up to the first of an unknown broker; for a new topic all must be known."""
        known = []
        for queue in queues:
            if queue.broker_name not in self.brokers:
                break
            known.append(queue)
        if topic not in self.topics and len(known) < len(queues):
            unknown = queues[len(known)].broker_name
            if self._said.first(unknown):
                _log.warning("topic %.80s refused: broker %.80s is unknown", topic, unknown)
            return
        if known and self._routes < MAX_ROUTES:
            held = self.topics.setdefault(topic, {})
            self._routes -= len(held)
            held.update({queue.broker_name or "": queue for queue in known})
            self._routes += len(held)

    def delete_topic(self, topic: str, cluster: str | None) -> None:
        """Remove the route of a topic; with a cluster, only its queues on that cluster (216)."""
        if not cluster:
            self._routes -= len(self.topics.pop(topic, ()))
            return
        queues = self.topics.get(topic, {})
        for broker_name in [name for name in self.clusters.get(cluster, {}) if name in queues]:
            self._remove_topics(broker_name, [topic])


def without_write(perm: int) -> int:
    return perm & ~PERM_WRITE


def _change_permission(queues: dict[str, QueueData], broker_name: str, changed: Callable[[int], int]) -> None:
    queue = queues[broker_name]
    queues[broker_name] = msgspec.structs.replace(queue, perm=changed(queue.perm))


def _addresses(group: BrokerData) -> dict[int, str]:
    """Addresses by broker id; every group in the table has the map."""
    assert group.broker_addrs is not None
    return group.broker_addrs
