"""One client on one connection, the online members of each consumer group, and the subscriptions of the group.

A group exists here while at least one of its clients is connected; its settings and offsets are in the store's tables.
The heartbeat of any member changes the whole group: the last one sets the consume type and model, removes the topics it
does not name, and a newer version of a subscription replaces the older one.

Members are notified (request 40), so that they rebalance:

    event                                           group's switch off    group is BROADCASTING
    a connection joins, a topic is added or removed not notified          not notified (4.9: notified)
    a client unregisters                            not notified          not notified (4.9: notified)
    a connection closes                             notified              not notified (4.9: notified)
    a client without heartbeat expires              not notified: members notice it at their next rebalance

`consumer_notices.py` sends the notices. Mirrors `ConsumerManager` and `ConsumerGroupInfo`; only the event loop's thread
touches it.
"""

import logging
from collections.abc import Callable, Collection, Generator, Iterable
from typing import Final

import msgspec
from pocketmq.protocol.bodies.client import SubscriptionData

from ..network.dispatch import Peer

_log = logging.getLogger("pocketmq.membership")

CHANNEL_EXPIRED_MS: Final = 120_000
"""A client without heartbeat for longer than this is removed."""
BROADCASTING: Final = "BROADCASTING"

Notify = Callable[[str, Collection[Peer]], None]
"""Called with a group and its remaining connections, as they are and will be, after its members or topics have
changed."""


class Client(msgspec.Struct, eq=False):
    """Official ClientChannelInfo. `language` and `version` are those of the heartbeat's command header."""

    connection: Peer
    client_id: str
    language: str
    version: int
    last_update_ms: int

    def __repr__(self) -> str:
        return f"{self.client_id}@{self.connection.peer}"


def expire_clients(
    what: str,
    members: Iterable[tuple[str, Client]],
    limit_ms: int,
    is_member: Callable[[str, Client], bool],
    drop: Callable[[str, Client], None],
) -> Generator[None]:
    """Drop clients of groups whose last heartbeat was before `limit_ms`, and close their connections, each with one
    line of the log. Yields after each client; `is_member` says whether it still is one then."""
    closing = set[Peer]()
    for group, client in members:
        yield
        if client.last_update_ms >= limit_ms or not is_member(group, client):
            continue
        connection = client.connection
        if connection not in closing and not connection.closed:
            closing.add(connection)
            _log.warning("%s %r of %s sends no heartbeats: closing its connection", what, client, group)
        drop(group, client)
        connection.close()


