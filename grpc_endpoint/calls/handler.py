"""What a handler is, what it returns, and how it refuses.

    def send_message(producing: Producing, request: SendMessageRequest, call: RpcCall) -> SendMessageResponse

Its first argument is the part that it works on; `endpoint.py` binds it. It returns its reply, or says that the answer
follows. The handler of a stream of both sides is called once for each stream, without a request: it returns the
`Receiver` of what the client sends.

Nearly every refusal is a `Status` inside the reply; the gRPC status is then OK. Broker handlers raise
`pocketmq.broker.errors.Refusal` with a response code; `code_of` has the official table from response codes to `Code`
(`ResponseBuilder`). Most refusals of the official processors carry the prefix `PROXY`.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, NamedTuple, Protocol

from pocketmq.protocol.wire.response_codes import ResponseCode

from ..messages.definition import Status
from ..messages.enumerations import Code
from ..messages.proto import Message
from ..messages.service import Rpc

PROXY: Final = "org.apache.rocketmq.proxy.common.ProxyException: "
"""The class name that the official proxy of one process puts before its own refusals; tests compare these texts."""


class Handler(NamedTuple):
    """What serves an rpc: `function(request, call)`, or `function(call)` for a stream of both sides."""

    rpc: Rpc
    function: Callable[..., Any]


class Deferred:
    """The type of what a handler returns that answers later."""


ANSWERS_LATER: Final = Deferred()
"""The handler, or a part that it has told, answers."""
ANSWERS_WITH_PASS: Final = Deferred()
"""Its part answers when the connection's pass ends, together with the other calls of the pass."""


class Receiver(Protocol):
    """One stream of a client."""

    def received(self, message: Message) -> None:
        """One message arrived. May raise as any handler may; the stream then ends."""

    def closed(self) -> None:
        """The client sends nothing more: it closed its side, or the call was cancelled. Called once."""


class GrpcStatus(IntEnum):
    """The statuses of gRPC that this endpoint uses."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class RpcRefused(Exception):
    """The call is refused inside the reply: gRPC status OK, and this code and text in the reply's `Status`."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text

    @property
    def status(self) -> Status:
        text = self.text.encode("utf-8", "replace").decode()  # the names of files may have halves of pairs
        return Status(code=self.code, message=text)


class RpcFailed(Exception):
    """The call ends with a gRPC status and no reply: unknown methods, and refusals of telemetry settings."""

    def __init__(self, status: GrpcStatus, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


_CODES: Final = {
    ResponseCode.SUCCESS: Code.OK,
    ResponseCode.SYSTEM_BUSY: Code.TOO_MANY_REQUESTS,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: Code.NOT_IMPLEMENTED,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: Code.CONSUMER_GROUP_NOT_FOUND,
}


def code_of(response_code: int) -> Code:
    """The `Code` for a response code of the broker; INTERNAL_SERVER_ERROR for those without one."""
    return _CODES.get(response_code, Code.INTERNAL_SERVER_ERROR)  # type: ignore[call-overload, no-any-return]
