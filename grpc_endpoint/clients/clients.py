"""The part of the endpoint that knows its clients.

A client is known by its id, from the metadata of each request. It becomes a member of the broker's groups by its
settings, and stays one by them and by heartbeats; without either for two minutes it is dropped. The end of a
connection or of a telemetry stream changes nothing: clients reconnect.
"""

import asyncio
import logging
from collections.abc import Callable, Sized
from typing import Any, Final

from pocketmq.broker.broker import Broker
from pocketmq.broker.time.timers import Timer
from pocketmq.protocol.message.topics import MAX_TOPIC_LENGTH

from ..calls.handler import RpcRefused
from ..calls.rpc_call import RpcCall
from ..messages import Code, Settings
from .authorizer import make_authorizer
from .open_transactions import OpenTransactions
from .peer import ClientCommands, GrpcPeer

_log = logging.getLogger("pocketmq.grpc")

MAX_CLIENTS: Final = 100_000
"""Registered clients at once; the settings of one more are refused."""
MAX_SETTINGS_BYTES: Final = 64 << 10
"""Of one client; official clients send some hundred."""
MAX_SETTINGS_TOPICS: Final = 1_000
"""Of one client: each is a registration, on the loop."""
MAX_ALL_SETTINGS_BYTES: Final = 64 << 20
"""Of all clients, in memory (`_kept_bytes`)."""
_PART_BYTES: Final = 128
"""Of a topic, an address or a property in memory, beside its text: on the wire an empty one has two."""
MAX_EARLY: Final = 10_000
"""Calls that wait for the settings of their client at once; one more is answered without waiting."""
MAX_EARLY_OF_CLIENT: Final = 100
"""All of a client's go on together when its settings arrive."""

TURN_CLIENTS: Final = 50
"""Silent clients that are forgotten in one turn of the loop: each is a member of up to 1,000 groups."""

SCAN_SECONDS: Final = 10.0
"""How often silent clients are looked for."""

OnSettings = Callable[[Settings | None], None]


