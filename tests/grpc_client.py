"""A gRPC client for tests, on h2: calls by the name of an rpc, with the messages of `pocketmq.grpc_endpoint.messages`.

async with GrpcClient.connected(port) as client:
    reply = await client.ask(messages.SendMessageRequest(...))

call = await client.open("ReceiveMessage", request)
async for message in call: ...
"""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from pocketmq.grpc_endpoint.messages.proto import Message
from pocketmq.grpc_endpoint.messages.service import BY_NAME, BY_REQUEST, Rpc


def encode(message: Message) -> bytes:
    return message.SerializeToString()


def changed(message: Any, **fields: Any) -> Any:
    """A copy with other values in these fields."""
    found = type(message)()
    found.CopyFrom(message)
    for name, value in fields.items():
        found.ClearField(name)
        found.MergeFrom(type(message)(**{name: value}))
    return found


def entries(texts: Mapping[str, str]) -> list[dict[str, str]]:
    """Properties of a message, or of a client, as the messages have them."""
    return [{"key": name, "value": value} for name, value in texts.items()]


HEADERS = {
    "x-mq-client-id": "test@1@0@a",
    "x-mq-language": "JAVA",
    "x-mq-client-version": "5.2.0",
    "x-mq-protocol": "v2",
    "x-mq-date-time": "20261123T000000Z",
}


