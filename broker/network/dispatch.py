"""The table of handlers: from a request code to the function that answers it.

A handler is declared with its request; importing its module adds it to the table. A plain function answers in the same
pass of the connection; a coroutine becomes a task of its connection.

    @handles(GetMaxOffset)
    def get_max_offset(pulling: Pulling, request: GetMaxOffset) -> OffsetReply: ...

The first argument is the part of the broker that the handler needs, chosen by its type. `Handlers.bind(parts)` binds
each function to its part once, at the start, and raises if a part is missing. A handler that needs the frame itself
(peer, version, opaque) has a third parameter, the `Call`. One that reads the body has a `CallWithBody[HeartbeatData]`,
with the type that the request declares.

A handler returns a `Reply` (code 0), the declared body of the reply (code 0), `None` (code 0, no fields), an `Answer`,
or `HELD` if it keeps the call and answers later. It refuses a request by raising `Refusal`.
"""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
from pocketmq.protocol.bodies.body import Body, decode_body, form_name
from pocketmq.protocol.wire.command import Command, RawBody
from pocketmq.protocol.wire.schema import REQUESTS, Line, Reply, Request

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
BodyT = TypeVar("BodyT")


class Answer(msgspec.Struct):
    """A reply with more than header fields. `body` may be several buffers, written without joining them."""

    code: int = 0
    reply: Reply | None = None
    remark: str | None = None
    body: RawBody | Sequence[RawBody] | None = None
    fields: dict[str, str] | None = None
    """Header fields beyond those of `reply`."""


class Held:
    """The type of `HELD`."""


HELD: Final = Held()
"""Returned by a handler that keeps its call and answers later (a suspended pull)."""


Result = Answer | Reply | Body | Held | None


class Peer(Protocol):
    """The connection a request arrived on, as handlers and the tables of clients use it."""

    loop: asyncio.AbstractEventLoop
    peer: str
    """`host:port` of the peer."""
    packed_host: bytes
    """The same address in the bytes of a stored message."""
    closed: bool

    def answer(self, command: Command, result: Result) -> None:
        """Send the reply to a request."""

    def at_pass_end(self, complete: Callable[[], None]) -> None:
        """Call a function, once, when the requests that arrived together are handled; now if none is being handled."""

    async def exchange(
        self, request: Request[Any], body: RawBody | None = None, *, timeout_seconds: float
    ) -> Command:
        """Send a request and wait for its reply; `PeerError` if none arrives."""

    def notify(self, request: Request[Any], body: RawBody | None = None) -> None:
        """Send a one-way request."""

    def close(self) -> None:
        """Write what is queued, then close."""


class Call:
    """One request: its frame, and the connection for its answer."""

    __slots__ = ("command", "connection")

    def __init__(self, connection: Peer, command: Command) -> None:
        self.connection = connection
        self.command = command

    @property
    def body(self) -> RawBody:
        """The request body; empty if the frame had none."""
        body = self.command.body
        return b"" if body is None else body

    def answer(self, result: Answer | Reply | Body | None) -> None:
        """Answer a held call. Does nothing for a one-way request or after the connection closed."""
        self.connection.answer(self.command, result)


class CallWithBody(Call, Generic[BodyT]):
    """A call with a body of the type that the request declares."""

    __slots__ = ()

    def read_body(self) -> BodyT:
        """The body, decoded now. Raises BodyError, also for a missing body."""
        return cast(BodyT, decode_body(REQUESTS[self.command.code].body_form, self.command.body))


class Handler(msgspec.Struct, frozen=True):
    """One entry of the table. `part` is the function's first argument; `None` before the table is bound."""

    request_type: type[Request[Any]]
    function: Callable[..., Any]
    part_type: type
    call_type: type[Call] | None
    """`None` if the function has no such parameter."""
    main_port_only: bool = False
    part: Any = None


class Handlers:
    """The handlers of one server. Importing the handler modules fills it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.table: dict[int, Handler] = {}

    def handles(
        self, *request_types: type[Request[Any]], main_port: bool = False
    ) -> Callable[[FunctionT], FunctionT]:
        """Register the decorated function for these requests; wrong types or a second handler fail at import.

        With `main_port` the fast port does not accept these requests.
        """

        def register(function: FunctionT) -> FunctionT:
            for request_type in request_types:
                part_type, call_type = self._check(request_type, function)
                self.table[request_type.code] = Handler(
                    request_type, function, part_type, call_type, main_port
                )
            return function

        return register

    def _check(
        self, request_type: type[Request[Any]], function: Callable[..., Any]
    ) -> tuple[type, type[Call] | None]:
        """The type of the function's part, and of its call: `None` if it has no such parameter."""
        code = request_type.code
        if code in self.table:
            raise TypeError(f"{self.name}: code {code} has a handler already")
        parameters = list(inspect.signature(function).parameters)
        if len(parameters) not in (2, 3):
            raise TypeError(f"{self.name}: a handler takes (part, request) or (part, request, call)")
        hints = get_type_hints(function)
        declared = hints.get(parameters[1])
        accepted = [kind for kind in get_args(declared) or (declared,) if isinstance(kind, type)]
        if not any(issubclass(request_type, kind) for kind in accepted):
            raise TypeError(f"{self.name}: {function.__name__} does not take a {request_type.__name__}")
        part_type: type = hints[parameters[0]]
        self._check_reply(request_type, function, hints.get("return"))
        if len(parameters) == 2:
            return part_type, None
        call = hints.get(parameters[2])
        if get_origin(call) is not CallWithBody:
            return part_type, Call
        if get_args(call) != (request_type.body_form,):
            form = form_name(request_type.body_form)
            raise TypeError(f"{self.name}: {function.__name__} reads {call}; {request_type.name} has {form}")
        return part_type, CallWithBody

    def _check_reply(
        self, request_type: type[Request[Any]], function: Callable[..., Any], returned: Any
    ) -> None:
        for kind in get_args(returned) or (returned,):
            is_body = isinstance(kind, type) and issubclass(kind, Body)
            if is_body and kind is not request_type.reply_body_form:
                form = form_name(request_type.reply_body_form)
                raise TypeError(
                    f"{self.name}: {function.__name__} returns a {kind.__name__}; {request_type.name} is answered "
                    f"with {form}"
                )

    def of_line(self, line: Line) -> "Handlers":
        return self._less(lambda handler: handler.request_type.only_in not in (None, line))

    def without_main_port_only(self) -> "Handlers":
        """The entries of the fast port: all requests except those that read messages."""
        return self._less(lambda handler: handler.main_port_only)

    def bind(self, *parts: object) -> "Handlers":
        """The same table with each function bound to its part. Raises `TypeError` if a handler's part is missing."""
        by_type: dict[type, object] = {type(part): part for part in parts}
        bound = Handlers(self.name)
        for code, handler in self.table.items():
            if handler.part_type not in by_type:
                function = handler.function.__name__
                raise TypeError(
                    f"{self.name}: {function} needs a {handler.part_type.__name__}, none is given"
                )
            part = by_type[handler.part_type]
            bound.table[code] = msgspec.structs.replace(handler, part=part)
        return bound

    def _less(self, is_dropped: Callable[[Handler], bool]) -> "Handlers":
        other = Handlers(self.name)
        other.table = {code: handler for code, handler in self.table.items() if not is_dropped(handler)}
        return other


BROKER: Final = Handlers("broker")
NAME_SERVER: Final = Handlers("name server")

handles = BROKER.handles
