"""One call of a client: from the bytes of its request to its handler, and from the handler's replies back.

`Calls` is the `Service` of the HTTP/2 port, `RpcCall` its `Exchange`. A handler runs in the same pass of the connection
that reads its request; no call has a task.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pocketmq.broker.errors import Refusal
from pocketmq.broker.network.watch import Watcher
from pocketmq.broker.time.timers import Timer, Timers
from pocketmq.protocol.rpc_numbers import RPC_NUMBERS
from pocketmq.protocol.wire.command import Command

from ..http2.headers import RequestHead
from ..http2.server_stream import Owner, ServerStream
from ..messages.decoding import MalformedMessage, decode
from ..messages.enumerations import Code, code_name_of
from ..messages.proto import Message
from ..messages.service import NOT_SERVED, SERVICE, Kind
from .handler import (
    ANSWERS_LATER,
    ANSWERS_WITH_PASS,
    GrpcStatus,
    Handler,
    Receiver,
    RpcFailed,
    RpcRefused,
    code_of,
)
from .watching import WatchedCall, WatchedClient, Watching, framed, messages_of

_log = logging.getLogger("pocketmq.grpc")

SEND_BYTES: Final = 16 << 20
"""Of a request with messages to store, or more: a body takes 2 ms a MiB. Official clients send one of up to 4 MiB."""
_INSPECTION: Final = ("/grpc.health.", "/grpc.reflection.")
"""Paths of the services that tools ask."""
_NOT_SERVED: Final = frozenset(f"/{SERVICE}/{name}" for name in NOT_SERVED)
_BIDI: Final = Kind.BIDI


class Calls:
    """The handlers of the port, by path."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        timers: Timers,
        watchers: Sequence[Watcher] = (),
        *,
        send_bytes: int = SEND_BYTES,
        inspection: Callable[[], Mapping[str, Handler]] = dict,
    ) -> None:
        """`watchers` see every call from the first one on. A request with messages to store may have `send_bytes`.
        `inspection` loads the handlers of health and reflection: few servers ever need them."""
        self.send_bytes = send_bytes
        self.handlers = dict(handlers)
        self.timers: Final = timers
        self.loop = asyncio.get_running_loop()
        self.watching: Final = Watching(watchers)
        self.when_pass_ends: list[Callable[[], None]] = []
        """Each completes calls that were answered with `ANSWERS_WITH_PASS`."""
        self._inspection = inspection
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

    def opened(self, stream: ServerStream, head: RequestHead) -> "RpcCall | None":
        handler = self.handlers.get(head.path)
        if handler is None and head.path.startswith(_INSPECTION):
            self.handlers |= self._inspection()
            handler = self.handlers.get(head.path)
        if handler is None:
            method = head.path[1:]
            is_declared = head.path in _NOT_SERVED  # the texts are those of grpc-java
            text = f"Method {method} is unimplemented" if is_declared else f"Method not found: {method}"
            stream.finish(GrpcStatus.UNIMPLEMENTED, text)
            return None
        return RpcCall(self, handler, stream, head)


