"""The connected producers, by group and by client id.

The group finds a producer that can check a transaction (39), the client id finds the client that waits for a reply
(326). Consumers are in `consumer_groups.py`. Mirrors `ProducerManager`; only the event loop's thread touches it.
"""

import logging

from ..network.dispatch import Peer
from .client import Client
from .consumer_groups import CHANNEL_EXPIRED_MS

_log = logging.getLogger("pocketmq.membership")


class ProducerGroups:
    """All online producers. Each client is at least in the group CLIENT_INNER_PRODUCER."""

    def __init__(self, *, is_5: bool = True, expiry_ms: int = CHANNEL_EXPIRED_MS) -> None:
        self._keeps_empty_groups = not is_5
        self._expiry_ms = expiry_ms
        self._groups: dict[str, dict[Peer, Client]] = {}
        self._by_client_id: dict[str, Peer] = {}
        self._turn = 0

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group: str) -> dict[Peer, Client] | None:
        """Members of a group in the order in which they joined; `None` for an unknown group.

        The 4.9 line keeps a group without members after its last connection has closed.
        """
        return self._groups.get(group)

    def all(self) -> dict[str, list[Client]]:
        """Every group with members."""
        return {group: list(members.values()) for group, members in self._groups.items() if members}

    def find_connection(self, client_id: str) -> Peer | None:
        """The connection on which a client last registered a producer."""
        return self._by_client_id.get(client_id)

    def available_connection(self, group: str) -> Peer | None:
        """A connection of the group, the next one with each call (official getAvailableChannel)."""
        members = self._groups.get(group)
        if not members:
            return None
        connections = list(members)
        self._turn += 1
        for step in range(len(connections)):
            connection = connections[(self._turn + step) % len(connections)]
            if not connection.closed:
                return connection
        return None

    def register(self, group: str, client: Client) -> None:
        """Register one producer entry of a heartbeat."""
        members = self._groups.setdefault(group, {})
        known = members.get(client.connection)
        if known is not None:
            known.last_update_ms = client.last_update_ms
            return
        members[client.connection] = client
        self._by_client_id[client.client_id] = client.connection
        _log.debug("new producer of %s: %r", group, client)

    def unregister(self, group: str, connection: Peer) -> None:
        """A client's producer of this group shut down (35)."""
        members = self._groups.get(group)
        if not members:
            return
        client = members.pop(connection, None)
        if client is not None:
            self._forget_client_id(client)
        if not members:
            del self._groups[group]

    def connection_closed(self, connection: Peer) -> None:
        for group, members in list(self._groups.items()):
            client = members.pop(connection, None)
            if client is None:
                continue
            _log.debug("producer %r of %s disconnected", client, group)
            self._forget_client_id(client)
            self._drop_if_empty(group, members)

    def expire(self, now_ms: int) -> None:
        """Drop clients without heartbeat for 120 s and close their connections; due every 10 s."""
        limit_ms = now_ms - self._expiry_ms
        for group, members in list(self._groups.items()):
            for client in list(members.values()):
                if client.last_update_ms >= limit_ms:
                    continue
                _log.warning("producer %r of %s sends no heartbeats: closing its connection", client, group)
                del members[client.connection]
                self._forget_client_id(client)
                client.connection.close()
            self._drop_if_empty(group, members)

    def _drop_if_empty(self, group: str, members: dict[Peer, Client]) -> None:
        if not members and not self._keeps_empty_groups:
            self._groups.pop(group, None)

    def _forget_client_id(self, client: Client) -> None:
        # Keep the id if it belongs to a newer connection of the client, or while another group has this connection.
        # The official broker removes it in both cases, and replies to the client fail from then on.
        if self._by_client_id.get(client.client_id) is not client.connection:
            return
        if not any(client.connection in members for members in self._groups.values()):
            del self._by_client_id[client.client_id]
