"""One gRPC client, as the broker's handlers and its tables of members see a connection.

A client has one peer, made by its first registration, whatever the number of its connections; a client that has not
registered gets one for the length of a call. Mirrors `GrpcClientChannel`.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from pocketmq.broker.errors import PeerError
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import Request

from ..calls.rpc_call import RpcCall
from ..messages import TelemetryCommand

if TYPE_CHECKING:
    from pocketmq.broker.network.dispatch import Result


LONGEST_SHOWN: Final = 255
"""Characters of a client id in the log."""


class CommandSender(Protocol):
    """How requests of the broker reach a client (`client_commands.py`)."""

    async def exchange(
        self, peer: "GrpcPeer", request: Request[Any], body: RawBody | None, timeout_seconds: float
    ) -> Command: ...

    def notify(self, peer: "GrpcPeer", request: Request[Any], body: RawBody | None) -> None: ...


class GrpcPeer:
    """Owned by the event loop. `stream` is the telemetry stream on which the client last sent settings."""

    __slots__ = (
        "_commands",
        "_on_close",
        "client_id",
        "closed",
        "language",
        "loop",
        "packed_host",
        "peer",
        "seen_ms",
        "stream",
    )

    def __init__(
        self,
        client_id: str,
        language: str,
        peer: str,
        packed_host: bytes,
        commands: CommandSender,
        on_close: Callable[["GrpcPeer"], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.loop = loop
        self.client_id = client_id
        self.language = language
        self.peer = peer
        self.packed_host = packed_host
        self.closed = False
        """Whether the client is gone: it said so, or it was silent for too long."""
        self.seen_ms = 0
        """When it last sent settings or a heartbeat, by the wall's time."""
        self.stream: RpcCall | None = None
        self._commands = commands
        self._on_close = on_close

    def __repr__(self) -> str:
        return f"{self.client_id[:LONGEST_SHOWN]}@{self.peer}"

    @property
    def is_reachable(self) -> bool:
        """Whether a command can be sent now."""
        return self.stream is not None and not self.stream.cancelled

    def command(self, command: TelemetryCommand, shown: Command) -> bool:
        """Send a command on the telemetry stream; False without one. `shown` is the broker's request."""
        if self.stream is None or self.stream.cancelled:
            return False
        self.stream.command(command, shown)
        return True

    def answer(self, command: Command, result: "Result") -> None:
        """No request arrives here: a `BrokerCall` answers its own function."""
        raise AssertionError(f"no request of {self.client_id} waits for an answer here")

    def at_pass_end(self, complete: Callable[[], None]) -> None:
        complete()

    async def exchange(
        self, request: Request[Any], body: RawBody | None = None, *, timeout_seconds: float
    ) -> Command:
        """Ask the client. `PeerError` if it does not answer, or if gRPC has no such question."""
        if self.closed:
            raise PeerError(f"{self.client_id} is gone")
        return await self._commands.exchange(self, request, body, timeout_seconds)

    def notify(self, request: Request[Any], body: RawBody | None = None) -> None:
        """Pass a one-way request on; one that gRPC clients do not have is dropped."""
        if not self.closed:
            self._commands.notify(self, request, body)

    def close(self) -> None:
        """The broker drops the client, because it was silent for too long."""
        if not self.closed:
            self.closed = True
            self.loop.call_soon(self._on_close, self)
