"""Opens calls: finds the handler of a path, decodes the request, calls the handler, and sends what it returns.

`Calls` is the `Service` of the HTTP/2 port. A handler runs in the same pass of the connection that reads its request;
no call has a task.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pocketmq.broker.network.watch import Watcher
from pocketmq.broker.time.timers import Timer, Timers
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS
from pocketmq.protocol.wire.command import Command

from ..http2.headers import RequestHead
from ..http2.service import Owner, ReplyStream
from ..messages.codes import OK_CODES, Code
from ..messages.decoding import MalformedMessage, decode
from ..messages.proto import Message
from ..messages.service import NOT_SERVED, SERVICE, Kind, Rpc
from .refusals import GrpcStatus, RpcFailed, RpcRefused, refusal_of
from .registry import Handler
from .rpc_call import AT_PASS_END, HELD, Receiver, RpcCall
from .watching import WatchedClient, Watching, framed, messages_of

_log = logging.getLogger("pocketmq.grpc")


SEND_BYTES: Final = 16 << 20
"""Of a request with messages to store, or more: a body takes 2 ms a MiB. Official clients send one of up to 4 MiB."""
_INSPECTION: Final = ("/grpc.health.", "/grpc.reflection.")
"""Paths of the services that tools ask."""
_NOT_SERVED: Final = frozenset(f"/{SERVICE}/{name}" for name in NOT_SERVED)


class Calls:
    """The handlers of the port, by path."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        timers: Timers,
        watchers: Sequence[Watcher] = (),
        *,
        send_bytes: int = SEND_BYTES,
    ) -> None:
        """`watchers` see every call from the first one on. A request with messages to store may have `send_bytes`."""
        self.send_bytes = send_bytes
        self.handlers = dict(handlers)
        self.timers: Final = timers
        self.loop = asyncio.get_running_loop()
        self.watching: Final = Watching(watchers)
        self.when_pass_ends: list[Callable[[], None]] = []
        """Each completes calls that were answered with `AT_PASS_END`."""
        self._is_in_pass = False

    def pass_begins(self) -> None:
        self._is_in_pass = True

    def pass_ends(self) -> None:
        self._is_in_pass = False
        for complete in self.when_pass_ends:
            complete()

    def wants_pass_end(self) -> None:
        """A call is to be completed when the pass ends: now, if it did not arrive in a pass."""
        if not self._is_in_pass:
            self.pass_ends()

    def connection_opened(self, owner: Owner) -> None:
        self.watching.open_connections += 1

    def connection_closed(self, owner: Owner) -> None:
        self.watching.closed(owner)

    def opened(self, stream: ReplyStream, head: RequestHead) -> "OpenCall | None":
        handler = self.handlers.get(head.path)
        if handler is None and head.path.startswith(_INSPECTION):
            from .inspection_handlers import inspection_handlers  # for tools: few servers ever load it

            self.handlers |= inspection_handlers()
            handler = self.handlers.get(head.path)
        if handler is None:
            method = head.path[1:]
            is_declared = head.path in _NOT_SERVED  # the texts are those of grpc-java
            text = f"Method {method} is unimplemented" if is_declared else f"Method not found: {method}"
            stream.finish(GrpcStatus.UNIMPLEMENTED, text)
            return None
        return OpenCall(self, handler, stream, head)


