"""One TCP connection, opened by either side: requests in, replies out, and our own requests to the peer.

asyncio calls this class. One pass handles up to sixteen of the received frames, or fewer that take `pass_seconds`, and
answers them with one write. The rest waits for the next loop iteration, also if the peer has closed its side, so that
the peer can process the first replies meanwhile, and other connections get their share. Large bodies are written as
views, without a copy. `dispatch.py` has the table of handlers. Only the event loop's thread touches the state.

Limits (`server_context.py`): a frame is at most 16 MiB. We stop reading from a peer that is too far ahead or does not
read our replies; in the second case we also stop handling what it has already sent. At most `Limits.tasks` handlers and
`Limits.calls` requests of ours run at once. A connection without traffic for `Limits.idle_seconds` is closed.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from types import CoroutineType
from typing import Any, Final, TypeVar, cast

from pocketmq.core.sends import End, RequestCutter, Send
from pocketmq.protocol.bodies.body import Body
from pocketmq.protocol.errors import BodyError, FieldError, FrameError
from pocketmq.protocol.wire.command import JSON, ONEWAY_FLAG, RESPONSE_FLAG, Command, RawBody
from pocketmq.protocol.wire.frame import FrameCutter, encode_prefix
from pocketmq.protocol.wire.response_codes import ResponseCode
from pocketmq.protocol.wire.schema import Reply, Request, from_fields, read_reply, to_fields

from ..config.addresses import NO_HOST, packed_host
from ..errors import OVERLOAD, PeerError, Refusal
from .dispatch import HELD, Answer, Handler, Result
from .listening import descriptor_of
from .server_context import AHEAD_BYTES, PASS_BYTES, PASS_FRAMES, Calls, ServerContext
from .watch import ReplyBody

_log = logging.getLogger("pocketmq.network")

SMALL_BODY_BYTES: Final = 1024
"""Bodies up to this size are joined with their header, and so are the pieces of a body if their mean size is at most
this: handing a buffer to the socket costs more than copying it. Larger ones keep their own buffer."""

MAX_REMARK: Final = 1000
"""Characters of a remark that says which error was raised; the error may quote the peer."""

ReplyT = TypeVar("ReplyT")


class Connection(asyncio.Protocol):
    """Mirrors what `NettyRemotingAbstract` does for one channel. Owned by its `Server`."""

    def __init__(self, server: ServerContext) -> None:
        self._server = server
        self.loop = server.loop
        self._handlers = server.handlers.table
        self._guard = server.guard
        self.watch = server.watch
        self._json_replies = server.json_replies
        self.calls = Calls(server)
        self._sends = server.sends
        self._cutter: FrameCutter = (
            FrameCutter() if self._sends is None or self._guard is not None else RequestCutter()
        )
        self._transport: asyncio.Transport | None = None
        self._out: list[RawBody] = []
        self._out_bytes = 0
        self._unhandled: deque[Command | Send | End] = deque()
        self._ahead_bytes = 0
        self._is_scheduled = False
        self._is_unread = False
        self._has_peer_closed = False
        self._in_pass = False
        self._at_pass_end: list[Callable[[], None]] = []
        self._flush_scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.peer = ""
        self.packed_host = NO_HOST
        self.last_activity = 0.0
        self.closed = False

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's has the methods, but another class
        self._transport.set_write_buffer_limits(high=self._server.limits.unread_bytes)
        host = transport.get_extra_info("peername") or ("", 0)
        self.packed_host = packed_host(host[0], host[1])
        self.peer = f"{host[0]}:{host[1]}"
        self.last_activity = self.loop.time()
        self._server.connected(self, descriptor_of(transport))
        if self.watch is not None:
            self.watch.opened(self)

    def data_received(self, data: bytes) -> None:
        self.last_activity = self.loop.time()
        self._unhandled += self._cutter.feed(data)
        if not self._is_scheduled and not self._is_unread:
            self._handle()
            return
        self._ahead_bytes += len(data)
        if self._ahead_bytes > AHEAD_BYTES and self._transport is not None:
            self._transport.pause_reading()

    def _handle(self) -> None:
        """One pass. Frames beyond its limits wait for the next loop iteration."""
        unhandled, left = self._unhandled, PASS_FRAMES
        until = time.perf_counter() + self._server.limits.pass_seconds
        self._in_pass = True
        try:
            while unhandled and left and self._out_bytes <= PASS_BYTES:
                left -= 1
                command = unhandled.popleft()
                if isinstance(command, (Send, End)):
                    left -= self._run_received(command, left)
                elif command.flag & RESPONSE_FLAG:
                    self.calls.reply_received(command)
                else:
                    self.request_received(command)
                    if time.perf_counter() > until:
                        break
            while self._at_pass_end:
                self._at_pass_end.pop()()
        finally:
            self._in_pass = False
            is_long = self._out_bytes > PASS_BYTES
            # A reply to a peer that has closed both sides ends the connection, and requests would be lost.
            if self._out and (is_long or not self._has_peer_closed or not unhandled):
                self._flush()
        if unhandled:
            if is_long and self._transport is not None:
                self._transport.pause_reading()
            if not self._is_scheduled:
                self._is_scheduled = True
                self.loop.call_soon(self._run_scheduled)
        elif self._cutter.failure is not None:
            _log.warning("closing %s: %s", self.peer, self._cutter.failure)
            self.close()

    def _run_scheduled(self) -> None:
        self._is_scheduled = False
        try:
            self._go_on()
        except Exception:
            # An error in `data_received` ends the connection. One here would leave it open with requests that nobody
            # goes on with.
            if self._transport is not None:
                self._transport.abort()
            raise

    def _go_on(self) -> None:
        """Handle the frames that an earlier pass left, then resume reading; do neither while the peer does not read."""
        transport = self._transport
        if self._is_unread or transport is None or transport.is_closing():
            return
        if self._unhandled:
            self._handle()
        if self._has_peer_closed and (self._is_unread or not self._unhandled):
            self.close()
        elif not (self._has_peer_closed or self._unhandled or self._is_unread or transport.is_closing()):
            self._ahead_bytes = 0
            transport.resume_reading()

    def pause_writing(self) -> None:
        self._is_unread = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._is_unread = False
        self._go_on()

    def eof_received(self) -> bool:
        """Go on with what the peer sent before it closed, if it sent more: a one-way sender writes and closes."""
        self._has_peer_closed = True
        return bool(self._unhandled) and not self._is_unread

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._unhandled.clear()
        for task in self._tasks:
            task.cancel()
        self.calls.fail(f"connection to {self.peer} closed")
        if self.watch is not None:
            self.watch.closed(self)
        self._server.disconnected(self)

    # -- answering requests

    def _run_received(self, first: Any, max_others: int) -> int:
        """Handle a send or the end of a transaction, and at most so many of those behind it; returns how many those
        were. The sends are stored together. (The official broker handles the two in different threads.)"""
        unhandled, count, watch = self._unhandled, 0, self.watch
        sends, ends = ([first], []) if first.__class__ is Send else ([], [first])
        while count < max_others and unhandled and isinstance(unhandled[0], (Send, End)):
            frame: Any = unhandled.popleft()
            (sends if frame.__class__ is Send else ends).append(frame)
            count += 1
        try:
            if watch is not None:  # watchers see ends decoded, and sends if they need to
                passing = sends if watch.lets_pass(self, sends) else []
                sends, ends, decoded = passing, [], ends if passing else [*ends, *sends]
                for frame in decoded:
                    self.request_received(frame.decode())
            if self._sends is not None:
                self._sends(self, sends, ends)
        except FrameError as error:  # a value at its place made the header unreadable
            self._cutter.failure = error
            self._unhandled.clear()
        return count

    def at_pass_end(self, complete: Callable[[], None]) -> None:
        """Call it once the requests of this pass are handled, before replies are written; now outside of a pass."""
        if not self._in_pass:
            complete()
        elif complete not in self._at_pass_end:
            self._at_pass_end.append(complete)

    def refuse(self, command: Command, error: Exception) -> None:
        """Answer a request that raised an error, as for an error in a handler."""
        self.answer(command, self._refusal(command, error))

    def write_replies(self, frames: Sequence[Send], replies: Sequence[bytes]) -> None:
        """Queue the replies to these sends: whole frames, in their order."""
        if self.closed:
            return
        self._out += replies
        self._schedule_flush()
        if self.watch is not None and self.watch.exchanged is not None:
            self.watch.exchanged(self, frames, replies)

    def write_frame(self, frame: bytes) -> None:
        """Queue a whole frame, which no watcher sees."""
        if not self.closed:
            self._out.append(frame)
            self._schedule_flush()

    def _schedule_flush(self) -> None:
        if not self._in_pass and not self._flush_scheduled:
            self._flush_scheduled = True
            self.loop.call_soon(self._flush)

    def request_received(self, command: Command) -> None:
        """Show a request to the watchers, and handle it unless one of them takes it."""
        if self.watch is None or not self.watch.received(self, command):
            self.dispatch(command)

    def dispatch(self, command: Command) -> None:
        if self._guard is not None:
            try:
                self._guard(command, self.peer)
            except Exception as error:
                # In the 4.9 line access control is a hook. A failing hook is answered in JSON.
                command.header_type = JSON
                self.answer(command, self._refusal(command, error))
                return
        handler = self._handlers.get(command.code)
        if handler is None:
            self._server.unknown_code(command.code, self.peer)
            remark = f" request type {command.code} not supported"
            self.answer(command, Answer(code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark))
            return
        try:
            request = from_fields(handler.request_type, command.fields)
            if handler.call_type is not None:
                result = handler.function(handler.part, request, handler.call_type(self, command))
            else:
                result = handler.function(handler.part, request)
        except Exception as error:
            result = self._refusal(command, error)
        if type(result) is CoroutineType:
            self._start(command, handler, result)
        elif result is not HELD:
            self.answer(command, result)

    def answer(self, command: Command, result: Result) -> None:
        """Write the reply to `command`: at the end of this pass, or in the next loop iteration. Instead of one that
        cannot be written, because it is longer than a frame for example, the reason is sent."""
        if self.closed or command.flag & ONEWAY_FLAG:
            return
        try:
            self._answer(command, result)
        except Exception as error:
            self._answer(command, self._refusal(command, error))

    def _answer(self, command: Command, result: Result) -> None:
        code, remark = 0, None
        body: RawBody | Sequence[RawBody] | None = None
        fields: dict[str, str] = {}
        if isinstance(result, Answer):
            code, remark, body = result.code, result.remark, result.body
            if result.reply is None:
                fields = result.fields or fields
            else:
                fields = to_fields(result.reply)
                if result.fields is not None:
                    fields.update(result.fields)
        elif isinstance(result, Reply):
            fields = to_fields(result)
        elif isinstance(result, Body):
            body = result.encode()
        reply = self.reply_to(command, code, remark, fields)
        if self.watch is None or not self.watch.answering(self, command, reply, body):
            self.write(reply, body)

    def reply_to(self, command: Command, code: int, remark: str | None, fields: dict[str, str]) -> Command:
        """A reply without body, in the header form of this server."""
        return Command(
            code,
            command.opaque,
            RESPONSE_FLAG,
            remark,
            fields,
            None,
            "JAVA",
            self._server.version,
            JSON if self._json_replies else command.header_type,
        )

    def reply(self, command: Command, reply: Command, body: ReplyBody) -> None:
        """Send a reply that a watcher held back."""
        if not self.closed and (self.watch is None or not self.watch.answering(self, command, reply, body)):
            self.write(reply, body)

    def write(self, command: Command, body: ReplyBody = None) -> None:
        """Queue one frame; all frames of one pass are written together."""
        out = self._out
        if body is None:
            out.append(encode_prefix(command, 0))
        else:
            pieces = (body,) if isinstance(body, bytes | memoryview) else body
            size = sum(map(len, pieces))
            prefix = encode_prefix(command, size)
            self._out_bytes += size
            if size <= SMALL_BODY_BYTES * len(pieces):
                out.append(b"".join((prefix, *pieces)))
            else:
                out.append(prefix)
                out += pieces
        self._schedule_flush()

    def _flush(self) -> None:
        self._flush_scheduled = False
        self._out_bytes = 0
        out = self._out
        transport = self._transport
        if not out or transport is None or transport.is_closing():
            out.clear()
            return
        self._out = []
        if len(out) == 1:
            transport.write(out[0])
        else:
            transport.writelines(out)

    def _start(self, command: Command, handler: Handler, result: Coroutine[Any, Any, Result]) -> None:
        if len(self._tasks) >= self._server.limits.tasks:
            result.close()
            self.answer(command, Answer(code=ResponseCode.SYSTEM_BUSY, remark=OVERLOAD))
            return
        name = f"{handler.request_type.name} of {self.peer}"
        task = self.loop.create_task(self._finish(command, result), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, command: Command, coroutine: Coroutine[Any, Any, Result]) -> None:
        result: Result
        try:
            result = await coroutine
        except Exception as error:
            result = self._refusal(command, error)
        if result is not HELD:
            self.answer(command, result)

    def _refusal(self, command: Command, error: Exception) -> Answer:
        if isinstance(error, Refusal):
            return Answer(code=error.code, remark=error.remark)
        command.header_type = JSON  # 4.9.7 answers failures in JSON, even to a binary header
        remark = f"{type(error).__name__}: {error}"[:MAX_REMARK]
        if not isinstance(error, FieldError | BodyError):
            _log.error(
                "code %d of %s, opaque %d: %s",
                command.code,
                self.peer,
                command.opaque,
                remark,
                exc_info=None if isinstance(error, FrameError) else error,
            )
        return Answer(code=ResponseCode.SYSTEM_ERROR, remark=remark)

    # -- our own requests to the peer

    async def call(
        self, request: Request[ReplyT], body: RawBody | None = None, *, timeout_seconds: float
    ) -> tuple[Command, ReplyT]:
        """Send a request and wait for its reply: the frame, and what the request declares of it.

        Raises `Refusal` with the peer's code and remark if the peer refused, `PeerError` if no reply arrived.
        """
        command = await self.exchange(request, body, timeout_seconds=timeout_seconds)
        if command.code != ResponseCode.SUCCESS:
            raise Refusal(command.code, command.remark or "")
        return command, read_reply(request, command.fields, command.body)

    async def exchange(
        self, request: Request[Any], body: RawBody | None = None, *, timeout_seconds: float
    ) -> Command:
        """Send a request and wait for the reply frame, whatever its code. `PeerError` if none arrives."""
        if self.closed or not self.calls.can_call():
            raise PeerError(f"cannot send to {self.peer}")
        try:
            return await self.calls.exchange(
                self._write_request, request, body, timeout_seconds=timeout_seconds
            )
        except TimeoutError:
            reason = f"{self.peer} did not answer {request.name} in {timeout_seconds:g} s"
            raise PeerError(reason) from None

    def notify(self, request: Request[Any], body: RawBody | None = None) -> None:
        """Send a one-way request; it is dropped if the connection is closed or the peer does not read."""
        if self.closed or self._transport is None:
            return
        if self._transport.get_write_buffer_size() <= self._server.limits.unread_bytes:
            self._write_request(self.calls.command(request, ONEWAY_FLAG), body)

    def _write_request(self, command: Command, body: RawBody | None) -> None:
        if self.watch is None or not self.watch.calling(self, command, body):
            self.write(command, body)

    # -- ending

    def wrap_transport(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> None:
        """Put a transport between this connection and its socket: a watcher slows or cuts what is written."""
        if self._transport is not None:
            self._flush()
            self._transport = wrap(self._transport)

    def close(self) -> None:
        """Write what is queued, then close."""
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        """Close at once; the peer loses what it has not read yet."""
        if self._transport is not None:
            self._transport.abort()
