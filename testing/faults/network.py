"""Connections of the server whose bytes are slow, few at a time, or lost: `faults.network(...)`.

A shaped transport lies between a connection and its socket. It is put there when the connection's next request arrives
or its next reply leaves, and stays; without a shape it passes everything on.
"""

import asyncio
import functools
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from pocketmq.broker.network.watch import Watched

from ..requests.logged_request import LoggedConnection
from .rule import AnyRule
from .shaping import Line, Shape

HIGH_BYTES: Final = 4 * 1024 * 1024
"""Above this many bytes on their way the server stops reading from the peer, as it does for one that does not read."""


class NetworkRule(AnyRule):
    """A shape for the connections of one client, or of all. It acts on bytes, and hits no request."""

    def __init__(
        self, rule_id: int, client: str | None, shape: Shape, remove: Callable[[AnyRule], None]
    ) -> None:
        of_client = {} if client is None else {"client": client}
        super().__init__(rule_id, "network", of_client | shape.as_json(), remove)
        self.client = client
        self.shape = shape


def shape_for(rules: Iterable[NetworkRule], connection: LoggedConnection) -> Shape:
    """What all rules together do to a connection."""
    shape = Shape()
    for rule in rules:
        if rule.client in (None, connection.client_id):
            shape = shape.over(rule.shape)
    return shape


class ShapedTransport(asyncio.Transport):
    """Lies between a connection and its transport. Several gRPC clients may use one connection: its shape is the worst
    of theirs."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, below: asyncio.Transport, connection: asyncio.Protocol
    ) -> None:
        super().__init__()
        self._below = below
        self._connection = connection
        self._line = Line(loop, below.write, self._drained)
        self._is_closing = False
        self._is_full = False
        self._wanted: dict[Watched, Shape] = {}

    def change(self, client: Watched, wanted: Shape) -> None:
        self._wanted[client] = wanted
        former, shape = self._line.shape, functools.reduce(Shape.beside, self._wanted.values())
        if shape != former:
            self._line.shape = shape
        if former.half_open and not shape.half_open:
            self.abort()  # the peer waits for replies that were lost

    # -- what the connection calls

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._line.shape == Shape() and not self._line.waiting_bytes:
            self._below.write(data)
            return
        self._line.put(data)
        if self._line.waiting_bytes > HIGH_BYTES and not self._is_full:
            self._is_full = True
            self._connection.pause_writing()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def _drained(self) -> None:
        if self._is_full:
            self._is_full = False
            self._connection.resume_writing()
        if self._is_closing:
            self._below.close()

    def close(self) -> None:
        """After what is on its way."""
        self._is_closing = True
        if not self._line.waiting_bytes:
            self._below.close()

    def abort(self) -> None:
        self._line.stop()
        self._below.abort()

    def is_closing(self) -> bool:
        return self._is_closing or self._below.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._below.get_write_buffer_size() + self._line.waiting_bytes

    def pause_reading(self) -> None:
        self._below.pause_reading()

    def resume_reading(self) -> None:
        self._below.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._below.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._below.get_extra_info(name, default)


class Shaper:
    """Keeps the transports of one server's connections in the shape that the rules want."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transports: dict[Watched, ShapedTransport] = {}

    def shape(self, connection: Watched, shape: Shape) -> None:
        transport = self._transports.get(connection)
        if transport is None:
            if shape == Shape():
                return
            transport = self._wrapped(connection)
        transport.change(connection, shape)

    def connections(self) -> list[Watched]:
        return list(self._transports)

    def closed(self, connection: Watched) -> None:
        transport = self._transports.pop(connection, None)
        if transport is not None:
            transport.abort()

    def _wrapped(self, connection: Watched) -> ShapedTransport:
        made: list[ShapedTransport] = []

        def wrap(below: asyncio.Transport) -> asyncio.Transport:
            if isinstance(below, ShapedTransport):  # of another client on this connection
                made.append(below)
            else:
                made.append(ShapedTransport(self._loop, below, cast(asyncio.Protocol, connection)))
            return made[0]

        connection.wrap_transport(wrap)
        self._transports[connection] = made[0]
        return made[0]