class OpenCall:
    """One call between its stream and its handler: the `Exchange` of the one, the `Stream` of the other."""

    __slots__ = (
        "_call",
        "_calls",
        "_data",
        "_deadline",
        "_handler",
        "_is_counted",
        "_receiver",
        "_request",
        "_stream",
        "_timeout",
        "_watched",
        "most_bytes",
        "needs_end",
    )

    def __init__(self, calls: Calls, handler: Handler, stream: ReplyStream, head: RequestHead) -> None:
        self._calls = calls
        self._handler = handler
        self._stream = stream
        self._data: bytes | None = None
        """The request as it arrived, until its end has arrived: so the connection knows what it keeps."""
        self._request: Message | None = None
        self._receiver: Receiver | None = None
        self._deadline: Timer | None = None
        self._is_counted = False
        self._watched: _Watched | None = None
        """While watchers see the call."""
        self._timeout = head.timeout_seconds
        self.most_bytes = handler.rpc.most_bytes or calls.send_bytes
        self.needs_end = handler.rpc.kind is not Kind.BIDI
        loop = calls.loop
        self._call = RpcCall(
            handler.rpc,
            self,
            loop,
            metadata=head.metadata,
            peer=stream.owner.peer,
            packed_host=stream.owner.packed_host,
            deadline=None if self._timeout is None else loop.time() + self._timeout,
        )
        if handler.rpc.kind is Kind.BIDI:
            self._open_both_ways()

    # -- from the client

    def message_received(self, data: bytes) -> None:
        if self._receiver is not None:
            message = self._decoded(data)
            if message is None or (
                self._calls.watching.watch is not None and _Command.is_kept(self, message, data)
            ):
                return
            self.command_received(message)
        elif self._data is not None:
            self._end_badly(RpcFailed(GrpcStatus.INTERNAL, "Too many requests"))
        else:
            self._data = data

    def half_closed(self) -> None:
        if self._receiver is not None:
            self._close_receiver()
            self._call.end()
        elif self._data is None:
            self._end_badly(RpcFailed(GrpcStatus.INTERNAL, "Half-closed without a request"))
        elif (request := self._decoded(self._data)) is not None:
            data, self._data, self._request = self._data, None, request
            client = None if self._calls.watching.watch is None else self.watched_client()
            if client is not None:
                command = client.shown(self, request, data)
                self._watched = _Watched(client, command)
                if client.received(command):
                    self._start_deadline()
                    return
            self._handle(request)

    def _decoded(self, data: bytes) -> Message | None:
        """The message in these bytes; `None` if they ended the call."""
        try:
            return decode(self._handler.rpc.request, data)
        except MalformedMessage as error:
            self._end_badly(RpcFailed(GrpcStatus.INTERNAL, "Invalid protobuf byte sequence"), str(error))
            return None

    def cancelled(self) -> None:
        if self._watched is not None:
            self._watched.client.cancelled(self._watched.command)
        self._stop_deadline()
        if self._call.is_ended and self._stream.owner.closed:
            self._call.undelivered()  # a watcher kept the reply, or cut it
        self._call.cancel()
        self._close_receiver()

    def undelivered(self) -> None:
        self._call.undelivered()

    def server_stops(self) -> None:
        """Streams end now; a unary call has its answer soon."""
        if self._handler.rpc.kind is Kind.BIDI:
            self._call.end()
        elif self._handler.rpc.kind is Kind.SERVER_STREAM:
            self._give_up(GrpcStatus.UNAVAILABLE, "the server stops")

    def command_received(self, message: Message) -> None:
        """A message of the client on its stream."""
        if self._receiver is not None:
            try:
                self._receiver.received(message)
            except Exception as error:
                self._end_badly(error)

    def _handle(self, request: Message) -> None:
        handler, call = self._handler, self._call
        try:
            result = handler.function(handler.part, request, call)
            if result is AT_PASS_END:
                self._calls.wants_pass_end()
            elif result is not HELD:
                call.answer(result)
            elif not call.is_ended:
                self._start_deadline()
        except Exception as error:
            self._end_badly(error)

    def _open_both_ways(self) -> None:
        handler = self._handler
        self._stream.send_headers()  # clients in Rust wait for them
        try:
            self._receiver = handler.function(handler.part, self._call)
        except Exception as error:
            self._end_badly(error)
            return
        self._start_deadline()

    def _close_receiver(self) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.closed()

    # -- deadline

    def _start_deadline(self) -> None:
        if self._timeout is not None and self._deadline is None:
            self._deadline = self._calls.timers.call_later(self._timeout, self._expire, is_event=False)

    def _expire(self) -> None:
        self._deadline = None
        self._give_up(GrpcStatus.DEADLINE_EXCEEDED, "the deadline of the call is past")

    def _give_up(self, status: GrpcStatus, text: str) -> None:
        """End a call that its handler still holds."""
        if not self._call.is_ended:
            if self._watched is not None:
                self._watched.client.cancelled(self._watched.command)
            self._stop_deadline()
            self._call.cancel()
            self._close_receiver()
            self._stream.finish(status, text)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    # -- to the client

    def send_reply(self, message: Message) -> None:
        data = self._encoded(message)
        if self._watched is not None:
            self._watched.replies.append(framed(self._handler.rpc, data))
        else:
            self._stream.send_message(data)

    def answer(self, message: Message) -> None:
        if self._watched is not None:
            self.send_reply(message)
            self.finish(GrpcStatus.OK, "")
            return
        data = self._encoded(message)
        self._stop_deadline()
        self._close_receiver()
        self._stream.answer(data)

    def answer_stream(self, replies: Sequence[bytes]) -> None:
        self._count("OK")
        if self._watched is not None:
            self._watched.replies += [framed(self._handler.rpc, data) for data in replies]
            self.finish(GrpcStatus.OK, "")
            return
        self._stop_deadline()
        self._stream.answer_all(replies)

    def _encoded(self, message: Message) -> bytes:
        """The bytes of a reply; the first one of a call is counted."""
        data = message.SerializeToString()
        if not self._is_counted:
            self._count(code_name_of(message))
        return data

    def _count(self, code: str) -> None:
        self._is_counted = True
        self._calls.watching.answered[self._handler.rpc.name, code] += 1

    def send_command(self, message: Message, shown: Command) -> None:
        client = None if self._calls.watching.watch is None else self.watched_client()
        if client is None or not client.calling(shown, lambda: self.send_reply(message)):
            self.send_reply(message)

    def finish(self, status: GrpcStatus, text: str) -> None:
        self._stop_deadline()
        self._close_receiver()
        if status is not GrpcStatus.OK:
            self._calls.watching.answered[self._handler.rpc.name, f"grpc {status.name}"] += 1
        watched = self._watched
        if watched is not None:
            notes = self._call.notes
            if watched.client.answering(watched.command, watched.replies, status, text, notes):
                return
            watched.client.ended(watched.command)
            for data in messages_of(self._handler.rpc, b"".join(watched.replies)):
                self._stream.send_message(data)
        self._stream.finish(status, text)

    # -- from watchers

    def watched_client(self) -> WatchedClient | None:
        """The client as watchers see it; `None` for health and reflection."""
        if self._handler.rpc.name not in RPC_NUMBERS:
            return None
        call = self._call
        return self._calls.watching.client(self._stream.owner, call.client_id, call.language)

    @property
    def rpc(self) -> Rpc:
        return self._handler.rpc

    def proceed(self) -> None:
        """A watcher lets the request pass after all."""
        if self._request is not None and not self._call.cancelled and not self._call.is_ended:
            self._handle(self._request)

    def write(self, body: bytes, status: GrpcStatus, text: str) -> None:
        """A watcher's reply, or one that it held back."""
        self._stop_deadline()
        self._call.is_ended = True
        for data in messages_of(self._handler.rpc, body) if body else ():
            self._stream.send_message(data)
        self._stream.finish(status, text)

    def first_half(self, body: bytes) -> bytes:
        """Bytes that end in the middle of this reply."""
        return self._stream.first_half(messages_of(self._handler.rpc, body))

    def _end_badly(self, error: Exception, detail: str = "") -> None:
        """End the call as this error says: with a gRPC status, with a status in the reply, or as our own mistake."""
        call, rpc = self._call, self._handler.rpc
        if isinstance(error, RpcFailed):
            if error.status is GrpcStatus.INTERNAL:
                _log.warning("%s of %s: %s", rpc.name, call.peer, detail or error.text)
            call.refuse(error.status, error.text)
            return
        refusal = refusal_of(error)
        if refusal is None:
            _log.error("%s of %s failed", rpc.name, call.peer, exc_info=error)
            refusal = RpcRefused(Code.INTERNAL_SERVER_ERROR, f"{error}. {type(error).__name__}")
            if rpc.service != SERVICE:  # its replies have no status
                call.refuse(GrpcStatus.INTERNAL, refusal.text)
                return
        call.answer(refused(rpc, refusal))


