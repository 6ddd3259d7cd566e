"""What a connection uses of the port it belongs to, and the limits of each connection."""

import asyncio
import socket
from typing import Any, Protocol

import msgspec

from .outgoing import MemoryBudget
from .service import Service


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Of each connection, and of all of a port together."""

    message_bytes: int = 136_314_880
    """The longest message of a client."""
    calls: int = 10_000
    """Calls at once; a client keeps back more than that."""
    idle_seconds: float = 120.0
    """A connection without a call is closed after this time."""
    pass_seconds: float = 0.005
    """A pass over what a connection has sent ends with the frame that it handles then; the others have their turn."""
    shutdown_seconds: float = 2.0
    """How long open calls may take when the port stops."""
    unread_bytes: int = 67_108_864
    """Replies that wait for a client's window; new calls are refused beyond that."""
    connections: int = 10_000
    """At once; more are closed when they open."""
    port_calls: int = 100_000
    """Open calls of all connections, some KiB each; beyond that the one that has most is closed."""
    port_bytes: int = 545_259_520
    """Unfinished requests and replies that clients do not read, of all connections; beyond that the one that keeps most
    is closed. The first 64 KiB of each socket are not counted."""


class ConnectionOwner(Protocol):
    """The port, as its connections see it."""

    loop: asyncio.AbstractEventLoop
    service: Service
    limits: Limits
    memory: MemoryBudget

    def connected(self, connection: Any) -> None: ...

    def disconnected(self, connection: Any) -> None: ...


def keep_alive(below: Any) -> None:
    """Clients that vanish with an open call are noticed by the system."""
    if below is not None and below.family in (socket.AF_INET, socket.AF_INET6):
        below.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            below.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
