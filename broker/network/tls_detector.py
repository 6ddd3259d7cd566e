"""Reads the first byte of a connection to a server that accepts TLS and plain frames.

    0x16      a TLS handshake: `TlsStream` is put between the socket and the connection
    other     plain frames: the connection uses the socket directly

`tls.py` chooses the certificate.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Final, Protocol

from ..errors import StartError
from .new_connection import NewConnection
from .tls_stream import Handshakes, TlsStream

_log = logging.getLogger("pocketmq.network")

HANDSHAKE: Final = 0x16


class TlsPolicy(Protocol):
    """What decides about TLS: `tls.py` for this port."""

    @property
    def is_enforced(self) -> bool:
        """Whether plain connections are closed."""

    def server_context(self) -> ssl.SSLContext:
        """For a connection that begins with TLS. Raises `StartError` if its files cannot be used."""


class TlsDetector(NewConnection):
    """A connection before its first byte."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tls: TlsPolicy,
        handshakes: Handshakes,
        new_connection: Callable[[], asyncio.Protocol],
        opened: Callable[[NewConnection], None],
        ended: Callable[[NewConnection], None],
    ) -> None:
        super().__init__(loop, opened, ended)
        self._tls = tls
        self._handshakes = handshakes
        self._new_connection = new_connection

    def data_received(self, data: bytes) -> None:
        if data[0] != HANDSHAKE:
            if self._tls.is_enforced:
                _log.warning("closing %s: it did not begin with TLS", self.peer)
                self.abort()
                return
            self._become(self._new_connection(), data)
            return
        try:
            context = self._tls.server_context()
        except StartError as error:
            _log.error("closing %s: %s", self.peer, error)
            self.abort()
            return
        self._become(
            TlsStream(self._loop, self._new_connection(), context, self.peer, self._handshakes), data
        )