def code_name_of(reply: Any) -> str:
    """OK also for a reply without a status."""
    code = getattr(getattr(reply, "status", None), "code", Code.OK)
    return "OK" if code in OK_CODES else Code(code).name


class _Watched:
    """A call that watchers see: its replies are collected until it ends."""

    __slots__ = ("client", "command", "replies")

    def __init__(self, client: WatchedClient, command: Command) -> None:
        self.client = client
        self.command = command
        self.replies: list[bytes] = []


class _Command:
    """One message of the client on its telemetry stream, as watchers see it: a one-way request."""

    __slots__ = ("_message", "_open", "rpc")

    def __init__(self, opened: OpenCall, message: Message) -> None:
        self._open = opened
        self._message = message
        self.rpc = opened.rpc

    @classmethod
    def is_kept(cls, opened: OpenCall, message: Message, data: bytes) -> bool:
        """Show it; True if a watcher keeps it."""
        client = opened.watched_client()
        if client is None:
            return False
        command = client.shown(cls(opened, message), message, data)
        is_kept = client.received(command)
        if not is_kept:
            client.ended(command)
        return is_kept

    def proceed(self) -> None:
        self._open.command_received(self._message)

    def write(self, body: bytes, status: GrpcStatus, text: str) -> None:
        self._open.write(body, status, text)

    def first_half(self, body: bytes) -> bytes:
        """It has no reply of its own."""
        return b""


def refused(rpc: Rpc, refusal: RpcRefused) -> Message:
    """The reply that says so."""
    reply: Any = rpc.refusal(refusal.status)
    return reply  # type: ignore[no-any-return]
