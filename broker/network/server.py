"""A remoting server: its ports and its connections, from the start to a clean stop.

The name server and the broker are two servers with different handler tables. A server also opens connections to peers
(`connect`); they are the same objects, and requests that arrive on them are answered from the same table.
"""

import asyncio
import contextlib
import itertools
import logging
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ..config.addresses import host_and_port
from ..errors import PeerError
from ..said_once import SaidOnce
from .connection import Connection
from .dispatch import Handlers, Peer
from .listening import Descriptors, accept, bind_sockets, close_all, not_lingering, port_of
from .server_context import Guard, Limits, SendHandler, Signer
from .tls import Tls
from .tls_stream import Handshakes, TlsDetector
from .watch import Watchable, Watcher

_log = logging.getLogger("pocketmq.network")

IDLE_SCAN_SECONDS: Final = 10.0
"""At most; with a short idle limit the scan runs more often."""
CLOSED_AT_ONCE: Final = 200
"""Idle connections; each end has work for the parts of a broker."""
NEXT_IDLE_SECONDS: Final = 0.02
CONNECT_TIMEOUT_SECONDS: Final = 3.0
CLOSE_TIMEOUT_SECONDS: Final = 2.0


class Server(Watchable):
    """Sockets of one role. `bind` opens ports, `serve` accepts connections, `close` ends both; all on one event loop.

    `serve` takes an `on_close`, which is called once for each connection that closed,
    after its calls have failed.
    """

    def __init__(
        self,
        name: str,
        *,
        version: int,
        json_replies: bool = True,
        limits: Limits | None = None,
        watchers: Sequence[Watcher] = (),
        tls: Tls | None = None,
        signer: Signer | None = None,
    ) -> None:
        super().__init__(watchers)
        self.handlers = Handlers(name)
        """Empty until `serve`."""
        self.version = version
        self.json_replies = json_replies
        self.limits = limits or Limits()
        self.guard: Guard | None = None
        """Sees each request before its handler does; `None` without access control."""
        self.sends: SendHandler | None = None
        """Handles sends that were read without being decoded; `None` if each request is decoded."""
        self.signer = signer
        """Signs our requests on connections we open."""
        self.tls = tls
        """`None` if this server does not speak TLS."""
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self._handshakes = Handshakes(self.loop)
        self._waiting: set[TlsDetector] = set()
        """Connections before their first byte, which decides between TLS and plain frames."""
        self._on_close: Callable[[Peer], None] | None = None
        self._opaque = itertools.count(1)
        self._said = SaidOnce()
        self._sockets: list[socket.socket] = []
        """Bound; `serve` has not accepted from them yet."""
        self._listeners: list[asyncio.Server] = []
        self._is_closed = False
        self._descriptors = Descriptors()
        self._last_closed: asyncio.Event | None = None
        """While `close` waits for the connections."""
        self._idle_scan_seconds = min(IDLE_SCAN_SECONDS, self.limits.idle_seconds / 4)
        self._idle_scan = self.loop.call_later(self._idle_scan_seconds, self._close_idle)

    async def bind(self, host: str, port: int) -> int:
        """Bind `host:port` (0 picks a free port) and return the port. Raises `StartError` if it is in use.

        Clients that connect wait in the system's queue until `serve`.
        """
        sockets = await bind_sockets(self.loop, host, port, self.handlers.name)
        self._sockets += sockets
        return port_of(sockets)

    def unbind(self) -> None:
        """Give back what `bind` has opened."""
        close_all(self._sockets)
        self._sockets.clear()

    async def serve(
        self,
        handlers: Handlers,
        *,
        guard: Guard | None = None,
        sends: SendHandler | None = None,
        on_close: Callable[[Peer], None] | None = None,
    ) -> None:
        """Accept connections on the bound ports, and answer them from this table."""
        self.handlers, self.guard, self._on_close = handlers, guard, on_close
        self.sends = sends
        await accept(self.loop, self._protocol, self._sockets, self._listeners)

    def _protocol(self) -> Connection | TlsDetector:
        if self.tls is None or not self.tls.is_served:
            return Connection(self)
        return TlsDetector(
            self.loop,
            self.tls,
            self._handshakes,
            partial(Connection, self),
            self._opened_undetected,
            self._waiting.discard,
        )

    async def connect(self, address: str) -> Connection:
        """A connection to the peer at `host:port`. Raises `PeerError` if it cannot be opened."""
        try:
            host, port = host_and_port(address)
        except ValueError as error:
            raise PeerError(f"the address {error}, got {address!r}") from error
        context = self.tls.client_context() if self.tls is not None and self.tls.uses_client else None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                _, connection = await self.loop.create_connection(
                    partial(Connection, self), host, port, ssl=context
                )
            connection.calls.signer = self.signer
        except (OSError, TimeoutError, UnicodeError) as error:
            raise PeerError(f"cannot connect to {host}:{port}: {str(error) or 'timed out'}") from error
        return connection

    async def close(self) -> None:
        """Stop listening, close every connection, and wait until all are closed (at most 2 s)."""
        self._is_closed = True
        self._idle_scan.cancel()
        close_all(self._sockets)
        for listener in self._listeners:
            listener.close()
        for peer in self._peers():
            peer.close()
        if self.connections:
            self._last_closed = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_TIMEOUT_SECONDS):
                    await self._last_closed.wait()
        for connection in list(self.connections):
            connection.abort()
        await asyncio.sleep(0)  # asyncio reports their end in the next loop iteration
        self._listeners.clear()
        self._sockets.clear()

    def reset(self) -> None:
        """Stop listening and reset every connection, as the system does for a killed process; then call `close`."""
        self._is_closed = True
        for listener in self._listeners:
            listener.close()
        for connection in self._peers():
            connection.wrap_transport(not_lingering)
            connection.abort()

    # -- watchers

    def watchers_changed(self) -> None:
        super().watchers_changed()
        for connection in self.connections:
            connection.watch = self.watch

    def next_opaque(self) -> int:
        return next(self._opaque) & 0x7FFFFFFF

    # -- called by the connections

    def connected(self, connection: Connection, descriptor: int) -> None:
        self.connections.add(connection)
        self._check(connection, descriptor)

    def disconnected(self, connection: Connection) -> None:
        self.connections.discard(connection)
        if self._last_closed is not None and not self.connections:
            self._last_closed.set()
        if self._on_close is not None:
            self._on_close(connection)

    def unknown_code(self, code: int, peer: str) -> None:
        """Log once for each code that it has no handler."""
        if self._said.first(code):
            _log.warning("%s: request code %d is not supported (from %s)", self.handlers.name, code, peer)

    def _opened_undetected(self, connection: TlsDetector) -> None:
        self._waiting.add(connection)
        self._check(connection, connection.descriptor)

    def _check(self, connection: Connection | TlsDetector, descriptor: int) -> None:
        """Close a connection accepted from the backlog after the listener was closed, or one too many."""
        if self._is_closed or not self._descriptors.has_room(descriptor, connection.peer, self.loop.time()):
            connection.abort()

    def _peers(self) -> list[Connection | TlsDetector]:
        return [*self.connections, *self._waiting]

    def _close_idle(self) -> None:
        limit = self.loop.time() - self.limits.idle_seconds
        idle = [connection for connection in self._peers() if connection.last_activity < limit]
        for connection in idle[:CLOSED_AT_ONCE]:
            _log.info("closing %s: idle for %d s", connection.peer, self.limits.idle_seconds)
            connection.abort()  # not `close`: a peer that does not read would keep it open
        seconds = self._idle_scan_seconds if len(idle) <= CLOSED_AT_ONCE else NEXT_IDLE_SECONDS
        self._idle_scan = self.loop.call_later(seconds, self._close_idle)