class RpcCall:
    """One call of a client. What sends does nothing once the call has ended or was cancelled."""

    __slots__ = (
        "_calls",
        "_data",
        "_deadline",
        "_deadline_timer",
        "_handler",
        "_is_counted",
        "_on_cancelled",
        "_on_undelivered",
        "_receiver",
        "_stream",
        "_timeout",
        "_watched",
        "cancelled",
        "is_ended",
        "loop",
        "metadata",
        "most_bytes",
        "needs_end",
        "notes",
        "packed_host",
        "peer",
        "rpc",
    )

    def __init__(self, calls: Calls, handler: Handler, stream: ServerStream, head: RequestHead) -> None:
        self._calls = calls
        self._handler = handler
        self._stream = stream
        self._data: bytes | None = None
        """The request as it arrived, until its end has arrived: so the connection knows what it keeps."""
        self._receiver: Receiver | None = None
        self._deadline_timer: Timer | None = None
        self._is_counted = False
        self._watched: WatchedCall | None = None
        """While watchers see the call."""
        self._on_cancelled: list[Callable[[], None]] | None = None
        self._on_undelivered: Callable[[], None] | None = None
        self.rpc = rpc = handler.rpc
        self.loop = loop = calls.loop
        self.metadata = head.metadata
        """The request's headers: lower-case keys, the first value of each."""
        owner = stream.owner
        self.peer = owner.peer
        """`host:port` of the client's connection."""
        self.packed_host = owner.packed_host
        """The same address in the bytes of a stored message."""
        self._timeout = timeout = head.timeout_seconds
        self._deadline = None if timeout is None else loop.time() + timeout
        """The loop's time when the client gives up; `None` if it never does."""
        self.cancelled = False
        """The client cancelled the call, its connection closed, or its deadline is past."""
        self.is_ended = False
        self.notes: dict[str, str] | None = None
        """What watchers see beside the reply: what the server did that the reply does not say."""
        self.most_bytes = rpc.most_bytes or calls.send_bytes
        self.needs_end = rpc.kind is not _BIDI
        if not self.needs_end:
            self._open_both_ways()

    @property
    def client_id(self) -> str:
        return self.metadata.get("x-mq-client-id", "")

    @property
    def language(self) -> str:
        """As the client says it, in capitals: JAVA, PYTHON."""
        return self.metadata.get("x-mq-language", "")

    @property
    def remaining_seconds(self) -> float | None:
        """Time until the client gives up; `None` if it never does."""
        return None if self._deadline is None else self._deadline - self.loop.time()

    # -- from the client

    def on_message(self, data: bytes) -> None:
        if self._receiver is not None:
            message = self._decoded(data)
            if message is not None and not self._is_command_kept(message, data):
                self._on_command(message)
        elif self._data is not None:
            self._end_badly(RpcFailed(GrpcStatus.INTERNAL, "Too many requests"))
        else:
            self._data = data

    def on_half_close(self) -> None:
        if self._receiver is not None:
            self._close_receiver()
            self.end()
        elif self._data is None:
            self._end_badly(RpcFailed(GrpcStatus.INTERNAL, "Half-closed without a request"))
        elif (request := self._decoded(self._data)) is not None:
            data, self._data = self._data, None
            client = self._watched_client()
            if client is not None:
                self._watched = client.register(
                    self.rpc, request, data, lambda: self._proceed(request), self._write, self._first_half
                )
                if client.on_request(self._watched.command):
                    self._start_deadline()
                    return
            self._handle(request)

    def on_cancel(self) -> None:
        self._cancel()
        if self.is_ended and self._stream.owner.closed:
            self.on_undelivered()  # a watcher kept the reply, or cut it

    def on_undelivered(self) -> None:
        if self._on_undelivered is not None:
            self._on_undelivered()

    def on_server_stop(self) -> None:
        """Streams end now; a unary call has its answer soon."""
        if self.rpc.kind is _BIDI:
            self.end()
        elif self.rpc.kind is Kind.SERVER_STREAM:
            self._give_up(GrpcStatus.UNAVAILABLE, "the server stops")

    def _on_command(self, message: Message) -> None:
        """A message of the client on its stream."""
        if self._receiver is not None:
            try:
                self._receiver.received(message)
            except Exception as error:
                self._end_badly(error)

    def _decoded(self, data: bytes) -> Message | None:
        """The message in these bytes; `None` if they ended the call."""
        try:
            return decode(self.rpc.request, data)
        except MalformedMessage as error:
            self._end_badly(RpcFailed(GrpcStatus.INTERNAL, "Invalid protobuf byte sequence"), str(error))
            return None

    def _handle(self, request: Message) -> None:
        handler = self._handler
        try:
            result = handler.function(request, self)
            if result is ANSWERS_WITH_PASS:
                self._calls.wants_pass_end()
            elif result is not ANSWERS_LATER:
                self.answer(result)
            elif not self.is_ended:
                self._start_deadline()
        except Exception as error:
            self._end_badly(error)

    def _open_both_ways(self) -> None:
        self._stream.send_headers()  # clients in Rust wait for them
        try:
            self._receiver = self._handler.function(self)
        except Exception as error:
            self._end_badly(error)
            return
        self._start_deadline()

    def _close_receiver(self) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.closed()

    def _cancel(self) -> None:
        """No reply is wanted any more."""
        self._stop_deadline()
        if self._watched is not None:
            self._watched.client.cancelled(self._watched.command)
        if not self.cancelled and not self.is_ended:
            self.cancelled = True
            callbacks, self._on_cancelled = self._on_cancelled, None
            for callback in callbacks or ():
                callback()
        self._close_receiver()

    # -- deadline

    def _start_deadline(self) -> None:
        if self._timeout is not None and self._deadline_timer is None:
            self._deadline_timer = self._calls.timers.call_later(self._timeout, self._expire, is_event=False)

    def _expire(self) -> None:
        self._deadline_timer = None
        self._give_up(GrpcStatus.DEADLINE_EXCEEDED, "the deadline of the call is past")

    def _give_up(self, status: GrpcStatus, text: str) -> None:
        """End a call that its handler still holds."""
        if not self.is_ended:
            self._cancel()
            self._stream.finish(status, text)

    def _stop_deadline(self) -> None:
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
            self._deadline_timer = None

    # -- from the handler

    def answer(self, reply: Message) -> None:
        """The reply of a unary call; on a stream, one message and its end."""
        if self.is_ended or self.cancelled:
            return
        data = self._encoded(reply)  # if this fails, another reply can be sent
        if self._watched is not None:
            self._watched.replies.append(framed(self.rpc, data))
            self._finish(GrpcStatus.OK, "")
            return
        self._has_ended()
        self._stream.answer(data)

    def answer_stream(self, replies: Sequence[bytes]) -> None:
        """All messages of a stream as bytes, and its end. Their status is OK."""
        if self.is_ended or self.cancelled:
            return
        self._count("OK")
        if self._watched is not None:
            self._watched.replies += [framed(self.rpc, data) for data in replies]
            self._finish(GrpcStatus.OK, "")
            return
        self._has_ended()
        self._stream.answer_all(replies)

    def send(self, message: Message) -> None:
        """One message of a stream, which stays open."""
        if self.is_ended or self.cancelled:
            return
        data = self._encoded(message)
        if self._watched is not None:
            self._watched.replies.append(framed(self.rpc, data))
        else:
            self._stream.send_message(data)

    def command(self, message: Message, shown: Command) -> None:
        """A command of the server on a telemetry stream; `shown` is the broker's request as remoting clients get it."""
        client = self._watched_client()
        if client is None or not client.on_server_request(shown, lambda: self.send(message)):
            self.send(message)

    def end(self) -> None:
        """The end of a stream, with gRPC status OK."""
        if not self.is_ended and not self.cancelled:
            self._finish(GrpcStatus.OK, "")

    def refuse(self, status: GrpcStatus, text: str) -> None:
        """The end of the call with a gRPC status other than OK."""
        if not self.is_ended and not self.cancelled:
            self._calls.watching.answered[self.rpc.name, f"grpc {status.name}"] += 1
            self._finish(status, text)

    def when_cancelled(self, callback: Callable[[], None]) -> None:
        """Call back if the call is cancelled before it ended; at once if it was."""
        if self.cancelled:
            callback()
        elif not self.is_ended:
            if self._on_cancelled is None:
                self._on_cancelled = []
            self._on_cancelled.append(callback)

    def when_undelivered(self, callback: Callable[[], None]) -> None:
        """Call back if the client goes after the call has ended, before all replies were written to its connection."""
        self._on_undelivered = callback

    def _encoded(self, message: Message) -> bytes:
        """The bytes of a reply; the first one of a call is counted."""
        data = message.SerializeToString()
        if not self._is_counted:
            self._count(code_name_of(message))
        return data

    def _count(self, code: str) -> None:
        self._is_counted = True
        self._calls.watching.answered[self.rpc.name, code] += 1

    def _has_ended(self) -> None:
        self.is_ended = True  # before the receiver of a stream hears of its end, which would end the call
        self._on_cancelled = None
        self._stop_deadline()
        self._close_receiver()

    def _finish(self, status: GrpcStatus, text: str) -> None:
        self._has_ended()
        watched = self._watched
        if watched is not None:
            if watched.client.on_reply(watched, status, text, self.notes):
                return
            watched.client.ended(watched.command)
            for data in messages_of(self.rpc, b"".join(watched.replies)):
                self._stream.send_message(data)
        self._stream.finish(status, text)

    def _end_badly(self, error: Exception, detail: str = "") -> None:
        """End the call as this error says: with a gRPC status, with a status in the reply, or as our own mistake."""
        if isinstance(error, RpcFailed):
            if error.status is GrpcStatus.INTERNAL:
                _log.warning("%s of %s: %s", self.rpc.name, self.peer, detail or error.text)
            self.refuse(error.status, error.text)
            return
        if isinstance(error, Refusal):
            error = RpcRefused(code_of(error.code), error.remark)
        elif not isinstance(error, RpcRefused):
            _log.error("%s of %s failed", self.rpc.name, self.peer, exc_info=error)
            error = RpcRefused(Code.INTERNAL_SERVER_ERROR, f"{error}. {type(error).__name__}")
            if self.rpc.service != SERVICE:  # its replies have no status
                self.refuse(GrpcStatus.INTERNAL, error.text)
                return
        self.answer(self.rpc.reply(status=error.status))

    # -- from watchers

    def _watched_client(self) -> WatchedClient | None:
        """The client as watchers see it; `None` without watchers, and for health and reflection."""
        watching = self._calls.watching
        if watching.watch is None or self.rpc.name not in RPC_NUMBERS:
            return None
        return watching.client(self._stream.owner, self.client_id, self.language)

    def _is_command_kept(self, message: Message, data: bytes) -> bool:
        """Whether a watcher keeps a message of the client."""
        client = self._watched_client()
        if client is None:
            return False
        held = client.register(self.rpc, message, data, lambda: self._on_command(message), self._write)
        is_kept = client.on_request(held.command)
        if not is_kept:
            client.ended(held.command)
        return is_kept

    def _proceed(self, request: Message) -> None:
        """A watcher lets the request pass after all."""
        if not self.cancelled and not self.is_ended:
            self._handle(request)

    def _write(self, body: bytes, status: GrpcStatus, text: str) -> None:
        """A watcher's reply, or one that it held back."""
        self._stop_deadline()
        self.is_ended = True
        for data in messages_of(self.rpc, body) if body else ():
            self._stream.send_message(data)
        self._stream.finish(status, text)

    def _first_half(self, body: bytes) -> bytes:
        """Bytes that end in the middle of this reply."""
        return self._stream.first_half(messages_of(self.rpc, body))
