"""A TCP proxy in front of any server, whose bytes are slow, few at a time, or lost: `pocketmq proxy`.

    client <-> [ accepted ] <- two lines (shaping.py) -> [ opened ] <-> target

It knows nothing of frames. Latency holds back what the target answers; bandwidth and slices limit both directions. A
side that ends its stream ends the other side's (half-close) once what is on the way has left. At most `HIGH_BYTES` of
a direction are on their way: beyond that the proxy stops reading.
"""

import asyncio
import logging
from typing import Final, Self

import msgspec
from pocketmq.broker.config.addresses import host_and_port
from pocketmq.broker.errors import StartError

from .shaping import Line, Shape

_log = logging.getLogger("pocketmq.proxy")

HIGH_BYTES: Final = 256 * 1024
READ_BYTES: Final = 64 * 1024
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
        try:
            self._server = await asyncio.start_server(self._accepted, self.host, self.port)
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

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self._server is None or len(self._links) >= LINKS:
            writer.transport.abort()
            return
        link = _Link(writer)
        self._links.add(link)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                opened = await asyncio.open_connection(*self.target)
            await link.join(reader, *opened, self._shape)
        except (OSError, TimeoutError) as error:
            _log.warning("cannot connect to %s:%d: %s", *self.target, str(error) or "timed out")
        except asyncio.CancelledError:
            pass  # by `abort`: Python 3.11 logs a stack for the task of a connection that is cancelled
        finally:
            link.abort()
            self._links.discard(link)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


class _Link:
    """One client's connection and the one to the target that belongs to it."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self._task = asyncio.current_task()
        self._writers = [client]
        self.ways: list[_Way] = []
        """To the client, and to the target."""

    async def join(
        self,
        from_client: asyncio.StreamReader,
        from_target: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        shape: Shape,
    ) -> None:
        """Pass the bytes of both on until both streams have ended, or one connection is broken."""
        self._writers.append(target)
        self.ways = [_Way(from_target, self._writers[0]), _Way(from_client, target)]
        self.change(shape)
        try:
            async with asyncio.TaskGroup() as group:
                for way in self.ways:
                    group.create_task(way.pass_on())
        except* OSError:
            pass
        else:
            for writer in self._writers:
                writer.close()
            self._writers.clear()

    def change(self, shape: Shape) -> None:
        """Latency holds back answers only: once a round trip. What was half open has lost bytes: it is closed."""
        if not self.ways:
            return
        if self.ways[0].line.shape.half_open and not shape.half_open:
            self.abort()
            return
        self.ways[0].line.shape = shape
        self.ways[1].line.shape = msgspec.structs.replace(shape, latency=0.0)

    def abort(self) -> None:
        for way in self.ways:
            way.line.stop()
        for writer in self._writers:
            writer.transport.abort()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()


class _Way:
    """One direction: what is read leaves through a line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._drained = asyncio.Event()
        self.line = Line(asyncio.get_running_loop(), self._write, self._drained.set)

    async def pass_on(self) -> None:
        """Until the stream ends. OSError if one of the two connections is broken."""
        while data := await self._reader.read(READ_BYTES):
            self.line.put(data)
            if self.line.waiting_bytes > HIGH_BYTES:
                await self._emptied()
            await self._writer.drain()
        await self._emptied()
        if not self._writer.is_closing():
            self._writer.write_eof()

    async def _emptied(self) -> None:
        while self.line.waiting_bytes:
            self._drained.clear()
            await self._drained.wait()

    def _write(self, data: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(data)