class ConsumerGroup(msgspec.Struct, eq=False):
    """The online side of one group (official ConsumerGroupInfo)."""

    name: str
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None
    subscriptions: dict[str, SubscriptionData] = {}
    """By topic."""
    connections: dict[Peer, Client] = {}
    """Members in the order in which they joined."""
    heartbeat_fingerprint: int | None = None
    """Of the last heartbeat of any member; 0 for a heartbeat V1, which always names its subscriptions."""

    def expressions(self) -> dict[str, str]:
        return {topic: known.sub_string or "" for topic, known in self.subscriptions.items()}

    def clients(self) -> list[Client]:
        return list(self.connections.values())

    def client_ids(self) -> list[str]:
        """The answer to 38: one id for each connection."""
        return [client.client_id for client in self.connections.values()]

    def find(self, client_id: str) -> Client | None:
        """The first member with this id."""
        return next((one for one in self.connections.values() if one.client_id == client_id), None)

    @property
    def is_broadcasting(self) -> bool:
        return self.message_model == BROADCASTING

    def update_client(self, client: Client) -> bool:
        """Record a heartbeat; True if the connection is a new member."""
        known = self.connections.get(client.connection)
        if known is None:
            _log.debug("new consumer of %s: %r", self.name, client)
            self.connections[client.connection] = client
            return True
        if known.client_id != client.client_id:
            _log.error("consumer %r of %s was %r before on the same connection", client, self.name, known)
            self.connections[client.connection] = client
        known.last_update_ms = client.last_update_ms
        return False

    def update_subscriptions(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Replace the subscriptions by those of a heartbeat; True if a topic was added or removed. A newer version of a
        subscription does not count."""
        changed = False
        named = set()
        for subscription in subscriptions:
            topic = subscription.topic or ""
            named.add(topic)
            known = self.subscriptions.get(topic)
            if known is None:
                changed = True
                self.subscriptions[topic] = subscription
            elif subscription.sub_version > known.sub_version:
                self.subscriptions[topic] = subscription
        for topic in [topic for topic in self.subscriptions if topic not in named]:
            _log.debug("%s no longer subscribes to %s", self.name, topic)
            changed = True
            del self.subscriptions[topic]
        return changed


class ConsumerGroups:
    """All online consumer groups (official ConsumerManager)."""

    def __init__(
        self,
        notify: Notify,
        *,
        is_5: bool = True,
        expiry_ms: int = CHANNEL_EXPIRED_MS,
        on_empty: Callable[[str], None] = lambda group: None,
    ) -> None:
        """`on_empty` is called with a group whose last client has left."""
        self._notify = notify
        self._on_empty = on_empty
        self._notifies_broadcasting = not is_5
        self._expiry_ms = expiry_ms
        self._groups: dict[str, ConsumerGroup] = {}
        self._of_connection: dict[Peer, set[str]] = {}

    def get(self, group: str) -> ConsumerGroup | None:
        """The group; `None` if none of its clients is connected."""
        return self._groups.get(group)

    def of_connection(self, connection: Peer) -> Collection[str]:
        return self._of_connection.get(connection, ())

    def names(self) -> list[str]:
        return list(self._groups)

    def find(self, group: str, client_id: str) -> Client | None:
        known = self._groups.get(group)
        return None if known is None else known.find(client_id)

    def may_read(self, group: str, topic: str) -> bool:
        """False if the online members of a group subscribe, but not to this topic."""
        known = self._groups.get(group)
        return known is None or not known.subscriptions or topic in known.subscriptions

    def groups_reading(self, topic: str) -> list[str]:
        """Names of the online groups that subscribe to a topic.

        5.5.0 also lists groups that unsubscribed or expired, until its restart; ours does not.
        """
        return [group.name for group in self._groups.values() if topic in group.subscriptions]

    def register(
        self,
        group: str,
        client: Client,
        *,
        consume_type: str | None,
        message_model: str | None,
        consume_from_where: str | None,
        subscriptions: Iterable[SubscriptionData] | None,
        is_notified: bool = True,
    ) -> bool:
        """Register one consumer entry of a heartbeat; True if a member or a topic was added, or a topic removed.

        `subscriptions` is `None` in a heartbeat V2 that omits them: the known ones stay. `is_notified` is the group's
        own switch (notifyConsumerIdsChangedEnable).
        """
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = ConsumerGroup(group)
        known.consume_type = consume_type
        known.message_model = message_model
        known.consume_from_where = consume_from_where
        changed = known.update_client(client)
        if changed:
            self._of_connection.setdefault(client.connection, set()).add(group)
        if subscriptions is not None and known.update_subscriptions(subscriptions):
            changed = True
        if changed and is_notified:
            self._notify_members(known)
        return changed

    def unregister(self, group: str, connection: Peer, *, is_notified: bool = True) -> None:
        """A client unregisters from a group (35)."""
        known = self._groups.get(group)
        if known is None:
            return
        self._remove(known, connection)
        if is_notified:
            self._notify_members(known)

    def connection_closed(self, connection: Peer) -> None:
        """Remove a closed connection from its groups, and notify even groups whose switch is off."""
        for name in tuple(self.of_connection(connection)):
            group = self._groups[name]
            _log.debug("a consumer of %s disconnected: %s", name, connection.peer)
            self._remove(group, connection)
            self._notify_members(group)

    def expire(self, now_ms: int) -> Generator[None]:
        """Drop clients without heartbeat for 120 s and close their connections; due every 10 s."""

        def is_member(name: str, client: Client) -> bool:
            group = self._groups.get(name)
            return group is not None and group.connections.get(client.connection) is client

        groups = list(self._groups.values())
        return expire_clients(
            "consumer",
            ((group.name, client) for group in groups for client in group.clients()),
            now_ms - self._expiry_ms,
            is_member,
            lambda name, client: self._remove(self._groups[name], client.connection),
        )

    def _remove(self, group: ConsumerGroup, connection: Peer) -> None:
        group.connections.pop(connection, None)
        groups = self._of_connection.get(connection)
        if groups is not None:
            groups.discard(group.name)
            if not groups:
                del self._of_connection[connection]
        if not group.connections:
            self._groups.pop(group.name, None)
            self._on_empty(group.name)

    def _notify_members(self, group: ConsumerGroup) -> None:
        if group.connections and (self._notifies_broadcasting or not group.is_broadcasting):
            self._notify(group.name, group.connections)
