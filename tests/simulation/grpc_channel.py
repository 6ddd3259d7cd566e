"""A connection of a gRPC client: calls as frames of HTTP/2, on a transport of the loop. Nothing of RocketMQ here but
the messages.

    channel = await Channel.connected(host, port, metadata, window=1000)
    reply = await channel.ask(messages.AckMessageRequest(...), seconds=3)
    call = channel.open("Telemetry")

Frames are read and written by the functions of the product, which has tests of its own for them. The client's windows
are returned frame by frame; the server's are never used up.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from pocketmq.grpc_endpoint.hpack.encoding import literal
from pocketmq.grpc_endpoint.http2 import frames
from pocketmq.grpc_endpoint.http2.framing import PREFIX, PREFIX_BYTES
from pocketmq.grpc_endpoint.http2.header_blocks import HeaderBlocks
from pocketmq.grpc_endpoint.messages.proto import Message
from pocketmq.grpc_endpoint.messages.service import BY_NAME, BY_REQUEST, Kind, Rpc

CONNECT_SECONDS: Final = 3.0
BROKEN: Final = -1
"""In place of a gRPC status: the connection or the stream has ended."""


class CallError(Exception):
    """A call has no reply: it ended with a gRPC status, or took too long. Whether the server has done what was asked,
    nobody knows."""


class ClientCall:
    """One call. `next` waits for its messages."""

    def __init__(self, channel: "Channel", stream_id: int, rpc: Rpc) -> None:
        self._channel, self._rpc = channel, rpc
        self.id = stream_id
        self._data = b""
        self._messages: deque[Any] = deque()
        self._status: int | None = None
        self._changed = asyncio.Event()

    @property
    def is_ended(self) -> bool:
        return self._status is not None

    async def next(self) -> Any:
        """The next message; `None` at the end. Raises `CallError` at any end but OK."""
        while not self._messages:
            if self._status is not None:
                if self._status:
                    raise CallError(f"{self._rpc.name} ended with status {self._status}")
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._messages.popleft()

    def send(self, message: Message) -> None:
        """One more message on a stream of both sides."""
        data = message.SerializeToString()
        self._channel.write(frames.frame(frames.DATA, 0, self.id, PREFIX.pack(0, len(data)) + data))

    def cancel(self) -> None:
        if not self.is_ended:
            self._channel.write(frames.rst_stream(self.id, frames.ErrorCode.CANCEL))
            self._channel.ended(self, BROKEN)

    # -- called by the channel

    def received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= PREFIX_BYTES:
            end = PREFIX_BYTES + PREFIX.unpack_from(self._data)[1]
            if len(self._data) < end:
                return
            self._messages.append(self._rpc.reply.FromString(self._data[PREFIX_BYTES:end]))
            self._data = self._data[end:]
            self._changed.set()

    def end(self, status: int) -> None:
        self._status = status
        self._changed.set()


class Channel(asyncio.Protocol):
    """`is_open` until the server says goodbye, or the connection has gone."""

    def __init__(self, metadata: Mapping[str, str], window: int) -> None:
        self._metadata, self._window = metadata, window
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._blocks = HeaderBlocks()
        self._calls: dict[int, ClientCall] = {}
        self._next_id = 1
        self.is_open = True

    @classmethod
    async def connected(cls, host: str, port: int, metadata: Mapping[str, str], window: int) -> "Channel":
        """Raises `CallError`."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, channel = await loop.create_connection(lambda: cls(metadata, window), host, port)
        except OSError as error:
            raise CallError(f"{host}:{port} is not reached: {error}") from error
        return channel

    # -- calls

    def open(self, name: str, request: Message | None = None, *, seconds: float | None = None) -> ClientCall:
        """Begin a call; with a request the client sends nothing more. Raises `CallError` on a closed channel."""
        if not self.is_open:
            raise CallError("the channel is closed")
        rpc, stream_id = BY_NAME[name], self._next_id
        self._next_id += 2
        fields = {":method": "POST", ":scheme": "http", ":path": rpc.path, ":authority": "broker"}
        fields |= {"content-type": "application/grpc", "te": "trailers", **self._metadata}
        if seconds is not None:
            fields["grpc-timeout"] = f"{int(seconds * 1000)}m"
        block = b"".join(literal(name.encode(), value.encode()) for name, value in fields.items())
        call = self._calls[stream_id] = ClientCall(self, stream_id, rpc)
        head = frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block)
        if request is None:
            self.write(head)
        else:
            data = request.SerializeToString()
            data = PREFIX.pack(0, len(data)) + data
            self.write(head + frames.frame(frames.DATA, frames.END_STREAM, stream_id, data))
        return call

    async def messages(self, request: Message, seconds: float) -> list[Any]:
        """All that a call answers within this time. Raises `CallError`."""
        rpc = BY_REQUEST[type(request)]
        call = self.open(rpc.name, request, seconds=seconds)
        found = []
        try:
            async with asyncio.timeout(seconds):
                while (message := await call.next()) is not None:
                    found.append(message)
        except TimeoutError as error:
            call.cancel()
            raise CallError(f"{rpc.name} is not answered") from error
        except asyncio.CancelledError:
            call.cancel()
            raise
        return found

    async def ask(self, request: Message, seconds: float) -> Any:
        """The reply of a call with one. Raises `CallError`."""
        assert BY_REQUEST[type(request)].kind is Kind.UNARY
        found = await self.messages(request, seconds)
        assert len(found) == 1, found
        return found[0]

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def ended(self, call: ClientCall, status: int) -> None:
        self._calls.pop(call.id, None)
        call.end(status)

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        first = frames.settings({frames.SETTINGS_INITIAL_WINDOW_SIZE: self._window})
        transport.write(frames.PREFACE + first)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        for call in list(self._calls.values()):
            self.ended(call, BROKEN)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= frames.HEAD_BYTES:
            high, low, kind, flags, stream_id = frames.HEAD.unpack_from(self._buffer)
            end = frames.HEAD_BYTES + (high << 8 | low)
            if len(self._buffer) < end:
                return
            payload, self._buffer = self._buffer[frames.HEAD_BYTES : end], self._buffer[end:]
            self._frame_received(kind, flags, stream_id, payload)

    def _frame_received(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        call = self._calls.get(stream_id)
        if kind == frames.DATA:
            self._return_window(stream_id, len(payload), is_open=call is not None)
            if call is not None:
                call.received(payload)
        elif kind == frames.HEADERS:
            block = self._blocks.on_headers(flags, stream_id, payload)
            assert block is not None, "the server sends header blocks in one frame"
            fields, is_end = block
            if is_end and call is not None:
                status = next(int(value) for name, value, _ in fields if name == "grpc-status")
                self.ended(call, status)
        elif kind == frames.RST_STREAM and call is not None:
            self.ended(call, BROKEN)
        elif kind == frames.SETTINGS and not flags & frames.ACK:
            self.write(frames.SETTINGS_ACK)
        elif kind == frames.PING and not flags & frames.ACK:
            self.write(frames.frame(frames.PING, frames.ACK, 0, payload))
        elif kind == frames.GOAWAY:
            self.is_open = False  # open calls are answered

    def _return_window(self, stream_id: int, size: int, *, is_open: bool) -> None:
        if size:
            update = frames.window_update(stream_id, size) if is_open else b""
            self.write(frames.window_update(0, size) + update)