class Clients:
    """`start` and `stop` mirror each other. Owned by the event loop."""

    def __init__(self, broker: Broker) -> None:
        """Raises `StartError` if the broker's access control has no form for gRPC."""
        self.broker = broker
        self.config = config = broker.config.endpoint
        self.clock = broker.clock
        self.topics = broker.topics
        self.groups = broker.groups
        self.membership = broker.membership
        self.transactions = OpenTransactions(
            broker.clock.now_ms,
            expire_ms=config.transaction_data_expire_millis,
            most=config.transaction_data_max_num,
        )
        self.commands = ClientCommands(broker, self.transactions)
        self.when_gone: list[Callable[[GrpcPeer], None]] = []
        """Called with each client that leaves or expires."""
        self._authorizer = make_authorizer(broker.config, broker.access)
        self._peers: dict[str, GrpcPeer] = {}
        self._settings: dict[str, Settings] = {}
        self._bytes: dict[str, int] = {}
        self._all_bytes = 0
        self._early: dict[str, dict[OnSettings, None]] = {}
        self._early_count = 0
        self._scan: Timer | None = None

    def start(self) -> None:
        """Begin to look for silent clients."""
        self._scan = self.broker.state.timers.call_by_wall(SCAN_SECONDS, self._scan_and_reschedule)

    def stop(self) -> None:
        """The endpoint ends: no client is a member any more."""
        if self._scan is not None:
            self._scan.cancel()
        for peer in list(self._peers.values()):
            self.forget(peer)
        for client_id in list(self._early):
            self._resume_early(client_id, None)

    def __len__(self) -> int:
        """How many clients are registered."""
        return len(self._peers)

    # -- every request

    def check(self, call: RpcCall, request: Any) -> None:
        """Signature, rights and client id, in this order. Raises `RpcRefused`."""
        if self._authorizer is not None:
            self._authorizer.check(call, request)
        client_id = call.client_id
        if not client_id or client_id.isspace():
            raise RpcRefused(Code.CLIENT_ID_REQUIRED, "client id cannot be empty")

    def authorized_peer(self, call: RpcCall, request: Any) -> GrpcPeer:
        """The client of a request that passes `check`; a client that is not registered is known for this call only."""
        self.check(call, request)
        return self._peers.get(call.client_id) or self._new_peer(call)

    def peer_with_address_of(self, call: RpcCall) -> GrpcPeer:
        """Like the peer of `authorized_peer`, but always with the address of this call: messages keep it."""
        peer = self._peers.get(call.client_id)
        return peer if peer is not None and peer.peer == call.peer else self._new_peer(call)

    # -- registered clients

    def find(self, client_id: str) -> GrpcPeer | None:
        """A registered client."""
        return self._peers.get(client_id)

    def settings_of(self, client_id: str) -> Settings | None:
        """The settings that the client got, completed by the server."""
        return self._settings.get(client_id)

    def registered(self, call: RpcCall) -> GrpcPeer:
        """The client's peer, made if it has none; it counts as seen now. Raises `RpcRefused` if there are too many."""
        peer = self._peers.get(call.client_id)
        if peer is None:
            if len(self._peers) >= MAX_CLIENTS:
                raise RpcRefused(Code.TOO_MANY_REQUESTS, f"at most {MAX_CLIENTS} clients can be registered")
            peer = self._peers[call.client_id] = self._new_peer(call)
        peer.seen_ms = self.clock.wall_ms()
        return peer

    def check_size(self, client_id: str, settings: Settings) -> None:
        """Raises `RpcRefused` for settings that are too large to keep."""
        topics, entries = settings.publishing.topics, settings.subscription.subscriptions
        if max(len(topics), len(entries)) > MAX_SETTINGS_TOPICS:
            text = f"the settings name more than {MAX_SETTINGS_TOPICS} topics"
            raise RpcRefused(Code.BAD_REQUEST, text)
        if any(len(entry.topic.name) > MAX_TOPIC_LENGTH for entry in entries):
            text = f"The specified topic is longer than topic max length {MAX_TOPIC_LENGTH}."
            raise RpcRefused(Code.ILLEGAL_TOPIC, text)
        size = settings.ByteSize()
        if size > MAX_SETTINGS_BYTES:
            text = f"the settings have {size} bytes, at most {MAX_SETTINGS_BYTES} are allowed"
            raise RpcRefused(Code.BAD_REQUEST, text)
        kept_bytes = _kept_bytes(client_id, settings)
        if self._all_bytes - self._bytes.get(client_id, 0) + kept_bytes > MAX_ALL_SETTINGS_BYTES:
            raise RpcRefused(Code.TOO_MANY_REQUESTS, "the settings of all clients take too much memory")

    def store_settings(self, peer: GrpcPeer, settings: Settings) -> None:
        """Keep these settings; calls that waited for them go on."""
        self.forget_settings(peer.client_id)
        self._settings[peer.client_id] = settings
        size = self._bytes[peer.client_id] = _kept_bytes(peer.client_id, settings)
        self._all_bytes += size
        self._resume_early(peer.client_id, settings)

    def forget_settings(self, client_id: str) -> Settings | None:
        """Forget the settings of a client that ends; `None` if it had none."""
        self._all_bytes -= self._bytes.pop(client_id, 0)
        return self._settings.pop(client_id, None)

    def forget(self, peer: GrpcPeer) -> None:
        """A client has left all its groups, or was dropped."""
        peer.closed = True
        if self._peers.get(peer.client_id) is peer:
            del self._peers[peer.client_id]
            self.forget_settings(peer.client_id)
        self.membership.connection_closed(peer)
        for callback in self.when_gone:
            callback(peer)

    def scan(self) -> None:
        """Drop the clients that sent neither settings nor a heartbeat for `channelExpiredTimeout`. The broker drops
        members itself; a producer without topics is a member of nothing."""
        limit_ms = self.clock.wall_ms() - self.broker.config.channel_expired_timeout
        silent = [peer for peer in self._peers.values() if peer.seen_ms < limit_ms]
        if silent:
            _log.warning("%d clients send no heartbeats, forgetting them: %r ...", len(silent), silent[0])
        self._forget_silent(silent, limit_ms)

    def _forget_silent(self, silent: list[GrpcPeer], limit_ms: int) -> None:
        """The last ones of the list; the others in the next loop iterations, unless they were heard of since."""
        for peer in silent[-TURN_CLIENTS:]:
            if peer.seen_ms < limit_ms:
                self.forget(peer)
        del silent[-TURN_CLIENTS:]
        if silent:
            asyncio.get_running_loop().call_soon(self._forget_silent, silent, limit_ms)

    def _scan_and_reschedule(self) -> None:
        self.scan()
        self._scan = self.broker.state.timers.call_by_wall(SCAN_SECONDS, self._scan_and_reschedule)

    # -- calls that overtook the settings

    def when_settings_known(self, call: RpcCall, seconds: float, then: OnSettings) -> None:
        """Call back with the client's settings: at once if they are known, when they arrive, or with `None` after so
        many seconds. A cancelled call is not called back."""
        client_id = call.client_id
        settings = self._settings.get(client_id)
        waiting = self._early.get(client_id, {})
        if settings is not None or self._early_count >= MAX_EARLY or len(waiting) >= MAX_EARLY_OF_CLIENT:
            then(settings)
            return
        self._early[client_id] = waiting
        waiting[then] = None
        self._early_count += 1

        def give_up() -> None:
            if self._no_longer_early(client_id, then):
                then(None)

        def cancelled() -> None:
            timer.cancel()
            self._no_longer_early(client_id, then)

        timer: asyncio.TimerHandle = call.loop.call_later(seconds, give_up)
        call.when_cancelled(cancelled)

    def _no_longer_early(self, client_id: str, then: OnSettings) -> bool:
        waiting = self._early.get(client_id)
        if waiting is None or then not in waiting:
            return False
        del waiting[then]
        self._early_count -= 1
        if not waiting:
            del self._early[client_id]
        return True

    def _resume_early(self, client_id: str, settings: Settings | None) -> None:
        waiting = self._early.pop(client_id, None)
        if waiting:
            self._early_count -= len(waiting)
            for then in waiting:
                then(settings)

    def _new_peer(self, call: RpcCall) -> GrpcPeer:
        address = call.peer, call.packed_host
        return GrpcPeer(call.loop, call.client_id, call.language, *address, self.commands, self.forget)


def _kept_bytes(client_id: str, settings: Settings) -> int:
    parts: tuple[Sized, ...] = (
        settings.publishing.topics,
        settings.subscription.subscriptions,
        settings.access_point.addresses,
        settings.client_properties,
    )
    return len(client_id) + settings.ByteSize() + _PART_BYTES * sum(map(len, parts))
