"""A port of `pocketmq.grpc_endpoint.http2` with a small program behind it, and raw peers that break its rules.

/echo/Unary    answers with the same message
/echo/Each     answers each message at once, and ends with the client
/echo/Never    does not answer
/echo/Large    answers with as many bytes as the request says
/echo/All      answers with a message of each size that the request names, all of them at once
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
from pocketmq.broker.config.broker_config import BrokerConfig
from pocketmq.grpc_endpoint.http2 import frames
from pocketmq.grpc_endpoint.http2.certificates import GrpcTls
from pocketmq.grpc_endpoint.http2.headers import RequestHead
from pocketmq.grpc_endpoint.http2.limits import Limits
from pocketmq.grpc_endpoint.http2.port import Http2Port
from pocketmq.grpc_endpoint.http2.server_stream import Owner, ServerStream

Limited = Limits


class Echo:
    """The program. It notes what happened to its calls."""

    def __init__(self) -> None:
        self.opened_paths: list[str] = []
        self.open: set[EchoCall] = set()
        self.cancelled = 0
        self.undelivered = 0

    def opened(self, stream: ServerStream, head: RequestHead) -> "EchoCall | None":
        self.opened_paths.append(head.path)
        if not head.path.startswith("/echo/"):
            stream.finish(12, "no such thing")
            return None
        call = EchoCall(self, stream, head)
        self.open.add(call)
        return call

    def connection_opened(self, owner: Owner) -> None:
        """Nothing is kept of a connection."""

    def connection_closed(self, owner: Owner) -> None:
        """Nothing is kept of a connection."""

    def pass_begins(self) -> None:
        """Each call is answered by itself."""

    def pass_ends(self) -> None:
        """Each call is answered by itself."""


class EchoCall:
    """One of its calls."""

    def __init__(self, echo: Echo, stream: ServerStream, head: RequestHead) -> None:
        self._echo, self._stream = echo, stream
        self.head = head
        self.most_bytes = 1 << 40
        self.needs_end = head.path != "/echo/Each"
        self._messages: list[bytes] = []

    def on_message(self, data: bytes) -> None:
        if self.head.path == "/echo/Each":
            self._stream.send_message(data)
        else:
            self._messages.append(data)

    def on_half_close(self) -> None:
        if self.head.path == "/echo/Never":
            return
        if self.head.path == "/echo/All":
            self._echo.open.discard(self)
            self._stream.answer_all([bytes(int(size)) for size in self._messages[0].split()])
            return
        for message in self._messages:
            large = self.head.path == "/echo/Large"
            self._stream.send_message(bytes(int(message)) if large else message)
        self._echo.open.discard(self)
        self._stream.finish(0, "")

    def on_cancel(self) -> None:
        self._echo.cancelled += 1
        self._echo.open.discard(self)

    def on_undelivered(self) -> None:
        self._echo.undelivered += 1

    def on_server_stop(self) -> None:
        self._echo.open.discard(self)
        self._stream.finish(14, "stopped")


def tls(mode: str = "permissive", **endpoint: Any) -> GrpcTls:
    """With these settings of `EndpointConfig`."""
    config = BrokerConfig(tls_server_mode=mode)
    config.endpoint = msgspec.structs.replace(config.endpoint, **endpoint)
    return GrpcTls(config)


@contextlib.asynccontextmanager
async def echo_port(limits: Limits | None = None, tls: GrpcTls | None = None) -> AsyncIterator[Any]:
    """(port number, the program, the port)."""
    echo = Echo()
    port = Http2Port(echo, limits or Limits(), tls)
    number = await port.bind("127.0.0.1", 0)
    await port.serve()
    try:
        yield number, echo, port
    finally:
        port.abort()
        await port.stop()


PREFACE = frames.PREFACE + frames.settings({})
CALL = bytes.fromhex("838644") + b"\x0b/echo/Unary" + bytes.fromhex("5f") + b"\x10application/grpc"
"""A header block without Huffman: POST, http, the path, the content type, of which index 31 is the name."""


class RawPeer:
    """A socket that writes what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def rest(self, seconds: float = 5.0) -> bytes:
        """All that comes until the server closes."""
        async with asyncio.timeout(seconds):
            try:
                return await self._reader.read(-1)
            except ConnectionError:
                return b""

    async def frame(self, seconds: float = 5.0) -> tuple[int, int, int, bytes]:
        """Kind, flags, stream and payload of the next frame."""
        async with asyncio.timeout(seconds):
            head = await self._reader.readexactly(9)
            high, low, kind, flags, stream = frames.HEAD.unpack(head)
            return kind, flags, stream, await self._reader.readexactly(high << 8 | low)


@contextlib.asynccontextmanager
async def raw_peer(port: int) -> AsyncIterator[RawPeer]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield RawPeer(reader, writer)
    finally:
        writer.transport.abort()


def goaway_in(data: bytes) -> tuple[int, str] | None:
    """(code, text) of the GOAWAY among these frames."""
    for frame in frames_in(data):
        if frame.kind == frames.GOAWAY:
            return frame.code, frame.payload[8:].decode()
    return None


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes

    @property
    def code(self) -> int:
        """Of RST_STREAM or GOAWAY."""
        return int.from_bytes(self.payload[4:8] if self.kind == frames.GOAWAY else self.payload)


def frames_in(data: bytes) -> list[Frame]:
    found, at = [], 0
    while at + frames.HEAD_BYTES <= len(data):
        high, low, kind, flags, stream = frames.HEAD.unpack_from(data, at)
        at += frames.HEAD_BYTES
        found.append(Frame(kind, flags, stream, data[at : at + (high << 8 | low)]))
        at += high << 8 | low
    return found
