"""A TCP proxy in front of any server, whose bytes are slow, few at a time, or lost: `pocketmq proxy`.

    client <-> [ accepted ] <- two lines (shaping.py) -> [ opened ] <-> target

It knows nothing of frames. Latency holds back what the target answers; bandwidth and slices limit both directions. A
side that ends its stream ends the other side's (half-close) once what is on the way has left. At most `HIGH_BYTES` of
a direction are on their way: beyond that the proxy stops reading.
"""

import asyncio
import logging
from types import TracebackType
from typing import Final, Self, cast

from pocketmq.broker.config.addresses import host_and_port
from pocketmq.broker.errors import StartError

from .shaping import Line, Shape

_log = logging.getLogger("pocketmq.proxy")

HIGH_BYTES: Final = 256 * 1024
CONNECT_SECONDS: Final = 5.0
LINKS: Final = 10_000
"""Connections at once; more are refused."""


class TcpProxy:
    """Use as `async with TcpProxy("127.0.0.1:9876") as proxy: proxy.address`. `shape` may be changed at any time.

    Raises `StartError` if the port cannot be opened, ValueError if the target is no `host:port`.
    """

    def __init__(
        self, target: str, *, host: str = "127.0.0.1", port: int = 0, shape: Shape | None = None
    ) -> None:
        self.target = host_and_port(target)
        self.host = host
        self.port = port
        self._shape = shape or Shape()
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self.connections = 0
        """Accepted so far."""

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def shape(self) -> Shape:
        return self._shape

    @shape.setter
    def shape(self, shape: Shape) -> None:
        self._shape = shape
        for link in list(self._links):
            link.change(shape)

    async def start(self) -> Self:
        """Accept connections; `port` is the one that was chosen for 0."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._accepted, self.host, self.port)
        except OSError as error:
            raise StartError(f"cannot listen on {self.address}: {error.strerror or error}") from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        """Accept no more, and close every connection."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()
        await asyncio.sleep(0)  # asyncio reports their end in the next loop iteration

    def cut(self) -> None:
        """Close every connection; clients may open new ones."""
        for link in list(self._links):
            link.abort()

    def _accepted(self) -> "_Side":
        link = _Link(self)
        return link.client

    # -- called by the links

    def opened(self, link: "_Link") -> bool:
        """Whether the link may live."""
        self.connections += 1
        if self._server is None or len(self._links) >= LINKS:
            return False
        self._links.add(link)
        return True

    def ended(self, link: "_Link") -> None:
        self._links.discard(link)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


class _Link:
    """One client's connection and the one to the target that belongs to it."""

    def __init__(self, proxy: TcpProxy) -> None:
        self._proxy = proxy
        self._loop = asyncio.get_running_loop()
        self.client = _Side(self, self._loop)
        self.target = _Side(self, self._loop)
        self.client.other, self.target.other = self.target, self.client
        self._connecting: asyncio.Task[None] | None = None

    def client_connected(self) -> None:
        if not self._proxy.opened(self):
            self.abort()
            return
        self.change(self._proxy.shape)
        self.client.pause_reading()  # until the target is there
        self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        host, port = self._proxy.target
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._loop.create_connection(lambda: self.target, host, port)
        except (OSError, TimeoutError) as error:
            _log.warning("cannot connect to %s:%d: %s", host, port, error or "timed out")
            self.abort()
            return
        self.client.resume_reading()

    def change(self, shape: Shape) -> None:
        """Latency holds back answers only: once a round trip. What was half open has lost bytes: it is closed."""
        if self.client.line.shape.half_open and not shape.half_open:
            self.abort()
            return
        self.client.line.change(shape)
        self.target.line.change(Shape(0.0, shape.bandwidth, shape.slice_bytes, shape.half_open))

    def abort(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        self.client.abort()
        self.target.abort()
        self._proxy.ended(self)


class _Side(asyncio.Protocol):
    """One of the two sockets. `line` leads to it: what the other side read leaves through it."""

    other: "_Side"

    def __init__(self, link: _Link, loop: asyncio.AbstractEventLoop) -> None:
        self._link = link
        self._transport: asyncio.Transport | None = None
        self.line = Line(loop, self._write, self._drained)
        self._early = b""
        """What arrived for this side before it was connected: one read of the other one."""
        self._is_ended = False
        """The other side's stream ended: ours ends after what is on the way."""
        self._is_done = False
        """Our stream ended too."""
        self._is_full = False
        self._is_unread = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_BYTES)
        if self is self._link.client:
            self._link.client_connected()
        early, self._early = self._early, b""
        self.line.put(early)
        if self._is_ended and not self.line.waiting_bytes:
            self._end()

    def data_received(self, data: bytes) -> None:
        self.other.take(data)

    def take(self, data: bytes) -> None:
        """Bytes of the other side, for this one."""
        if self._transport is None:
            self._early += data
            self.other.pause_reading()  # again: a loop may begin to read after `connection_made`
            return
        self.line.put(data)
        if self.line.waiting_bytes > HIGH_BYTES and not self._is_full:
            self._is_full = True
            self.other.pause_reading()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _drained(self) -> None:
        if self._is_full:
            self._is_full = False
            self._resume_other()
        if self._is_ended:
            self._end()

    def eof_received(self) -> bool:
        self.other.end()
        return True  # the other direction goes on

    def end(self) -> None:
        """No more bytes come for this side."""
        self._is_ended = True
        if not self.line.waiting_bytes:
            self._end()

    def _end(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.write_eof()
        self._is_done = True
        if self.other._is_done:
            transport.close()
            if self.other._transport is not None:
                self.other._transport.close()

    def pause_writing(self) -> None:
        self._is_unread = True
        self.other.pause_reading()

    def resume_writing(self) -> None:
        self._is_unread = False
        self._resume_other()

    def _resume_other(self) -> None:
        if not self._is_full and not self._is_unread:
            self.other.resume_reading()

    def pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.line.stop()
        if exc is not None or not (self._is_done and self.other._is_done) or self.other._transport is None:
            self._link.abort()

    def abort(self) -> None:
        self.line.stop()
        if self._transport is not None:
            self._transport.abort()
