"""A client of the HTTP/2 port without a socket: calls as frames in, replies as frames out. For `grpc_path.py`.

Header blocks are those of the Java client: what repeats is in the table, request id and date are literals.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import hpack
from pocketmq.grpc_endpoint.http2 import frames
from pocketmq.grpc_endpoint.http2.connection import Http2Connection
from pocketmq.grpc_endpoint.http2.framing import PREFIX, PREFIX_BYTES
from pocketmq.grpc_endpoint.http2.server_stream import ConnectionOwner

WINDOW = (1 << 31) - 1 - frames.FIRST_WINDOW


class Transport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written = bytearray()

    def write(self, data: bytes) -> None:
        self.written += data

    def writelines(self, pieces: Sequence[bytes]) -> None:
        self.written += b"".join(pieces)

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 40_000) if name == "peername" else None

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None: ...

    def set_write_buffer_limits(self, high: int) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...


class FrameClient:
    """One connection."""

    def __init__(self, port: ConnectionOwner) -> None:
        self._transport = Transport()
        self._connection = Http2Connection(port)
        self._connection.connection_made(cast(asyncio.BaseTransport, self._transport))
        self._encoder = hpack.Encoder()
        self._stream_id = 1
        opened = frames.settings({frames.SETTINGS_INITIAL_WINDOW_SIZE: frames.WINDOW_MAX})
        self._connection.data_received(frames.PREFACE + opened + frames.window_update(0, WINDOW))

    def close(self) -> None:
        self._connection.connection_lost(None)

    def calls(self, path: str, metadata: Mapping[str, str], requests: Sequence[bytes]) -> bytes:
        """The bytes of these unary calls, as one read has them."""
        pieces: list[bytes] = []
        for request in requests:
            stream_id = self._stream_id
            self._stream_id += 2
            fields = {
                ":authority": "127.0.0.1:8081",
                ":path": path,
                ":method": "POST",
                ":scheme": "http",
                "content-type": "application/grpc",
                "te": "trailers",
                "user-agent": "grpc-java-netty/1.53.0",
                **metadata,
                "x-mq-request-id": f"00000000-0000-0000-0000-{stream_id:012x}",
                "grpc-accept-encoding": "gzip",
                "grpc-timeout": f"{2_999_000 + stream_id % 1000}u",
            }
            block = self._encoder.encode(fields.items(), huffman=False)
            pieces.append(frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block))
            message = PREFIX.pack(0, len(request)) + request
            pieces.append(frames.frame(frames.DATA, frames.END_STREAM, stream_id, message))
        return b"".join(pieces)

    def read(self, data: bytes) -> None:
        """The connection reads this."""
        self._connection.data_received(data)

    def replies(self) -> list[bytes]:
        """The messages that were written since the last time."""
        data, at, found = bytes(self._transport.written), 0, []
        self._transport.written.clear()
        while at < len(data):
            high, low, kind, _, _ = frames.HEAD.unpack_from(data, at)
            stop = at + frames.HEAD_BYTES + (high << 8 | low)
            if kind == frames.DATA:
                found.append(data[at + frames.HEAD_BYTES + PREFIX_BYTES : stop])
            at = stop
        return found
