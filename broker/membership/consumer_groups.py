"""Who is online in which consumer group, and what the group subscribes to.

A group exists here while at least one client of it is connected; its settings and offsets live in the
store's tables and outlast it. The heartbeat of any member counts for the whole group: the last one sets the
consume type and model, a topic it does not name is dropped, a newer version of a subscription replaces the
older one.

Members are notified (request 40, so that they rebalance):

    when                                            group's switch off    group is BROADCASTING
    a connection joins, topics are added or gone    not notified          not notified (4.9: notified)
    a client unregisters                            not notified          not notified (4.9: notified)
    a connection closes                             notified              not notified (4.9: notified)
    a client without heartbeat expires              not notified: members find out when they rebalance

Mirrors `ConsumerManager` and `ConsumerGroupInfo`; touched by the event loop's thread only. How notices
travel: `consumer_notices.py`.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final

from pocketmq.protocol.bodies.client import SubscriptionData

from ..network.dispatch import Peer
from .client import Client

_log = logging.getLogger("pocketmq.membership")

CHANNEL_EXPIRED_MS: Final = 120_000
"""A client without heartbeat for longer than this is gone."""
BROADCASTING: Final = "BROADCASTING"

Notify = Callable[[str, list[Peer]], None]
"""Called with a group and its remaining connections when its members or topics changed."""


class ConsumerGroup:
    """The online side of one group (official ConsumerGroupInfo)."""

    __slots__ = (
        "connections",
        "consume_from_where",
        "consume_type",
        "heartbeat_fingerprint",
        "message_model",
        "name",
        "subscriptions",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.consume_type: str | None = None
        self.message_model: str | None = None
        self.consume_from_where: str | None = None
        self.subscriptions: dict[str, SubscriptionData] = {}
        """By topic."""
        self.connections: dict[Peer, Client] = {}
        """Members in the order they came."""
        self.heartbeat_fingerprint: int | None = None
        """Of the last heartbeat of any member; 0 for the old form that always names its subscriptions."""

    def subscription(self, topic: str) -> SubscriptionData | None:
        """What the group wants of a topic; asked by every pull."""
        return self.subscriptions.get(topic)

    def clients(self) -> list[Client]:
        return list(self.connections.values())

    def client_ids(self) -> list[str]:
        """The answer to 38: one id for each connection."""
        return [client.client_id for client in self.connections.values()]

    def find(self, client_id: str) -> Client | None:
        """The first member of this id."""
        for client in self.connections.values():
            if client.client_id == client_id:
                return client
        return None

    @property
    def is_broadcasting(self) -> bool:
        return self.message_model == BROADCASTING

    def update_client(self, client: Client) -> bool:
        """Note a heartbeat; True for a connection that was not a member."""
        known = self.connections.get(client.connection)
        if known is None:
            _log.info("new consumer of %s: %r", self.name, client)
            self.connections[client.connection] = client
            return True
        if known.client_id != client.client_id:
            _log.error("consumer %r of %s was %r before on the same connection", client, self.name, known)
            self.connections[client.connection] = client
        known.last_update_ms = client.last_update_ms
        return False

    def update_subscriptions(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Take over what a heartbeat names; True if a topic came or went (a newer version alone does not
        count)."""
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
            _log.info("%s does not subscribe to %s any more", self.name, topic)
            changed = True
            del self.subscriptions[topic]
        return changed


class ConsumerGroups:
    """All consumer groups online (official ConsumerManager)."""

    def __init__(
        self,
        notify: Notify,
        *,
        is_5: bool = True,
        expiry_ms: int = CHANNEL_EXPIRED_MS,
        on_gone: Callable[[str], None] | None = None,
    ) -> None:
        """`on_gone` is called with a group whose last client left."""
        self._notify = notify
        self._on_gone = on_gone
        self._tells_broadcasting = not is_5
        self._expiry_ms = expiry_ms
        self._groups: dict[str, ConsumerGroup] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group: str) -> ConsumerGroup | None:
        """The group, or `None` where no client of it is connected."""
        return self._groups.get(group)

    def find(self, group: str, client_id: str) -> Client | None:
        """One member of one group."""
        known = self._groups.get(group)
        return None if known is None else known.find(client_id)

    def subscribed_to(self, topic: str) -> list[str]:
        """Names of the groups online that subscribe to a topic.

        5.5.0 also lists groups that left the topic or expired, until its restart; that is not copied.
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
        """Take one consumer entry of a heartbeat; True if a member or a topic came or went.

        `subscriptions` is `None` in a heartbeat V2 that left them out: what is known stays. `is_notified` is
        the group's own switch (notifyConsumerIdsChangedEnable).
        """
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = ConsumerGroup(group)
        known.consume_type = consume_type
        known.message_model = message_model
        known.consume_from_where = consume_from_where
        changed = known.update_client(client)
        if subscriptions is not None and known.update_subscriptions(subscriptions):
            changed = True
        if changed and is_notified:
            self._tell(known)
        return changed

    def unregister(self, group: str, connection: Peer, *, is_notified: bool = True) -> None:
        """A client leaves a group in good order (35)."""
        known = self._groups.get(group)
        if known is None:
            return
        known.connections.pop(connection, None)
        self._drop_if_empty(known)
        if is_notified:
            self._tell(known)

    def connection_closed(self, connection: Peer) -> None:
        """A connection is gone: out of every group, whatever the groups' own switches say."""
        for group in list(self._groups.values()):
            client = group.connections.pop(connection, None)
            if client is None:
                continue
            _log.info("consumer %r of %s is gone", client, group.name)
            self._drop_if_empty(group)
            self._tell(group)

    def expire(self, now_ms: int) -> None:
        """Drop clients without heartbeat for 120 s and close their connections; due every 10 s."""
        limit_ms = now_ms - self._expiry_ms
        for group in list(self._groups.values()):
            for client in group.clients():
                if client.last_update_ms >= limit_ms:
                    continue
                _log.warning("consumer %r of %s is silent, closing its connection", client, group.name)
                del group.connections[client.connection]
                client.connection.close()
            self._drop_if_empty(group)

    def _drop_if_empty(self, group: ConsumerGroup) -> None:
        if not group.connections:
            self._groups.pop(group.name, None)
            if self._on_gone is not None:
                self._on_gone(group.name)

    def _tell(self, group: ConsumerGroup) -> None:
        if group.connections and (self._tells_broadcasting or not group.is_broadcasting):
            self._notify(group.name, list(group.connections))
