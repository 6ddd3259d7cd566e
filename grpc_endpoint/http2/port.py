"""The port: listening sockets, its connections, how many and with how much memory, idle ones, and the clean stop."""

import asyncio
import contextlib
import logging
import socket
from typing import Any, Final

from pocketmq.broker.network.listening import (
    Descriptors,
    accept,
    bind_sockets,
    close_all,
    not_lingering,
    port_of,
)
from pocketmq.broker.network.tls_stream import Handshakes, TlsDetector, TlsPolicy

from .connection import Http2Connection
from .limits import Limits, MemoryBudget
from .service import Service

_log = logging.getLogger("pocketmq.grpc")

SCAN_SECONDS: Final = 10.0
"""At most; with a short idle limit the scan runs more often."""
SHORTEST_SCAN_SECONDS: Final = 0.05
PREFACE_SECONDS: Final = 20.0
"""A connection that has not sent its first bytes by then is closed."""
FAREWELL_SECONDS: Final = 5.0
"""How long a client that broke a rule may take to read why."""


class Http2Port:
    """`bind` opens the port, `serve` accepts connections, `stop` ends both; all on one event loop."""

    def __init__(self, service: Service, limits: Limits, tls: TlsPolicy | None) -> None:
        self.loop = asyncio.get_running_loop()
        self.service = service
        self.limits = limits
        self._tls = tls
        """`None` if this port does not speak TLS."""
        self.connections: set[Http2Connection] = set()
        self._handshakes = Handshakes(self.loop)
        self._waiting: set[TlsDetector] = set()
        """Connections before their first bytes."""
        self._sockets: list[socket.socket] = []
        self._listeners: list[asyncio.Server] = []
        self._descriptors = Descriptors()
        self._is_stopped = False
        self._last_closed: asyncio.Event | None = None
        """While `stop` waits for the connections."""
        self.memory = MemoryBudget(limits.port_bytes, self._memory_exceeded)
        self._is_closing_one = False
        self._has_warned = False
        """That there are too many connections; once a scan."""
        self._scan_seconds = max(min(SCAN_SECONDS, limits.idle_seconds / 4), SHORTEST_SCAN_SECONDS)
        self._scan = self.loop.call_later(self._scan_seconds, self._close_idle)

    async def bind(self, host: str, port: int) -> int:
        """Bind `host:port` (0 picks a free port) and return the port. Raises `StartError` if it is in use."""
        self._sockets += await bind_sockets(self.loop, host, port, "gRPC")
        return port_of(self._sockets)

    async def serve(self) -> None:
        """Accept connections on the bound port."""
        await accept(self.loop, self._protocol, self._sockets, self._listeners)

    def _protocol(self) -> asyncio.Protocol:
        if self._tls is None:
            return Http2Connection(self)
        return TlsDetector(
            self.loop,
            self._tls,
            self._handshakes,
            lambda: Http2Connection(self),
            self._opened_undetected,
            self._waiting.discard,
        )

    def go_away(self) -> None:
        """Accept nothing new, and let the open calls end."""
        if self._is_stopped:
            return
        self._stop_listening()
        for connection in list(self.connections):
            for stream in list(connection.streams.values()):
                stream.server_stops()
            connection.go_away("the server stops")

    def reset(self) -> None:
        """Stop listening and reset every connection, as the system does for a killed process; then call `stop`."""
        self._stop_listening()
        for connection in list(self.connections):
            connection.wrap_transport(not_lingering)
        self.abort()

    def _stop_listening(self) -> None:
        self._is_stopped = True
        self._scan.cancel()
        close_all(self._sockets)
        for listener in self._listeners:
            listener.close()
        for waiting in list(self._waiting):
            waiting.abort()

    async def stop(self) -> None:
        """Wait for the open calls (at most `Limits.shutdown_seconds`), then close every connection."""
        self.go_away()
        if self.connections:
            self._last_closed = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.limits.shutdown_seconds):
                    await self._last_closed.wait()
        self.abort()
        await asyncio.sleep(0)  # asyncio reports their end in the next loop iteration
        self._listeners.clear()
        self._sockets.clear()

    def abort(self) -> None:
        """Close every connection at once."""
        for connection in list(self.connections):
            connection.abort()

    # -- called by the connections

    def connected(self, connection: Http2Connection) -> None:
        self.connections.add(connection)
        if connection.out.transport is not None:
            _keep_alive(connection.out.transport.get_extra_info("socket"))
        if self._is_stopped or self._is_full():  # accepted from the backlog after the listener was closed
            connection.abort()

    def disconnected(self, connection: Http2Connection) -> None:
        self.connections.discard(connection)
        if self._last_closed is not None and not self.connections:
            self._last_closed.set()

    def _opened_undetected(self, connection: TlsDetector) -> None:
        self._waiting.add(connection)
        has_room = self._descriptors.has_room(connection.descriptor, connection.peer, self.loop.time())
        if self._is_stopped or not has_room or self._is_full():
            connection.abort()

    def _is_full(self) -> bool:
        """Whether there are more connections than allowed, the newest included."""
        most = self.limits.connections
        if len(self.connections) + len(self._waiting) <= most:
            return False
        if not self._has_warned:
            _log.warning("closing new connections: %d are open, the most that are allowed", most)
        self._has_warned = True
        return True

    def _memory_exceeded(self) -> None:
        """Schedule closing the connection that uses the most memory."""
        if not self._is_closing_one:
            self._is_closing_one = True
            self.loop.call_soon(self._close_largest)

    def _close_largest(self) -> None:
        self._is_closing_one = False
        most = self.limits.port_bytes
        while self.memory.bytes > most and self.connections:
            worst = max(self.connections, key=lambda connection: connection.out.kept_bytes)
            if not worst.out.kept_bytes:
                return
            worst.close_overloaded(
                f"all clients together make the port keep more than {most} bytes, and it the most"
            )

    def _close_idle(self) -> None:
        self._has_warned = False
        now, idle = self.loop.time(), self.limits.idle_seconds
        for waiting in list(self._waiting):
            if waiting.last_activity < now - PREFACE_SECONDS:
                waiting.abort()
        for connection in list(self.connections):
            out = connection.out
            if connection.is_failed:
                if connection.last_activity < now - FAREWELL_SECONDS:
                    connection.abort()
            elif not connection.has_preface:
                if connection.last_activity < now - PREFACE_SECONDS:
                    connection.abort()
            elif out.is_stuck and out.progress_at < now - idle:
                _log.warning("closing %s: it does not read its replies", connection.peer)
                connection.abort()
            elif connection.last_activity < now - idle and _has_unfinished(connection):
                _log.warning("closing %s: it does not finish its requests", connection.peer)
                connection.abort()
            elif not connection.streams and connection.last_activity < now - idle:
                _log.info("closing %s: no call for %.0f s", connection.peer, idle)
                connection.go_away("idle")
                if connection.last_activity < now - 2 * idle:
                    connection.abort()  # it does not read either
        self._bound_calls()
        self._scan = self.loop.call_later(self._scan_seconds, self._close_idle)

    def _bound_calls(self) -> None:
        """Between two scans a client can open no more calls than we can read."""
        most = self.limits.port_calls
        open_calls = sum(len(connection.streams) for connection in self.connections)
        while open_calls > most:
            worst = max(self.connections, key=lambda connection: len(connection.streams))
            open_calls -= len(worst.streams)
            worst.close_overloaded(f"the port has more than {most} open calls, and most are of this client")


def _has_unfinished(connection: Http2Connection) -> bool:
    """Whether a request has begun and waits for its end."""
    streams = connection.streams.values()
    return connection.out.unfinished_bytes > 0 or any(stream.is_unfinished for stream in streams)


def _keep_alive(below: Any) -> None:
    """Clients that vanish with an open call are noticed by the system."""
    if below is not None and below.family in (socket.AF_INET, socket.AF_INET6):
        below.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            below.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
