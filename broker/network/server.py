"""A remoting server: its ports and its connections, from the start to a clean stop.

The name server and the broker are two servers with different handler tables. A server also opens connections to peers
(`connect`); they are the same objects, and requests that arrive on them are answered from the same table.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ..config.addresses import host_and_port
from ..errors import PeerError
from .connection import Connection
from .dispatch import Handlers, Peer
from .port import Port
from .server_context import Guard, Limits, SendHandler, ServerContext, Signer
from .tls import Tls
from .tls_stream import TlsDetector
from .watch import Watcher

_log = logging.getLogger("pocketmq.network")

IDLE_SCAN_SECONDS: Final = 10.0
"""At most; with a short idle limit the scan runs more often."""
CLOSED_AT_ONCE: Final = 200
"""Idle connections; each end has work for the parts of a broker."""
NEXT_IDLE_SECONDS: Final = 0.02
CONNECT_TIMEOUT_SECONDS: Final = 3.0
CLOSE_TIMEOUT_SECONDS: Final = 2.0


class Server(Port[Connection], ServerContext):
    """Sockets of one role. `bind` opens ports, `serve` accepts connections, `close` ends both, on one event loop."""

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
        Port.__init__(self, name)
        ServerContext.__init__(self, name, version, json_replies, limits, watchers)
        self.signer = signer
        """Signs our requests on connections we open."""
        self.tls = tls
        """`None` if this server does not speak TLS."""
        self._on_close: Callable[[Peer], None] | None = None
        self._scan_seconds = min(IDLE_SCAN_SECONDS, self.limits.idle_seconds / 4)
        self._scan = self.loop.call_later(self._scan_seconds, self._close_idle)

    def _new_connection(self) -> Connection:
        return Connection(self)

    def _tls_policy(self) -> Tls | None:
        return self.tls if self.tls is not None and self.tls.is_served else None

    async def serve(
        self,
        handlers: Handlers,
        *,
        guard: Guard | None = None,
        sends: SendHandler | None = None,
        on_close: Callable[[Peer], None] | None = None,
    ) -> None:
        """Accept connections on the bound ports, and answer them from this table. `on_close` is called once for each
        connection that closed, after its calls have failed."""
        self.handlers, self.guard, self.sends, self._on_close = handlers, guard, sends, on_close
        await self._accept()

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
        self._stop_listening()
        for connection in list(self.connections):
            connection.close()
        await self._end(CLOSE_TIMEOUT_SECONDS)

    # -- watchers

    def watchers_changed(self) -> None:
        super().watchers_changed()
        for connection in self.connections:
            connection.watch = self.watch

    # -- called by the connections

    def disconnected(self, connection: Connection) -> None:
        super().disconnected(connection)
        if self._on_close is not None:
            self._on_close(connection)

    def _close_idle(self) -> None:
        limit = self.loop.time() - self.limits.idle_seconds
        peers: list[Connection | TlsDetector] = [*self.connections, *self.undetected]
        idle = [connection for connection in peers if connection.last_activity < limit]
        for connection in idle[:CLOSED_AT_ONCE]:
            _log.info("closing %s: idle for %d s", connection.peer, self.limits.idle_seconds)
            connection.abort()  # not `close`: a peer that does not read would keep it open
        seconds = self._scan_seconds if len(idle) <= CLOSED_AT_ONCE else NEXT_IDLE_SECONDS
        self._scan = self.loop.call_later(seconds, self._close_idle)
