"""One client on one connection, as its heartbeats describe it.

Only the time of the last heartbeat changes. `consumer_groups.py` and `producer_groups.py` keep the groups of a client.
"""

from ..network.dispatch import Peer


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
