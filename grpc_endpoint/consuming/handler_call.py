"""A call of a handler of the broker that may be held: its connection is one rpc, not a client.

The broker drops a held request whose connection is closed. A client has many receives at once, and each can be
cancelled by itself; so each is a connection of its own here.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from pocketmq.broker.config.addresses import NO_HOST
from pocketmq.broker.errors import PeerError
from pocketmq.broker.network.dispatch import Answer, Call, Result
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import Reply, Request

from ..calls.rpc_call import RpcCall

HandlerAnswer = Answer | Reply | Body | None

SERVER_PEER: Final = "127.0.0.1:0"
"""The peer of requests that the endpoint makes itself."""


class RpcConnection:
    """One rpc as the broker's handlers see a connection. `closed` is set when the rpc is cancelled."""

    __slots__ = ("closed", "loop", "packed_host", "peer")

    def __init__(self, loop: asyncio.AbstractEventLoop, peer: str, packed_host: bytes) -> None:
        self.loop = loop
        self.peer = peer
        self.packed_host = packed_host
        self.closed = False

    def answer(self, command: Command, result: Result) -> None:
        """Nothing to do: a `HandlerCall` answers its own function."""

    async def exchange(
        self, request: Request[Any], body: RawBody | None = None, *, timeout_seconds: float
    ) -> Command:
        raise PeerError(f"{self.peer}: an rpc cannot be asked {request.name}")

    def notify(self, request: Request[Any], body: RawBody | None = None) -> None:
        """Nothing to do: requests for the client are sent to its `GrpcPeer`."""

    def close(self) -> None:
        self.closed = True


class HandlerCall(Call):
    """`when_answered` gets the answer, if the handler holds the call."""

    __slots__ = ("_when_answered",)

    def __init__(
        self, connection: RpcConnection, code: int, when_answered: Callable[[HandlerAnswer], None]
    ) -> None:
        super().__init__(connection, Command(code, version=V5_5_0))
        self._when_answered = when_answered

    @classmethod
    def of(
        cls, call: RpcCall, code: int, when_answered: Callable[[HandlerAnswer], None] = lambda answer: None
    ) -> "HandlerCall":
        """A request on behalf of this rpc."""
        return cls(RpcConnection(call.loop, call.peer, call.packed_host), code, when_answered)

    @classmethod
    def of_server(cls, code: int) -> "HandlerCall":
        """A request that the endpoint makes itself; its handler answers at once."""
        connection = RpcConnection(asyncio.get_running_loop(), SERVER_PEER, NO_HOST)
        return cls(connection, code, lambda answer: None)

    def answer(self, result: HandlerAnswer) -> None:
        self._when_answered(result)
