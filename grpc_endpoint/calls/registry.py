"""`@rpc`: the handler of each rpc. Importing a module of handlers registers them; `bind` gives each its part, once.

    @rpc(SendMessageRequest)
    def send_message(producing: Producing, request: SendMessageRequest, call: RpcCall) -> SendMessageResponse: ...

    @rpc(TelemetryCommand)
    def telemetry(clients: Clients, call: RpcCall) -> TelemetryStream: ...       # a `Receiver`

The first argument is the part that the handler needs, chosen by its type. A wrong request type, or a second handler of
one rpc, fails at import; a missing part when the table is bound.
"""

import inspect
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, TypeVar, get_type_hints

from ..messages.proto import Message
from ..messages.service import BY_REQUEST, Kind, Rpc

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class Deferred:
    """The type of what a handler returns that answers later."""


ANSWERS_LATER: Final = Deferred()
"""The handler, or a part that it has told, answers."""
ANSWERS_WITH_PASS: Final = Deferred()
"""Its part answers when the connection's pass ends, together with the other calls of the pass."""


class Receiver(Protocol):
    """What the handler of a telemetry stream returns: it gets what the client sends."""

    def received(self, message: Message) -> None:
        """One message arrived. May raise as any handler may; the stream then ends."""

    def closed(self) -> None:
        """The client sends nothing more: it closed its side, or the call was cancelled. Called once."""


class Handler(NamedTuple):
    """One entry of the table. `part` is the function's first argument; `None` before the table is bound."""

    rpc: Rpc
    function: Callable[..., Any]
    part_type: type
    part: Any = None


class Registry:
    """The handlers of the service."""

    def __init__(self) -> None:
        self.table: dict[str, Handler] = {}
        """By the path of the rpc."""

    def rpc(self, request_type: type[Message]) -> Callable[[FunctionT], FunctionT]:
        """Register the decorated function for the rpc with this request."""

        def register(function: FunctionT) -> FunctionT:
            rpc = BY_REQUEST.get(request_type)
            if rpc is None:
                raise TypeError(f"{request_type.__name__} is the request of no rpc")
            if rpc.path in self.table:
                raise TypeError(f"{rpc.name} has a handler already")
            parameters = list(inspect.signature(function).parameters)
            hints = get_type_hints(function)
            if rpc.kind is Kind.BIDI:
                if len(parameters) != 2:
                    raise TypeError(f"{rpc.name}: the handler of a stream takes (part, call)")
            elif len(parameters) != 3 or hints.get(parameters[1]) is not request_type:
                raise TypeError(f"{rpc.name}: a handler takes (part, request: {request_type.__name__}, call)")
            self.table[rpc.path] = Handler(rpc, function, hints[parameters[0]])
            return function

        return register

    def bind(self, *parts: object) -> dict[str, Handler]:
        """Path -> handler with its part. Raises `TypeError` if a handler's part is missing."""
        by_type: dict[type, object] = {type(part): part for part in parts}
        bound = {}
        for path, handler in self.table.items():
            if handler.part_type not in by_type:
                raise TypeError(f"{handler.rpc.name} needs a {handler.part_type.__name__}, none is given")
            bound[path] = handler._replace(part=by_type[handler.part_type])
        return bound


HANDLERS: Final = Registry()
"""The handlers of `apache.rocketmq.v2.MessagingService`."""

rpc = HANDLERS.rpc
