"""A connection of `pocketmq.grpc_endpoint.http2` without a socket: bytes in, frames out, and a socket that can be full.

Its passes have no time limit, unless the test sets one: on a busy machine the frames of a read would need several.

peer = PipePeer()                      the echo program of `http2_echo.py` is behind it
peer.send(settings({4: 1}))            one read of the server; `PREFACE` was sent before
await peer.settle()                    the loop has nothing more to do
peer.frames()                          what the server has written since the last call
peer.pipe.is_full = True               the socket takes nothing more
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from pocketmq.grpc_endpoint.http2.connection import Http2Connection
from pocketmq.grpc_endpoint.http2.limits import Limits, MemoryBudget

from http2_echo import PREFACE, Echo, Frame, frames_in


class PipePort:
    """A port without sockets."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.service = Echo()
        self.limits = limits or Limits(pass_seconds=3600)
        self.has_too_much = False
        self.memory = MemoryBudget(self.limits.port_bytes, self._exceeded)

    def _exceeded(self) -> None:
        self.has_too_much = True

    def connected(self, connection: Http2Connection, descriptor: int) -> None: ...

    def disconnected(self, connection: Http2Connection) -> None: ...


class Pipe(asyncio.Transport):
    """Collects what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.connection: asyncio.Protocol | None = None
        self.written = bytearray()
        self.closed = False
        self.is_full = False
        """Whether the client does not read."""
        self._waiting = bytearray()
        self._high = 65_536
        self._is_paused = False

    def write(self, data: Any) -> None:
        if not self.is_full:
            self.written += data
            return
        self._waiting += data
        if len(self._waiting) > self._high and not self._is_paused and self.connection is not None:
            self._is_paused = True
            self.connection.pause_writing()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def drain(self) -> None:
        """The client reads everything."""
        self.written += self._waiting
        self._waiting.clear()
        if self._is_paused and self.connection is not None:
            self._is_paused = False
            self.connection.resume_writing()

    def get_write_buffer_size(self) -> int:
        return len(self._waiting)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = self._high if high is None else high

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default


class PipePeer:
    """One client."""

    def __init__(self, limits: Limits | None = None, *, preface: bytes = PREFACE) -> None:
        self.port = PipePort(limits)
        self.pipe = Pipe()
        self.connection = self.pipe.connection = Http2Connection(self.port)
        self.connection.connection_made(self.pipe)
        if preface:
            self.send(preface)

    def send(self, data: bytes) -> None:
        self.connection.data_received(data)

    async def settle(self, is_done: Callable[[], object] | None = None) -> None:
        """Let the loop run until it has nothing to do, at most some hundred iterations, or until `is_done`."""
        for _ in range(20 if is_done is None else 5_000):
            await asyncio.sleep(0)
            if is_done is not None and is_done():
                return

    def frames(self) -> list[Frame]:
        """What was written since the last call."""
        found = frames_in(bytes(self.pipe.written))
        self.pipe.written.clear()
        return found

    def close(self) -> None:
        """The client's system closes the socket."""
        self.connection.connection_lost(None)
