"""The connected producers, by group and by client id.

The group finds a producer that can check a transaction (39), the client id finds the client that waits for a reply
(326). Consumers are in `consumer_groups.py`. Mirrors `ProducerManager`; only the event loop's thread touches it.
"""

import logging
from collections.abc import Collection, Generator

from ..network.dispatch import Peer
from .consumer_groups import CHANNEL_EXPIRED_MS, Client, expire_clients

_log = logging.getLogger("pocketmq.membership")


class ProducerGroups:
    """All online producers. Each client is at least in the group CLIENT_INNER_PRODUCER."""

    def __init__(self, *, is_5: bool = True, expiry_ms: int = CHANNEL_EXPIRED_MS) -> None:
        self._keeps_empty_groups = not is_5
        self._expiry_ms = expiry_ms
        self._groups: dict[str, dict[Peer, Client]] = {}
        self._of_connection: dict[Peer, dict[str, str]] = {}
        """The groups of each connection, each with its client id."""
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
        return {group: list(members.values()) for group, members in self._groups.items() if members}

    def of_connection(self, connection: Peer) -> Collection[str]:
        return self._of_connection.get(connection, ())

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
        members = self._groups.setdefault(group, {})
        known = members.get(client.connection)
        if known is not None:
            known.last_update_ms = client.last_update_ms
            return
        members[client.connection] = client
        self._of_connection.setdefault(client.connection, {})[group] = client.client_id
        self._by_client_id[client.client_id] = client.connection
        _log.debug("new producer of %s: %r", group, client)

    def unregister(self, group: str, connection: Peer) -> None:
        """A client's producer of this group shut down (35)."""
        members = self._groups.get(group)
        if not members:
            return
        self._remove(group, members, connection)
        if not members:
            del self._groups[group]

    def connection_closed(self, connection: Peer) -> None:
        for group, client_id in self._of_connection.pop(connection, {}).items():
            _log.debug("a producer of %s disconnected: %s", group, connection.peer)
            members = self._groups[group]
            del members[connection]
            self._drop_if_empty(group, members)
            self._forget_client_id(client_id, connection)

    def expire(self, now_ms: int) -> Generator[None]:
        """Drop clients without heartbeat for 120 s and close their connections; due every 10 s."""

        def drop(group: str, client: Client) -> None:
            members = self._groups[group]
            self._remove(group, members, client.connection)
            self._drop_if_empty(group, members)

        groups = list(self._groups.items())
        return expire_clients(
            "producer",
            ((group, client) for group, members in groups for client in list(members.values())),
            now_ms - self._expiry_ms,
            lambda group, client: self._groups.get(group, {}).get(client.connection) is client,
            drop,
        )

    def _remove(self, group: str, members: dict[Peer, Client], connection: Peer) -> None:
        if members.pop(connection, None) is None:
            return
        groups = self._of_connection[connection]
        client_id = groups.pop(group)
        if not groups:
            del self._of_connection[connection]
        # Another group may have this client too. The official broker forgets it, and replies to it fail from then on.
        if client_id not in groups.values():
            self._forget_client_id(client_id, connection)

    def _forget_client_id(self, client_id: str, connection: Peer) -> None:
        # Not if the client has a newer connection, which the official broker does not ask.
        if self._by_client_id.get(client_id) is connection:
            del self._by_client_id[client_id]

    def _drop_if_empty(self, group: str, members: dict[Peer, Client]) -> None:
        if not members and not self._keeps_empty_groups:
            self._groups.pop(group, None)
