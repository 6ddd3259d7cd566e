"""The port: listening sockets, its connections, how many and with how much memory, idle ones, and the clean stop."""

import logging
import socket
from typing import Any, Final

from pocketmq.broker.network.port import Port
from pocketmq.broker.network.tls_stream import TlsPolicy

from .connection import Http2Connection
from .limits import Limits, MemoryBudget
from .server_stream import Service

_log = logging.getLogger("pocketmq.grpc")

SCAN_SECONDS: Final = 10.0
"""At most; with a short idle limit the scan runs more often."""
SHORTEST_SCAN_SECONDS: Final = 0.05
PREFACE_SECONDS: Final = 20.0
"""A connection that has not sent its first bytes by then is closed."""
FAREWELL_SECONDS: Final = 5.0
"""How long a client that broke a rule may take to read why."""


class Http2Port(Port[Http2Connection]):
    """`bind` opens the port, `serve` accepts connections, `stop` ends both; all on one event loop."""

    def __init__(self, service: Service, limits: Limits, tls: TlsPolicy | None) -> None:
        super().__init__("gRPC")
        self.service = service
        self.limits = limits
        self._tls = tls
        self.memory = MemoryBudget(limits.port_bytes, self._memory_exceeded)
        self._is_closing_one = False
        self._has_warned = False
        """That there are too many connections; once a scan."""
        self._scan_seconds = max(min(SCAN_SECONDS, limits.idle_seconds / 4), SHORTEST_SCAN_SECONDS)
        self._scan = self.loop.call_later(self._scan_seconds, self._close_idle)

    def _new_connection(self) -> Http2Connection:
        return Http2Connection(self)

    def _tls_policy(self) -> TlsPolicy | None:
        return self._tls

    async def serve(self) -> None:
        """Accept connections on the bound port."""
        await self._accept()

    def go_away(self) -> None:
        """Accept nothing new, and let the open calls end."""
        if self._is_stopped:
            return
        self._stop_listening()
        for connection in list(self.connections):
            for stream in list(connection.streams.values()):
                stream.server_stops()
            connection.go_away("the server stops")

    async def stop(self) -> None:
        """Wait for the open calls (at most `Limits.shutdown_seconds`), then close every connection."""
        self.go_away()
        await self._end(self.limits.shutdown_seconds)

    # -- called by the connections

    def connected(self, connection: Http2Connection, descriptor: int) -> None:
        if connection.out.transport is not None:
            _keep_alive(connection.out.transport.get_extra_info("socket"))
        super().connected(connection, descriptor)

    def _is_full(self) -> bool:
        """Whether there are more connections than allowed, the newest included."""
        most = self.limits.connections
        if len(self.connections) + len(self.undetected) <= most:
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
        for waiting in list(self.undetected):
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
