"""A call of one of the broker's handlers, made on behalf of a gRPC client.

The handlers of `pocketmq.broker` take a `Call` with the connection and the frame of a remoting request. Here the
connection is the client's `GrpcPeer`; a held call is answered to a function instead of to a connection.
"""

from collections.abc import Callable
from typing import Final

from pocketmq.broker.network.dispatch import Answer, Call
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import Reply

from .peer import GrpcPeer

HandlerAnswer = Answer | Reply | Body | None
WhenAnswered = Callable[[HandlerAnswer], None]

NO_OPAQUE: Final = 0


class InnerCall(Call):
    """`when_answered` gets the answer to a call that the handler held."""

    __slots__ = ("_when_answered",)

    def __init__(
        self,
        peer: GrpcPeer,
        code: int,
        when_answered: WhenAnswered,
        body: RawBody | None = None,
    ) -> None:
        command = Command(code, NO_OPAQUE, 0, None, None, body, language=peer.language, version=V5_5_0)
        super().__init__(peer, command)
        self._when_answered = when_answered

    def answer(self, result: HandlerAnswer) -> None:
        self._when_answered(result)
