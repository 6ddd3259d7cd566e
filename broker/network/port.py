"""An open port: its sockets, TLS by the first byte, the connections that it accepted, and their end.

What is spoken on it is decided by its subclass: frames (`server.py`), or HTTP/2 (`pocketmq.grpc_endpoint.http2.port`).
"""

import asyncio
import contextlib
import socket
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from .listening import Descriptors, accept, bind_sockets, close_all, not_lingering, port_of
from .tls_stream import Handshakes, TlsDetector, TlsPolicy


class Accepted(Protocol):
    """What a port asks of a connection."""

    @property
    def peer(self) -> str: ...

    def abort(self) -> None: ...

    def wrap_transport(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> None: ...


ConnectionT = TypeVar("ConnectionT", bound=Accepted)


class Port(Generic[ConnectionT]):
    """`bind` opens sockets, `_accept` accepts from them, `_stop_listening` and `_end` close all; on one event loop."""

    def __init__(self, name: str) -> None:
        """`name` says in errors who needs the port."""
        self._name = name
        self.loop = asyncio.get_running_loop()
        self.connections: set[ConnectionT] = set()
        self.undetected: set[TlsDetector] = set()
        """Connections before their first byte, which decides between TLS and plain bytes."""
        self._handshakes = Handshakes(self.loop)
        self._sockets: list[socket.socket] = []
        """Bound; nothing was accepted from them yet."""
        self._listeners: list[asyncio.Server] = []
        self._is_stopped = False
        self._descriptors = Descriptors()
        self._last_closed: asyncio.Event | None = None
        """While the end waits for the connections."""
        self._scan: asyncio.TimerHandle
        """The next look for idle connections."""

    @abstractmethod
    def _new_connection(self) -> Any:
        """A protocol for a connection whose bytes are plain, or were."""

    @abstractmethod
    def _tls_policy(self) -> TlsPolicy | None:
        """`None` if the port does not speak TLS."""

    def _is_full(self) -> bool:
        """Whether there are more connections than allowed, the newest included."""
        return False

    async def bind(self, host: str, port: int) -> int:
        """Bind `host:port` (0 picks a free port) and return the port. Raises `StartError` if it is in use.

        Clients that connect wait in the system's queue until they are accepted.
        """
        sockets = await bind_sockets(host, port, self._name)
        self._sockets += sockets
        return port_of(sockets)

    def unbind(self) -> None:
        close_all(self._sockets)
        self._sockets.clear()

    async def _accept(self) -> None:
        await accept(self._protocol, self._sockets, self._listeners)

    def _protocol(self) -> Any:
        tls = self._tls_policy()
        if tls is None:
            return self._new_connection()
        return TlsDetector(
            self.loop,
            tls,
            self._handshakes,
            self._new_connection,
            self._add_undetected,
            self.undetected.discard,
        )

    def reset(self) -> None:
        """Stop listening and reset every connection, as the system does for a killed process."""
        for undetected in self.undetected:
            undetected.wrap_transport(not_lingering)
        self._stop_listening()
        for connection in list(self.connections):
            connection.wrap_transport(not_lingering)
            connection.abort()

    def _stop_listening(self) -> None:
        self._is_stopped = True
        self._scan.cancel()
        close_all(self._sockets)
        for listener in self._listeners:
            listener.close()
        for undetected in list(self.undetected):
            undetected.abort()

    async def _end(self, seconds: float) -> None:
        """Wait until all connections are closed, at most so long; then close those that are left."""
        if self.connections:
            self._last_closed = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._last_closed.wait()
        self.abort()
        await asyncio.sleep(0)  # asyncio reports their end in the next loop iteration
        self._listeners.clear()
        self._sockets.clear()

    def abort(self) -> None:
        for connection in list(self.connections):
            connection.abort()

    # -- called by the connections

    def connected(self, connection: ConnectionT, descriptor: int) -> None:
        """It has a transport, with this descriptor."""
        self.connections.add(connection)
        self._check(connection, descriptor)

    def disconnected(self, connection: ConnectionT) -> None:
        self.connections.discard(connection)
        if self._last_closed is not None and not self.connections:
            self._last_closed.set()

    def _add_undetected(self, connection: TlsDetector, descriptor: int) -> None:
        self.undetected.add(connection)
        self._check(connection, descriptor)

    def _check(self, connection: Accepted, descriptor: int) -> None:
        """Close a connection accepted from the backlog after the listener was closed, or one too many."""
        has_room = self._descriptors.has_room(descriptor, connection.peer, self.loop.time())
        if self._is_stopped or not has_room or self._is_full():
            connection.abort()
