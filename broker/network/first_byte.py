"""Reads the first byte of a connection to a server that accepts TLS and plain frames.

    0x16      a TLS handshake: `TlsStream` is put between the socket and the connection
    other     plain frames: the connection uses the socket directly

`tls.py` chooses the certificate.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Final, Protocol, cast

from ..errors import StartError
from .tls_stream import TlsStream

_log = logging.getLogger("pocketmq.network")

HANDSHAKE: Final = 0x16


class TlsPolicy(Protocol):
    """What decides about TLS: `tls.py` for this port."""

    @property
    def is_enforced(self) -> bool:
        """Whether plain connections are closed."""

    def server_context(self) -> ssl.SSLContext:
        """For a connection that begins with TLS. Raises `StartError` if its files cannot be used."""


class FirstByte(asyncio.Protocol):
    """A connection before its first byte. `opened` is called with it at its start, `ended` at its end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tls: TlsPolicy,
        new_connection: Callable[[], asyncio.Protocol],
        opened: "Callable[[FirstByte], None]",
        ended: "Callable[[FirstByte], None]",
    ) -> None:
        self._loop = loop
        self._tls = tls
        self._new_connection = new_connection
        self._opened = opened
        self._ended = ended
        self._transport: asyncio.Transport | None = None
        self.peer = ""
        self.last_activity = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        host = transport.get_extra_info("peername") or ("", 0)
        self.peer = f"{host[0]}:{host[1]}"
        self.last_activity = self._loop.time()
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        assert transport is not None
        self._ended(self)
        if data[0] != HANDSHAKE:
            if self._tls.is_enforced:
                _log.warning("closing %s: it did not begin with TLS", self.peer)
                transport.abort()
                return
            _hand_over(transport, self._new_connection(), data)
            return
        try:
            context = self._tls.server_context()
        except StartError as error:
            _log.error("closing %s: %s", self.peer, error)
            transport.abort()
            return
        stream = TlsStream(self._loop, self._new_connection(), context, self.peer)
        _hand_over(transport, stream, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended(self)

    def close(self) -> None:
        self.abort()

    def transport_wrapped(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> None:
        if self._transport is not None:
            self._transport = wrap(self._transport)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def _hand_over(transport: asyncio.Transport, protocol: asyncio.Protocol, data: bytes) -> None:
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    protocol.data_received(data)
