"""For tests of what a connection does with frames: a client's end of it, without a socket."""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

from pocketmq.broker.broker import Broker
from pocketmq.broker.network.connection import Connection
from pocketmq.broker.network.dispatch import BROKER
from pocketmq.broker.network.server import Server
from pocketmq.broker.network.server_context import Limits
from pocketmq.protocol.languages import V4_9_7, V5_5_0


class FakeTransport:
    """Opens a connection of a server, and keeps what it writes."""

    def __init__(self, server: Server) -> None:
        self.written = bytearray()
        self.reads = True
        self.is_closed = False
        self.connection = Connection(server)
        self.connection.connection_made(cast(Any, self))

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return "127.0.0.1", 50_000

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.writelines([data])

    def writelines(self, parts: Iterable[bytes]) -> None:
        self.written += b"".join(parts)

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def close(self) -> None:
        self.is_closed = True

    abort = close


class Wire(FakeTransport):
    """A client's end of a connection that has no socket."""

    def __init__(self, broker: Broker, *, in_passes: bool = True) -> None:
        """Without `in_passes` every request is decoded and handled alone, as beside access control."""
        is_5 = broker.config.is_5
        self.broker = broker
        self.server = Server(
            "broker",
            version=V5_5_0 if is_5 else V4_9_7,
            json_replies=is_5,
            limits=Limits(pass_seconds=3600),  # a pass has sixteen requests however busy the machine is
        )
        self.server.handlers = BROKER.of_line(broker.config.emulate).bind(*broker.parts)
        self.server.sends = broker.sends.handle if in_passes else None
        super().__init__(self.server)

    async def exchange(self, *frames: bytes) -> bytes:
        """Send frames in one read; returns what is written until all are handled."""
        if frames:
            self.connection.data_received(b"".join(frames))
        for _ in range(len(frames) // 16 + 3):
            await asyncio.sleep(0)
        written = bytes(self.written)
        self.written.clear()
        return written

    def end(self) -> None:
        self.connection.connection_lost(None)
