"""One client on one connection, as its heartbeats describe it.

Only the time of the last heartbeat changes. `consumer_groups.py` and `producer_groups.py` keep the groups of a client.
"""

import logging
from collections.abc import Callable, Generator, Iterable

from ..network.dispatch import Peer

_log = logging.getLogger("pocketmq.membership")


class Client:
    """Official ClientChannelInfo. `language` and `version` are those of the heartbeat's command header."""

    __slots__ = ("client_id", "connection", "language", "last_update_ms", "version")

    def __init__(self, connection: Peer, client_id: str, language: str, version: int, now_ms: int) -> None:
        self.connection = connection
        self.client_id = client_id
        self.language = language
        self.version = version
        self.last_update_ms = now_ms

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
