"""Offsets of broadcasting consumers (5.x), kept for a while so that a consumer can move between a proxy and the broker.

A broadcasting consumer keeps its offsets itself. Behind a proxy it cannot, so it pulls with a negative offset. The
broker answers such a pull, and the first pull after a move, with the offset to continue from: the one this client
pulled last, or the lowest of the clients that left (stored under group@broadcast), or where a new group would start.

The broker deletes a client broadcastOffsetExpireSecond after its last pull, or broadcastOffsetExpireMaxSecond after it
while the client is connected directly (not through a proxy). Mirrors `BroadcastOffsetManager` and its use in
`PullMessageProcessor`; owned by the event loop. `pulling/pull.py` calls it.
"""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

import msgspec
from pocketmq.protocol.requests.pull import PullMessage
from pocketmq.protocol.wire.response_codes import ResponseCode

from ..membership.consumer_groups import BROADCASTING, ConsumerGroups
from ..state.broker_state import BrokerState

if TYPE_CHECKING:
    from ..network.dispatch import Call

FROM_PROXY: Final = 1
"""requestSource of a proxy's broadcasting pull (PROXY_FOR_BROADCAST)."""
MAX_CLIENTS: Final = 100_000
"""Pairs of a client and a topic. The pulls of further clients behind proxies are read at their own offset."""
_LONGEST_ID: Final = 255
_PUSH: Final = "CONSUME_PASSIVELY"
_SHARED: Final = "@broadcast"
"""Suffix of a group's name: under it the offset table keeps the lowest offset of the clients that left."""


class _Client(msgspec.Struct, eq=False, kw_only=True):
    """One consumer of one topic: whether its last pull came through a proxy, when, and the offset of each queue."""

    from_proxy: bool
    pulled_ms: int = 0
    offsets: dict[int, int] = {}


class BroadcastOffsets:
    """By topic and group, then by client id. `expire` is due every 5 s."""

    def __init__(self, state: BrokerState, consumers: ConsumerGroups) -> None:
        self._state = state
        self._consumers = consumers
        self._clients: dict[tuple[str, str], dict[str, _Client]] = {}
        self._count = 0
        """Of all clients, at the last expiry and added since."""

    def client_of(self, request: PullMessage, call: "Call") -> str | None:
        """The client id of a broadcasting pull; `None` for any other pull, or if the client is unknown."""
        if request.request_source == FROM_PROXY:
            client_id = request.proxy_forward_client_id
            if client_id is None or len(client_id) > _LONGEST_ID:
                return None
            known = self._clients.get((request.topic, request.consumer_group), ())
            return client_id if client_id in known or self._count < MAX_CLIENTS else None
        group = self._consumers.get(request.consumer_group)
        if group is None or group.message_model != BROADCASTING or group.consume_type != _PUSH:
            return None
        client = group.connections.get(call.connection)
        return None if client is None else client.client_id

    def start_of(self, request: PullMessage, client_id: str) -> int | None:
        """The offset to answer instead of messages; `None` if the pull may read at its own offset."""
        from_proxy = request.request_source == FROM_PROXY
        clients = self._clients.get((request.topic, request.consumer_group))
        if clients is None:
            return self._fallback(request, None) if from_proxy and request.queue_offset < 0 else None
        client = clients.get(client_id) or self._add(clients, client_id, from_proxy=from_proxy)
        if (client.from_proxy and request.queue_offset < 0) or client.from_proxy != from_proxy:
            return self._fallback(request, client)
        return None

    def _fallback(self, request: PullMessage, client: _Client | None) -> int:
        store = self._state.store
        topic, queue_id = request.topic, request.queue_id
        if client is not None and queue_id in client.offsets:
            return client.offsets[queue_id]
        shared = self._state.offsets.query(topic, request.consumer_group + _SHARED, queue_id)
        if shared >= 0:
            return shared
        return 0 if store.is_hot(topic, queue_id, 0) else store.max_offset(topic, queue_id)

    def record_pull(self, request: PullMessage, client_id: str, code: int, next_offset: int) -> None:
        """Record the offset of the client: the one it pulled, or the one it was answered."""
        from_proxy = request.request_source == FROM_PROXY
        offset = next_offset if code == ResponseCode.PULL_OFFSET_MOVED else request.queue_offset
        clients = self._clients.setdefault((request.topic, request.consumer_group), {})
        client = clients.get(client_id) or self._add(clients, client_id, from_proxy=from_proxy)
        client.pulled_ms = self._state.clock.now_ms()
        client.from_proxy = from_proxy
        client.offsets[request.queue_id] = max(offset, client.offsets.get(request.queue_id, offset))

    def _add(self, clients: dict[str, _Client], client_id: str, *, from_proxy: bool) -> _Client:
        client = clients[client_id] = _Client(from_proxy=from_proxy)
        self._count += 1
        return client

    def next_expiry_ms(self) -> int | None:
        """When the first client that has left expires; `None` if none has left."""
        least_ms = self._state.config.broadcast_offset_expire_second * 1000
        times = [
            client.pulled_ms + least_ms
            for (_, group), clients in self._clients.items()
            for online in [self._online(group)]
            for client_id, client in clients.items()
            if client_id not in online
        ]
        return min(times, default=None)

    def forget(self, is_kept: Callable[[str], bool]) -> None:
        """Delete the clients of all groups but those for which `is_kept(group)`."""
        for topic, group in list(self._clients):
            if not is_kept(group):
                del self._clients[topic, group]

    def _online(self, group: str) -> frozenset[str]:
        known = self._consumers.get(group)
        return frozenset() if known is None else frozenset(known.client_ids())

    def expire(self) -> Generator[None]:
        """Delete expired clients; commit the lowest offset of each group to the offset table. A client is one item."""
        config, now_ms = self._state.config, self._state.clock.now_ms()
        least_ms = config.broadcast_offset_expire_second * 1000
        most_ms = config.broadcast_offset_expire_max_second * 1000
        for (topic, group), clients in list(self._clients.items()):
            lowest: dict[int, int] = {}
            online = self._online(group)
            for client_id, client in list(clients.items()):
                yield
                silent_ms = now_ms - client.pulled_ms
                is_online = client_id in online
                if is_online or silent_ms < least_ms:
                    for queue_id, offset in client.offsets.items():
                        lowest[queue_id] = min(offset, lowest.get(queue_id, offset))
                if is_online and self._state.timers.is_virtual:
                    continue  # a jump of virtual time is no silence
                if silent_ms >= (most_ms if is_online else least_ms):
                    clients.pop(client_id, None)
            if not clients:
                self._clients.pop((topic, group), None)
            for queue_id, offset in lowest.items():
                self._state.offsets.commit(topic, group + _SHARED, queue_id, offset)
        self._count = sum(map(len, self._clients.values()))
