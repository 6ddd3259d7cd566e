"""What a connection uses of the server it belongs to, and the limits of each connection.

    Server (server.py) is a Role: it owns the listening sockets and the set of connections
    Connection (connection.py) sees the Role only

Mirrors what `NettyRemotingAbstract` shares between its channels: the processor table, the RPC hooks, the semaphores.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from pocketmq.core.sends import Send
from pocketmq.protocol.wire.command import Command, RawBody

from .dispatch import Handlers, Peer
from .watch import Watch

Guard = Callable[[Command, str], None]
"""Called with each request and its sender's `host:port`; raises `Refusal` to refuse it."""

Signer = Callable[[Command, RawBody | None], None]
"""Called with a request of ours and its body; adds the fields that sign it."""


class Limits(msgspec.Struct, frozen=True):
    """Limits of each connection; defaults and names as in `config/broker_config.py`."""

    idle_seconds: float = 120.0
    """The server closes a connection without a read for this long, as the official server's idle handler does."""
    unread_bytes: int = 4_194_304
    """While a peer leaves more than this unread, we do not read from it."""
    tasks: int = 4096
    """Coroutine handlers that run at once."""
    calls: int = 4096
    """Requests of ours without a reply."""


class Member(Peer, Protocol):
    """A connection as its server keeps it."""

    last_activity: float
    """Loop time of the last read."""
    watch: Watch | None
    """What sees its requests; the server changes it with its own."""

    def abort(self) -> None: ...

    def transport_wrapped(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> None: ...


class Sends(Protocol):
    """What handles sends that a connection recognised without decoding them."""

    def take(self, connection: Any, frames: list[Send]) -> None:
        """Handle the frames in their order."""


class Role(Protocol):
    """One server, as its connections see it."""

    loop: asyncio.AbstractEventLoop
    handlers: Handlers
    guard: Guard | None
    """Sees each request before its handler does; `None` without access control."""
    watch: Watch | None
    """What sees the requests and replies of all connections; `None` if nothing watches."""
    sends: "Sends | None"
    """Handles sends that were read without being decoded; `None` if each request is decoded."""
    version: int
    """Version number in our command headers."""
    json_replies: bool
    """Whether replies have JSON headers always (5.5.0), or the header form of their request (4.9.7)."""
    limits: Limits

    def next_opaque(self) -> int:
        """The number of our next request."""

    def connected(self, connection: Member, descriptor: int) -> None:
        """The connection is open."""

    def disconnected(self, connection: Member) -> None:
        """The connection is closed, and its unanswered calls have failed."""

    def unknown_code(self, code: int, peer: str) -> None:
        """The peer sent a request without a handler."""
