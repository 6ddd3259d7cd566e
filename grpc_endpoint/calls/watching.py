"""Calls as watchers see them: the request log, the faults and the ledger of `pocketmq.testing`.

Watchers are those of the remoting servers (`broker/network/watch.py`), and a call is shown to them as a request frame:

    code      the number of the rpc (`protocol/rpc_numbers.py`), above all request codes
    fields    topic, consumerGroup, queueId, clientId: what requests are found by
    body      the request as it arrived; of the reply, its messages, each with its prefix if the rpc is a stream
    reply     code 0 for OK, else the number of the `Code`; its text is the remark; fields as `RpcCall.notes` says

A client on a connection is a connection to them. A message on a telemetry stream is a one-way request; a command to the
client is the request that a remoting client would get (check of a transaction, 307, 309). Without watchers
a call costs one attribute test more.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pocketmq.broker.network.dispatch import Answer
from pocketmq.broker.network.watch import SideServer, Watcher, whole_body
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS
from pocketmq.protocol.wire.command import ONEWAY_FLAG, RESPONSE_FLAG, Command

from ..http2.server_stream import Owner
from ..messages.definition import Status
from ..messages.enumerations import OK_CODES, Code
from ..messages.proto import Message
from ..messages.service import Kind, Rpc
from .handler import GrpcStatus, code_of

if TYPE_CHECKING:
    from pocketmq.broker.network.dispatch import Result
    from pocketmq.broker.network.watch import ReplyBody

MOST_MESSAGES: Final = 1000
"""Telemetry messages of a client that watchers hold back; a rule that drops them does not say when it is done."""
MOST_CLIENTS: Final = 1000
"""Ids of clients on one connection; official clients use one or a few."""
_AROUND_MESSAGES: Final = 2
"""Replies of a receive besides its messages: the status before, the time behind."""
_FIRST_OF_GRPC: Final = 20_000
"""Codes from here on are `Code`s, those below are response codes of the broker."""


class WatchedCall(msgspec.Struct, eq=False):
    """A call, or a message on a telemetry stream, that watchers see and may hold back."""

    client: "WatchedClient"
    command: Command
    rpc: Rpc
    proceed: Callable[[], None]
    """Lets the handler see it."""
    write: Callable[[bytes, GrpcStatus, str], None]
    """Sends a reply past the watchers and ends the call."""
    first_half: Callable[[bytes], bytes]
    """Bytes that end in the middle of a reply."""
    replies: list[bytes] = msgspec.field(default_factory=list)
    """Collected until the call ends."""


class WatchedClient:
    """One client on one connection: a `Watched`. It has the calls that are not answered yet."""

    def __init__(self, watching: "Watching", owner: Owner, client_id: str | None, language: str) -> None:
        self._watching = watching
        self._owner = owner
        self.loop: asyncio.AbstractEventLoop = owner.loop
        self.wrap_transport, self.close, self.abort = owner.wrap_transport, owner.close, owner.abort
        self.pause_writing, self.resume_writing = owner.pause_writing, owner.resume_writing
        self.peer = owner.peer
        self.client_id = client_id
        self._language = language
        self._calls: dict[int, WatchedCall] = {}
        self._messages: dict[int, None] = {}
        """Those that are telemetry messages, the oldest first."""
        self._commands: dict[int, tuple[Command, Callable[[], None]]] = {}
        """Commands to the client that a watcher holds back."""

    @property
    def closed(self) -> bool:
        return self._owner.closed

    # -- from the call

    def register(
        self,
        rpc: Rpc,
        request: Message,
        data: bytes,
        proceed: Callable[[], None],
        write: Callable[[bytes, GrpcStatus, str], None],
        first_half: Callable[[bytes], bytes] = lambda body: b"",
    ) -> WatchedCall:
        """A request, with these bytes, in the form of a frame; `on_request` shows it."""
        command = _command_of(rpc, request, data, self.client_id, self._language)
        call = self._calls[id(command)] = WatchedCall(self, command, rpc, proceed, write, first_half)
        if command.is_oneway:
            self._messages[id(command)] = None
            if len(self._messages) > MOST_MESSAGES:
                oldest = next(iter(self._messages))
                del self._messages[oldest]
                self._calls.pop(oldest, None)
        return call

    def on_request(self, command: Command) -> bool:
        """Show a request; True if a watcher keeps it."""
        watch = self._watching.watch
        return watch is not None and watch.received(self, command)

    def on_reply(
        self, call: WatchedCall, status: GrpcStatus, text: str, notes: Mapping[str, str] | None
    ) -> bool:
        """Show the reply of a call, with its notes; True if a watcher keeps it."""
        command, watch = call.command, self._watching.watch
        if watch is None or id(command) not in self._calls:
            return False
        reply = _reply_of(call.rpc, call.replies, status, text)
        if notes:
            reply.fields = {**(reply.fields or {}), **notes}
        return watch.answering(self, command, reply, b"".join(call.replies))

    def on_server_request(self, command: Command, send: Callable[[], None]) -> bool:
        """Show a command to the client; True if a watcher keeps it, who may have it sent later."""
        watch = self._watching.watch
        if watch is None:
            return False
        self._commands[id(command)] = command, send
        is_kept = watch.calling(self, command, command.body)
        command.body = None  # it may be a view of a store file
        if not is_kept:
            self._commands.pop(id(command), None)
        return is_kept

    def ended(self, command: Command) -> None:
        """The call was answered."""
        self._calls.pop(id(command), None)
        self._messages.pop(id(command), None)

    def cancelled(self, command: Command) -> None:
        """The client wants no reply any more, or it has waited long enough."""
        found, watch = self._calls.pop(id(command), None), self._watching.watch
        if found is not None and watch is not None:
            watch.cancelled(self, command)

    # -- from watchers

    def dispatch(self, command: Command) -> None:
        found = self._calls.get(id(command))
        if found is not None:
            if command.is_oneway:
                self.ended(command)
            found.proceed()

    def answer(self, command: Command, result: "Result") -> None:
        found = self._calls.get(id(command))
        if found is None or not isinstance(result, Answer):
            return
        code = _code(result.code)
        status = Status(code=code, message=result.remark or code.name)
        reply = Command(result.code, 0, RESPONSE_FLAG, result.remark, result.fields or {})
        given = result.body if isinstance(result.body, bytes | memoryview) else None
        body = (
            framed(found.rpc, found.rpc.reply(status=status).SerializeToString())
            if given is None
            else bytes(given)
        )
        self.reply(command, reply, body)

    def reply(self, command: Command, reply: Command, body: "ReplyBody") -> None:
        watch = self._watching.watch
        found = self._calls.get(id(command))
        if found is None:
            return
        if watch is None or not watch.answering(self, command, reply, body):
            self.ended(command)
            grpc = int((reply.fields or {}).get("grpc-status", "0"))
            found.write(whole_body(body), GrpcStatus(grpc), reply.remark or "" if grpc else "")

    def first_half(self, command: Command, body: bytes) -> bytes:
        """Bytes that end in the middle of a reply, for a test that closes the connection there."""
        found = self._calls.get(id(command))
        return b"" if found is None else found.first_half(body)

    def write(self, command: Command, body: "ReplyBody" = None) -> None:
        found = self._commands.pop(id(command), None)
        if found is not None:
            found[1]()


class Watching(SideServer):
    """The watchers of one port; what `Server` is to the watchers of a remoting port."""

    def __init__(self, watchers: Sequence[Watcher] = ()) -> None:
        super().__init__(watchers)
        self.answered: Counter[tuple[str, str]] = Counter()
        """How many calls were answered, by rpc and `Code` (or gRPC status)."""
        self.open_connections = 0
        self._clients: dict[Owner, dict[str | None, WatchedClient]] = {}

    def client(self, owner: Owner, client_id: str, language: str) -> WatchedClient:
        """A client on a connection. Of very many ids on one connection, further ones are shown without their id."""
        known = self._clients.setdefault(owner, {})
        key = client_id or None
        found = known.get(key)
        if found is None and len(known) >= MOST_CLIENTS:
            key = None
            found = known.get(key)
        if found is None:
            found = known[key] = WatchedClient(self, owner, key, language)
            if self.watch is not None:
                self.watch.opened(found)
        return found

    def closed(self, owner: Owner) -> None:
        """A connection is gone."""
        self.open_connections -= 1
        for client in self._clients.pop(owner, {}).values():
            if self.watch is not None:
                self.watch.closed(client)


def _command_of(rpc: Rpc, request: Message, data: bytes, client_id: str | None, language: str) -> Command:
    """A request in the form of a frame."""
    found: Any = request
    queue = getattr(found, "message_queue", None)
    messages = getattr(found, "messages", None) or ()
    topics = [
        getattr(found, "topic", None),
        getattr(queue, "topic", None),
        *(one.topic for one in messages[:1]),
    ]
    group = getattr(found, "group", None)
    fields = {
        "topic": next((topic.name for topic in topics if topic is not None and topic.name), ""),
        "consumerGroup": "" if group is None else group.name,
        "queueId": str(queue.id) if queue is not None and queue.id >= 0 else "",
        "clientId": client_id or "",
    }
    flag = ONEWAY_FLAG if rpc.kind is Kind.BIDI else 0
    given = {name: value for name, value in fields.items() if value}
    return Command(RPC_NUMBERS[rpc.name], 0, flag, None, given, data, language, V5_5_0)


def _reply_of(rpc: Rpc, replies: Sequence[bytes], status: GrpcStatus, text: str) -> Command:
    """The head of a reply in the form of a frame."""
    if status is not GrpcStatus.OK:
        number = Code.BAD_REQUEST if status is GrpcStatus.INVALID_ARGUMENT else Code.INTERNAL_ERROR
        return Command(number, 0, RESPONSE_FLAG, text, {"grpc-status": str(int(status))})
    found = Status()
    if replies:
        first: Any = rpc.reply.FromString(replies[0] if rpc.kind is Kind.UNARY else replies[0][5:])
        found = first.status
    if found.code in OK_CODES:
        is_receive = rpc.name == "ReceiveMessage"
        counted = {"messages": str(len(replies) - _AROUND_MESSAGES)} if is_receive else {}
        return Command(0, 0, RESPONSE_FLAG, None, counted)
    return Command(found.code, 0, RESPONSE_FLAG, found.message, {})


def framed(rpc: Rpc, message: bytes) -> bytes:
    """A message as it is written in the body of a reply: on a stream, with its prefix."""
    return message if rpc.kind is Kind.UNARY else b"\0" + len(message).to_bytes(4) + message


def _code(number: int) -> Code:
    """A `Code` by its own number or that of a response code."""
    if number >= _FIRST_OF_GRPC and number in Code._value2member_map_:
        return Code(number)
    return code_of(number) if number else Code.OK


def messages_of(rpc: Rpc, body: bytes) -> list[bytes]:
    """The messages in the body of a reply; an altered body that is no sequence of messages is one message."""
    if rpc.kind is Kind.UNARY:
        return [body]
    found, at = [], 0
    while at + 5 <= len(body):
        stop = at + 5 + int.from_bytes(body[at + 1 : at + 5])
        found.append(body[at + 5 : stop])
        at = stop
    return found if at == len(body) else [body]