class RpcError(Exception):
    """A call ended with another gRPC status than OK."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text


class ClientCall:
    """One call. Iterating over it gives the messages, and raises `RpcError` for a bad end."""

    def __init__(self, client: "GrpcClient", stream_id: int, rpc: Rpc | None) -> None:
        self._client = client
        self.id = stream_id
        self._rpc = rpc
        self._data = b""
        self.headers: dict[str, str] = {}
        """All that the server sent, the trailers too."""
        self._messages: asyncio.Queue[Any] = asyncio.Queue()
        self.is_ended = False
        self.reset_code: int | None = None

    def __aiter__(self) -> "ClientCall":
        return self

    async def __anext__(self) -> Any:
        message = await self.next()
        if message is None:
            raise StopAsyncIteration
        return message

    async def next(self, seconds: float = 5.0) -> Any:
        """The next message; `None` at a good end."""
        async with asyncio.timeout(seconds):
            item = await self._messages.get()
        if item is None:
            self._messages.put_nowait(None)
            if self.status:
                raise RpcError(self.status, self.text)
        return item

    @property
    def is_readable(self) -> bool:
        """Whether `next` returns at once."""
        return not self._messages.empty()

    async def all(self) -> list[Any]:
        return [message async for message in self]

    @property
    def status(self) -> int:
        """-1 if the connection or the stream broke."""
        return int(self.headers.get("grpc-status", "-1"))

    @property
    def text(self) -> str:
        return unquote(self.headers.get("grpc-message", ""))

    def send(self, message: Message, *, end: bool = False) -> None:
        self.send_bytes(framed(encode(message)), end=end)

    def send_bytes(self, data: bytes, *, end: bool = False) -> None:
        self._client.send_data(self.id, data, end=end)

    def half_close(self) -> None:
        self._client.h2.end_stream(self.id)
        self._client.flush()

    def cancel(self) -> None:
        self._client.h2.reset_stream(self.id, h2.errors.ErrorCodes.CANCEL)
        self._client.flush()

    # -- called by the client

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 5:
            size = struct.unpack(">BL", self._data[:5])[1]
            if len(self._data) < 5 + size:
                return
            payload, self._data = self._data[5 : 5 + size], self._data[5 + size :]
            self._messages.put_nowait(payload if self._rpc is None else self._rpc.reply.FromString(payload))

    def ended(self) -> None:
        if not self.is_ended:
            self.is_ended = True
            self._messages.put_nowait(None)


class GrpcClient:
    """One connection. `h2` is its protocol: tests may do with it what no client does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        self.h2 = h2.connection.H2Connection(config)
        self.opens_windows = True
        self.data_moved = 0
        """Bytes of calls that came or went; a ping overtakes what waits for a window."""
        self.goaway: tuple[int, str] | None = None
        self.is_closed = asyncio.Event()
        self._calls: dict[int, ClientCall] = {}
        self._unsent: list[tuple[int, bytes, bool]] = []
        self._pings: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None

    @classmethod
    @contextlib.asynccontextmanager
    async def connected(
        cls,
        address: "str | int | socket.socket",
        *,
        tls: ssl.SSLContext | None = None,
        window: int = 65_535,
    ) -> AsyncIterator["GrpcClient"]:
        """`address` is a port of this machine, `host:port`, or a connected socket."""
        if isinstance(address, socket.socket):
            name = None if tls is None else ""
            reader, writer = await asyncio.open_connection(sock=address, ssl=tls, server_hostname=name)
        else:
            host, port = ("127.0.0.1", address) if isinstance(address, int) else address.rsplit(":", 1)
            reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
        client = cls(reader, writer)
        client.h2.initiate_connection()
        client.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        client.flush()
        client._task = asyncio.create_task(client._read())
        try:
            yield client
        finally:
            client._task.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError, ssl.SSLError):
                await client._task
            writer.transport.abort()

    async def ask(
        self,
        request: Message,
        *,
        headers: Mapping[str, str] = HEADERS,
        client_id: str | None = None,
        seconds: float = 5.0,
    ) -> Any:
        """The reply of a unary call. `RpcError` for a bad status."""
        call = self.open(BY_REQUEST[type(request)].name, request, headers=headers, client_id=client_id)
        reply = await call.next(seconds)
        assert reply is not None, "the call ended without a reply"
        assert await call.next(seconds) is None
        return reply

    def open(
        self,
        name: str,
        request: Message | bytes | None = None,
        *,
        headers: Mapping[str, str] = HEADERS,
        client_id: str | None = None,
        timeout: str | None = None,
        **others: str,
    ) -> ClientCall:
        """Begin a call. With a request the client's side is closed after it; without, it stays open."""
        rpc = BY_NAME.get(name)
        path = name if name.startswith("/") else f"/apache.rocketmq.v2.MessagingService/{name}"
        sent = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "test"}
        sent |= {"content-type": "application/grpc", "te": "trailers", **headers}
        sent |= {"grpc-timeout": timeout} if timeout is not None else {}
        sent |= {"x-mq-client-id": client_id} if client_id is not None else {}
        sent |= {name.replace("_", "-"): value for name, value in others.items()}
        return self.open_raw(sent, rpc, request)

    def open_raw(
        self, headers: Mapping[str, str], rpc: Rpc | None = None, request: Message | bytes | None = None
    ) -> ClientCall:
        stream_id = self.h2.get_next_available_stream_id()
        call = self._calls[stream_id] = ClientCall(self, stream_id, rpc)
        self.h2.send_headers(stream_id, list(headers.items()))
        if request is not None:
            data = request if isinstance(request, bytes) else framed(encode(request))
            self.send_data(stream_id, data, end=True)
        self.flush()
        return call

    def send_data(self, stream_id: int, data: bytes, *, end: bool) -> None:
        """In frames, as the server's windows allow."""
        self._unsent.append((stream_id, data, end))
        self._send_more()
        self.flush()

    def _send_more(self) -> None:
        while self._unsent:
            stream_id, data, end = self._unsent.pop(0)
            try:
                room = min(self.h2.local_flow_control_window(stream_id), self.h2.max_outbound_frame_size)
                self.data_moved += min(max(room, 0), len(data))
                if room >= len(data):
                    self.h2.send_data(stream_id, data, end_stream=end)
                    continue
                self._unsent.insert(0, (stream_id, data[max(room, 0) :], end))
                if room <= 0:
                    return
                self.h2.send_data(stream_id, data[:room])
            except h2.exceptions.StreamClosedError:  # the server ended it
                self._unsent = [one for one in self._unsent if one[0] != stream_id]

    async def ping(self) -> None:
        """Wait until the server has handled all that was sent before."""
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pings.append(answered)
        self.h2.ping(b"12345678")
        self.flush()
        async with asyncio.timeout(5):
            await answered

    def flush(self) -> None:
        self._writer.write(self.h2.data_to_send())

    def write(self, data: bytes) -> None:
        """Bytes of a test's own."""
        self._writer.write(data)

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(65536):
                for event in self.h2.receive_data(data):
                    self._happened(event)
                self._send_more()
                self.flush()
        except (OSError, ssl.SSLError):
            pass
        finally:
            for call in self._calls.values():
                call.ended()
            self.is_closed.set()

    def _happened(self, event: h2.events.Event) -> None:
        call = self._calls.get(getattr(event, "stream_id", 0) or 0)
        if isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived) and call is not None:
            call.headers |= {_text(name): _text(value) for name, value in event.headers or ()}
        elif isinstance(event, h2.events.DataReceived) and call is not None:
            self.data_moved += len(event.data)
            call.data_received(event.data)
            if self.opens_windows:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamReset) and call is not None:
            call.reset_code = int(event.error_code or 0)
            call.ended()
        elif isinstance(event, h2.events.StreamEnded) and call is not None:
            call.ended()
        elif isinstance(event, h2.events.PingAckReceived):
            self._pings.pop(0).set_result(None)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaway = int(event.error_code or 0), (event.additional_data or b"").decode()
            # h2 takes nothing more now; gRPC clients let their open calls end.
            self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN


def framed(data: bytes, *, compressed: int = 0) -> bytes:
    """A message with its prefix."""
    return struct.pack(">BL", compressed, len(data)) + data


def _text(part: str | bytes) -> str:
    return part if isinstance(part, str) else part.decode()
