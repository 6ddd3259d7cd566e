"""Connections to a port that accepts TLS and plain frames: the first byte decides.

    0x16      a TLS handshake: `TlsStream` is put between the socket and the connection
    other     plain frames: the connection uses the socket directly

    socket <-> TlsStream <-> Connection       to asyncio a protocol, to the connection above it a transport

A stream buffers only the handshake and the bytes of one read. `tls.py` chooses the certificate.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, cast

from ..errors import StartError
from .listening import descriptor_of

_log = logging.getLogger("pocketmq.network")

HANDSHAKE: Final = 0x16
HANDSHAKE_SECONDS: Final = 10.0
HANDSHAKES_A_TURN: Final = 32
"""Each signs with the server's key, which takes 0.2 to 0.5 ms."""
NEXT_HANDSHAKES_SECONDS: Final = 0.002
_READ_BYTES: Final = 65_536


class Handshakes:
    """How many handshakes of a port go on in one turn of the loop; the others wait in the order of their bytes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._left = HANDSHAKES_A_TURN
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_counting = False

    def may_go_on(self, later: Callable[[], None]) -> bool:
        """Whether one may go on now; if not, `later` is called in one of the next turns, and asks again."""
        if not self._is_counting:
            self._is_counting = True
            self._loop.call_later(NEXT_HANDSHAKES_SECONDS, self._next_turn)
        if self._left:
            self._left -= 1
            return True
        self._waiting.append(later)
        return False

    def _next_turn(self) -> None:
        self._is_counting = False
        self._left = HANDSHAKES_A_TURN
        for _ in range(min(len(self._waiting), HANDSHAKES_A_TURN)):
            self._waiting.popleft()()


class TlsStream(asyncio.Protocol):
    """Frames inside TLS. Passes every event of the socket up to the connection, and every call of it, for which it is
    the transport, down."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: asyncio.Protocol,
        context: ssl.SSLContext,
        peer: str,
        handshakes: Handshakes,
    ) -> None:
        self._loop = loop
        self._handshakes = handshakes
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
        self._deadline = self._loop.call_later(HANDSHAKE_SECONDS, self._below.abort)
        self._connection.connection_made(cast(asyncio.Transport, self))

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        if self._is_open or self._handshakes.may_go_on(self._go_on):
            self._received()
        else:
            self._socket.pause_reading()

    def _go_on(self) -> None:
        if not self._socket.is_closing():
            self._socket.resume_reading()
            self.data_received(b"")

    def _received(self) -> None:
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
            self._send()  # the alert for the peer
            self._socket.close()
            return
        self._send()
        if plain:
            self._connection.data_received(plain)
        if is_end and not self._connection.eof_received():
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

    def eof_received(self) -> bool | None:
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
            return  # before the handshake the peer has sent no request, so no reply is lost
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
                pass  # it waits for the peer's close_notify; we do not
            self._send()
        self._socket.close()

    def __getattr__(self, name: str) -> Any:
        """What is the same with TLS and without."""
        return getattr(self._below, name)


class TlsPolicy(Protocol):
    """What decides about TLS: `tls.py` for the ports of frames, a class of its own for gRPC."""

    @property
    def is_enforced(self) -> bool:
        """Whether plain connections are closed."""

    def server_context(self) -> ssl.SSLContext:
        """For a connection that begins with TLS. Raises `StartError` if its files cannot be used."""


class TlsDetector(asyncio.Protocol):
    """A connection before its first byte. `opened` is called with it and its descriptor at its start; `ended` at its
    end, or when another protocol takes its place."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tls: TlsPolicy,
        handshakes: Handshakes,
        new_connection: Callable[[], asyncio.Protocol],
        opened: "Callable[[TlsDetector, int], None]",
        ended: "Callable[[TlsDetector], None]",
    ) -> None:
        self._loop = loop
        self._tls = tls
        self._handshakes = handshakes
        self._new_connection = new_connection
        self._opened = opened
        self._ended = ended
        self._transport: asyncio.Transport | None = None
        self.peer = ""
        self.last_activity = 0.0
        """Loop time of its start: what decides does not come in pieces that may take long."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        host = transport.get_extra_info("peername") or ("", 0)
        self.peer = f"{host[0]}:{host[1]}"
        self.last_activity = self._loop.time()
        self._opened(self, descriptor_of(transport))

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        assert transport is not None
        protocol: asyncio.Protocol
        if data[0] == HANDSHAKE:
            try:
                context = self._tls.server_context()
            except StartError as error:
                _log.error("closing %s: %s", self.peer, error)
                self.abort()
                return
            connection = self._new_connection()
            protocol = TlsStream(self._loop, connection, context, self.peer, self._handshakes)
        elif self._tls.is_enforced:
            _log.warning("closing %s: it did not begin with TLS", self.peer)
            self.abort()
            return
        else:
            protocol = self._new_connection()
        self._ended(self)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended(self)

    def abort(self) -> None:
        """Close at once; nothing was asked yet that could get an answer."""
        if self._transport is not None:
            self._transport.abort()

    def wrap_transport(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> None:
        if self._transport is not None:
            self._transport = wrap(self._transport)
