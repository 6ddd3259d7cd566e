"""A connection's first byte, and the bytes of those that begin with TLS.

    0x16      a TLS handshake: `TlsStream` between the socket and the connection
    other     frames: the connection takes the socket over, and nothing is between them any more

`FirstByte` waits for it. `TlsStream` is to asyncio a protocol and to its `Connection` a transport; it holds no more
than the handshake and what one read brings. Which certificate: `tls.py`.
"""

import asyncio
import logging
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from ..errors import StartError
from .connection import Connection

if TYPE_CHECKING:
    from .server import Server

_log = logging.getLogger("pocketmq.tls")

HANDSHAKE: Final = 0x16
HANDSHAKE_SECONDS: Final = 10.0
_READ_BYTES: Final = 65_536


class FirstByte(asyncio.Protocol):
    """A connection nobody has said anything on. It counts among the server's connections."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self.peer = ""
        self.last_activity = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        host = transport.get_extra_info("peername") or ("", 0)
        self.peer = f"{host[0]}:{host[1]}"
        self.last_activity = self._server.loop.time()
        self._server.connected(self)

    def data_received(self, data: bytes) -> None:
        server, transport = self._server, self._transport
        assert transport is not None
        server.waiting.discard(self)
        tls = server.tls
        assert tls is not None
        if data[0] != HANDSHAKE:
            if tls.is_enforced:
                _log.warning("closing %s: it did not begin with TLS", self.peer)
                transport.abort()
                return
            _take_over(transport, server.new_connection(server), data)
            return
        try:
            context = tls.server_context()
        except StartError as error:
            _log.error("closing %s: %s", self.peer, error)
            transport.abort()
            return
        _take_over(transport, TlsStream(server.new_connection(server), context, self.peer), data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.waiting.discard(self)

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _take_over(transport: asyncio.Transport, protocol: asyncio.Protocol, data: bytes) -> None:
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    protocol.data_received(data)


class TlsStream(asyncio.Protocol, asyncio.Transport):
    """Frames inside TLS. Everything that happens below is told to the connection above, and the reverse."""

    def __init__(self, connection: Connection, context: ssl.SSLContext, peer: str) -> None:
        asyncio.Transport.__init__(self)
        self._connection = connection
        self._peer = peer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_open = False
        self._deadline: asyncio.TimerHandle | None = None
        self._below: asyncio.Transport | None = None

    @property
    def _socket(self) -> asyncio.Transport:
        assert self._below is not None
        return self._below

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._below = cast(asyncio.Transport, transport)
        loop = self._connection.loop
        self._deadline = loop.call_later(HANDSHAKE_SECONDS, self._below.abort)
        self._connection.connection_made(self)

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        try:
            if not self._is_open:
                self._tls.do_handshake()
                self._is_open = True
                self._cancel_deadline()
            plain, is_end = self._read()
        except ssl.SSLWantReadError:
            self._send()
            return
        except ssl.SSLError as error:
            _log.warning("closing %s: %s", self._peer, error.reason or error)
            self._send()  # the alert that tells the peer
            self._socket.close()
            return
        self._send()
        if plain:
            self._connection.data_received(plain)
        if is_end:
            self._connection.eof_received()
            self._socket.close()

    def _read(self) -> tuple[bytes, bool]:
        parts = []
        try:
            while part := self._tls.read(_READ_BYTES):
                parts.append(part)
            is_end = True
        except ssl.SSLWantReadError:
            is_end = False
        except ssl.SSLZeroReturnError:
            is_end = True
        return b"".join(parts), is_end

    def _send(self) -> None:
        data = self._outgoing.read()
        if data and not self._socket.is_closing():
            self._socket.write(data)

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        self._connection.connection_lost(exc)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    # -- what the connection calls

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        if not self._is_open:
            return  # nobody was asked anything yet, and nothing is written before
        for data in list_of_data:
            rest = memoryview(data)
            while rest.nbytes:
                rest = rest[self._tls.write(rest) :]
        self._send()

    def close(self) -> None:
        if self._is_open and not self._socket.is_closing():
            try:
                self._tls.unwrap()
            except ssl.SSLError:
                pass  # it wants the peer's farewell, for which nobody waits
            self._send()
        self._socket.close()

    def abort(self) -> None:
        self._socket.abort()

    def is_closing(self) -> bool:
        return self._socket.is_closing()

    def pause_reading(self) -> None:
        self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._socket.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._socket.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return self._socket.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._socket.get_extra_info(name, default)
