"""A connection whose first bytes have not yet said what it speaks: what all of these have in common.

The first byte decides about TLS (`tls_detector.py`).
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import cast

from .descriptors import descriptor_of


class NewConnection(asyncio.Protocol, ABC):
    """`opened` is called with it at its start; `ended` at its end, or when another protocol takes its place."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        opened: "Callable[[NewConnection], None]",
        ended: "Callable[[NewConnection], None]",
    ) -> None:
        self._loop = loop
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
        self._opened(self)

    @property
    def descriptor(self) -> int:
        """The number of its socket; -1 without one."""
        return descriptor_of(self._transport)

    @abstractmethod
    def data_received(self, data: bytes) -> None:
        """Decides: calls `_become` or `abort`, or waits for more bytes."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended(self)

    def _become(self, protocol: asyncio.Protocol, data: bytes) -> None:
        """Give the socket, and what was read of it for the other, to another protocol."""
        transport = self._transport
        assert transport is not None
        self._ended(self)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if data:
            protocol.data_received(data)

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        """Close at once; nothing was asked yet that could get an answer."""
        if self._transport is not None:
            self._transport.abort()

    def transport_wrapped(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> None:
        if self._transport is not None:
            self._transport = wrap(self._transport)
