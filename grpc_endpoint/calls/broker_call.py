"""A call of one of the broker's handlers, made by the endpoint: its answer goes to a function.

    BrokerCall(peer, code, on_answer)           on behalf of a client, which the broker's tables may keep
    BrokerCall.of_rpc(call, code, on_answer)    on behalf of one rpc, which is a connection of its own
    BrokerCall.of_server(code)                  by the endpoint itself; the handler answers at once

The broker drops a held request whose connection is closed. A client has many receives at once, and each can be
cancelled by itself.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec
from pocketmq.broker.config.addresses import NO_HOST
from pocketmq.broker.errors import PeerError
from pocketmq.broker.network.dispatch import Answer, Call, Peer, Result
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import Reply, Request

from .rpc_call import RpcCall

HandlerAnswer = Answer | Reply | Body | None
SERVER_PEER: Final = "127.0.0.1:0"
"""The peer of requests that the endpoint makes itself."""


class RpcConnection(msgspec.Struct, eq=False):
    """One rpc as the broker's handlers see a connection. `closed` is set when the rpc is cancelled."""

    loop: asyncio.AbstractEventLoop
    peer: str
    packed_host: bytes
    closed: bool = False

    def answer(self, command: Command, result: Result) -> None:
        """Nothing to do: a `BrokerCall` answers its own function."""

    def at_pass_end(self, complete: Callable[[], None]) -> None:
        complete()

    async def exchange(
        self, request: Request[Any], body: RawBody | None = None, *, timeout_seconds: float
    ) -> Command:
        raise PeerError(f"{self.peer}: an rpc cannot be asked {request.name}")

    def notify(self, request: Request[Any], body: RawBody | None = None) -> None:
        """Nothing to do: requests for the client are sent to its `GrpcPeer`."""

    def close(self) -> None:
        self.closed = True


def _ignore(answer: HandlerAnswer) -> None:
    """The handler answers at once, or its answer does not matter."""


class BrokerCall(Call):
    """`on_answer` gets the answer if the handler holds the call."""

    __slots__ = ("_on_answer",)

    def __init__(
        self,
        connection: Peer,
        code: int,
        on_answer: Callable[[HandlerAnswer], None] = _ignore,
        *,
        body: RawBody | None = None,
        language: str = "JAVA",
    ) -> None:
        super().__init__(connection, Command(code, body=body, language=language, version=V5_5_0))
        self._on_answer = on_answer

    @classmethod
    def of_rpc(cls, call: RpcCall, code: int, on_answer: Callable[[HandlerAnswer], None]) -> "BrokerCall":
        return cls(RpcConnection(call.loop, call.peer, call.packed_host), code, on_answer)

    @classmethod
    def of_server(cls, code: int) -> "BrokerCall":
        return cls(RpcConnection(asyncio.get_running_loop(), SERVER_PEER, NO_HOST), code)

    def answer(self, result: HandlerAnswer) -> None:
        self._on_answer(result)
