"""One connection of a client to a name server or broker: requests out, replies in, requests of the broker in.

Owned by the event loop. Many requests may be under way; replies are matched by opaque. All frames of one turn of the
loop leave in one write. Bounds: a frame is at most 16 MiB, `MAX_CALLS` requests wait at once, each until it is due, and
`MAX_UNSENT_BYTES` wait for the end of the turn. A connection that was silent for the whole time a request waited is
closed, and the next request opens another (official clientCloseSocketIfTimeout, which closes it even while it answers
other requests). Mirrors `NettyRemotingClient`.
"""

import asyncio
import itertools
import logging
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec
from pocketmq.protocol.errors import FieldError, FrameError, ProtocolError
from pocketmq.protocol.languages import V5_5_0
from pocketmq.protocol.requests.send import SendMessageV2
from pocketmq.protocol.requests.send_frames import SendTemplate, StoredReply, read_stored_reply
from pocketmq.protocol.wire.command import ONEWAY_FLAG, RESPONSE_FLAG, Command, RawBody
from pocketmq.protocol.wire.frame import FrameCutter, encode_frame
from pocketmq.protocol.wire.schema import (
    Reply,
    ReplyT,
    Request,
    RequestBody,
    encode_request_body,
    from_fields,
    read_reply,
    to_fields,
)

from ..errors import CallTimeout, InvalidArgument, NotReachable, RequestRefused, TooManyCalls, UnreadableReply
from ..hooks.rpc_hooks import RPCHook

_log = logging.getLogger(__name__)

CONNECT_TIMEOUT_SECONDS: Final = 3.0
CALL_TIMEOUT_SECONDS: Final = 3.0
LINGER_SECONDS: Final = 3.0
MAX_CALLS: Final = 65536
MAX_UNSENT_BYTES: Final = 64 * 1024
"""Frames beyond this leave before the turn of the loop ends."""
SHORT_WAIT_SECONDS: Final = 0.1
"""A call with a shorter timeout than this does not close the connection when it times out."""

HeaderT = TypeVar("HeaderT", bound=Reply)
Push = Callable[["Connection", Command], None]
"""Called with each request of the server."""


class Call(Protocol):
    """A request under way. The connection calls one of `stored`, `replied` and `failed` with its end, once."""

    due: float
    """When the reply is late, loop time."""
    timeout_seconds: float
    """How long before that the request was sent."""
    request: Request[Any]

    def stored(self, reply: StoredReply) -> bool:
        """The broker stored the message that was sent. False if `replied` must read the reply."""

    def replied(self, reply: Command) -> None:
        """The reply arrived, whatever its code."""

    def failed(self, error: Exception) -> None:
        """There will be no reply: `CallTimeout`, `NotReachable`, or what a hook raised."""


class _FutureCall(msgspec.Struct, eq=False):
    """A call whose end a future gets; a future that is cancelled ignores it."""

    future: asyncio.Future[Command]
    request: Request[Any]
    due: float
    timeout_seconds: float

    def stored(self, reply: StoredReply) -> bool:
        return False

    def replied(self, reply: Command) -> None:
        if not self.future.done():
            self.future.set_result(reply)

    def failed(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class Connection(asyncio.Protocol):
    """Open with `connect`, end with `close`; every waiting call then fails with `NotReachable`."""

    def __init__(
        self,
        address: str,
        on_push: Push | None = None,
        *,
        hooks: Sequence[RPCHook] = (),
        language: str = "PYTHON",
    ) -> None:
        self.address = address
        self.closed = False
        self.lost = asyncio.Event()  # set once the socket is closed, which TLS does a round trip later
        self._on_push = on_push
        self._hooks = hooks
        self._language = language
        self.takes_templates = not hooks
        """Whether frames are made from a template, and replies read by one: no hook looks at the header."""
        self._transport: asyncio.Transport | None = None
        self._cutter = FrameCutter(takes_header=self._takes_header if self.takes_templates else None)
        self._calls: dict[int, Call] = {}
        self._opaque = itertools.count(1)
        self._loop = asyncio.get_running_loop()
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._has_overflowed = False
        self._heard_at = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._writable: asyncio.Event | None = None

    @classmethod
    async def connect(
        cls,
        address: str,
        on_push: Push | None = None,
        *,
        hooks: Sequence[RPCHook] = (),
        tls: ssl.SSLContext | None = None,
        language: str = "PYTHON",
        timeout_seconds: float = CONNECT_TIMEOUT_SECONDS,
    ) -> "Connection":
        """A connection to `host:port`, or `NotReachable`."""
        host, _, port = address.rpartition(":")
        if not (host and port.isascii() and port.isdigit()):
            raise NotReachable(f"cannot connect to {address}: it is not host:port")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_seconds):
                _, connection = await loop.create_connection(
                    lambda: cls(address, on_push, hooks=hooks, language=language),
                    host.strip("[]"),
                    int(port),
                    ssl=tls,
                )
        except (OSError, TimeoutError, ValueError, OverflowError) as error:
            raise NotReachable(f"cannot connect to {address}: {str(error) or 'timed out'}") from error
        return connection

    async def call(
        self,
        request: Request[ReplyT],
        body: RequestBody | None = None,
        *,
        timeout_seconds: float = CALL_TIMEOUT_SECONDS,
    ) -> ReplyT:
        """What the request declares of its reply: the header fields, or the body.

        `RequestRefused` for any code but 0, `NotReachable` if no reply came in time, `UnreadableReply` if it has
        another form. `body` is a value of the declared form, or its bytes.
        """
        return self.read_reply(
            request,
            await self.post(request, encode_request_body(request, body), timeout_seconds=timeout_seconds),
        )

    def post(
        self, request: Request[Any], body: RawBody | None = None, *, timeout_seconds: float
    ) -> asyncio.Future[Command]:
        """Send now; the future gets the reply frame, `CallTimeout` or `NotReachable`. A reply to a cancelled future is
        dropped."""
        future: asyncio.Future[Command] = self._loop.create_future()
        due = self._loop.time() + timeout_seconds
        self.post_call(_FutureCall(future, request, due, timeout_seconds), body)
        return future

    def post_call(self, call: Call, body: RawBody | None = None) -> None:
        """Send its request now; `NotReachable` if it cannot be sent."""
        opaque = self.next_opaque()
        self.post_frame(call, opaque, self._frame(call.request, opaque, 0, body), b"")

    def template(self, request: SendMessageV2) -> SendTemplate | None:
        """For `post_frame` over any connection with this one's language."""
        return SendTemplate.of(request, self._language, V5_5_0)

    def next_opaque(self) -> int:
        """The number of the next request; `NotReachable` if it cannot be sent."""
        if self.closed or self._transport is None:
            raise NotReachable(f"the connection to {self.address} is closed")
        if len(self._calls) >= MAX_CALLS:
            raise TooManyCalls(
                f"{len(self._calls)} requests to {self.address} wait for replies: wait for some before sending more"
            )
        return next(self._opaque) & 0x7FFFFFFF

    def post_frame(self, call: Call, opaque: int, head: bytes, body: bytes) -> None:
        """Send a frame whose head is ready; `opaque` is from `next_opaque`, just before."""
        due = call.due
        self._calls[opaque] = call
        if self._timer is None or due < self._timer_due:
            self._set_timer(due)
        unsent = self._unsent
        if not unsent:
            self._loop.call_soon(self._flush)
        unsent.append(head)
        unsent.append(body)
        self._unsent_bytes += len(head) + len(body)
        if self._unsent_bytes > MAX_UNSENT_BYTES:
            self._flush()

    async def drained(self) -> None:
        """Return once the peer accepts more bytes: for callers that send without waiting for replies. Other tasks run
        once for each `MAX_UNSENT_BYTES`."""
        if self._has_overflowed:
            self._has_overflowed = False
            await asyncio.sleep(0)
        if self._writable is not None and not self.closed:
            await self._writable.wait()

    def notify(
        self, request: Request[Any], body: RawBody | None = None, *, remark: str | None = None
    ) -> None:
        """Send a one-way request; on a closed connection nothing happens."""
        if not self.closed and self._transport is not None:
            opaque = next(self._opaque) & 0x7FFFFFFF
            self._write(self._frame(request, opaque, ONEWAY_FLAG, body, remark))

    def answer(
        self, request: Command, *, code: int = 0, remark: str | None = None, body: RawBody | None = None
    ) -> None:
        """Reply to a request the broker made."""
        if not self.closed and self._transport is not None and not request.is_oneway:
            reply = Command(
                code,
                request.opaque,
                RESPONSE_FLAG,
                remark,
                {},
                body,
                self._language,
                V5_5_0,
                request.header_type,
            )
            self._write(encode_frame(reply))

    def close(self) -> None:
        """End the connection; what was written before still leaves, if the peer accepts it within `LINGER_SECONDS`."""
        if self._transport is None or self.closed:
            return
        self._flush()
        self.closed = True
        has_unsent = self._transport.get_write_buffer_size() > 0
        self._transport.close()
        if has_unsent:
            self._loop.call_later(LINGER_SECONDS, self._transport.abort)

    def abort(self) -> None:
        """Close the socket at once, whether or not the peer has ended its side of TLS."""
        if self._transport is not None:
            self._transport.abort()

    @staticmethod
    def read_reply(request: Request[ReplyT], command: Command) -> ReplyT:
        """What the request returns, header fields or a body; `RequestRefused`, `UnreadableReply`."""
        if command.code != 0:
            raise RequestRefused(command.code, command.remark or "", request.name)
        try:
            return read_reply(request, command.fields, command.body)
        except ProtocolError as error:
            raise UnreadableReply(f"the reply to {request.name} cannot be read: {error}") from error

    @staticmethod
    def read_fields(reply_type: type[HeaderT], command: Command, request_name: str) -> HeaderT:
        """The header fields of a reply, whatever its code; `UnreadableReply`."""
        try:
            return from_fields(reply_type, command.fields)
        except FieldError as error:
            raise UnreadableReply(f"the reply to {request_name} cannot be read: {error}") from error

    def _frame(
        self, request: Request[Any], opaque: int, flag: int, body: RawBody | None, remark: str | None = None
    ) -> bytes:
        fields = to_fields(request)
        for hook in self._hooks:
            hook.before_request(self.address, request, fields, body)
        frame = Command(request.code, opaque, flag, remark, fields, body, self._language, V5_5_0)
        try:
            return encode_frame(frame)
        except FrameError as error:
            raise InvalidArgument(f"{request.name}: {error}") from error

    # -- writing and timing

    def _write(self, frame: bytes) -> None:
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(frame)
        self._unsent_bytes += len(frame)
        if self._unsent_bytes > MAX_UNSENT_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._unsent or self._transport is None:
            return
        if self._unsent_bytes > MAX_UNSENT_BYTES:
            self._has_overflowed = True
        frames, self._unsent, self._unsent_bytes = self._unsent, [], 0
        if not self._transport.is_closing():
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._loop.call_at(due, self._expire)

    def _expire(self) -> None:
        """One timer for all calls: it fires when the earliest of them may be due."""
        self._timer = None
        now = self._loop.time()
        late = [self._calls.pop(opaque) for opaque, call in [*self._calls.items()] if call.due <= now]
        if any(
            call.timeout_seconds > SHORT_WAIT_SECONDS and self._heard_at <= call.due - call.timeout_seconds
            for call in late
        ):
            _log.warning("%s does not answer, giving up the connection", self.address)
            self.close()
        for call in late:
            text = f"{self.address} did not answer {call.request.name} within {call.timeout_seconds:.3g} s"
            call.failed(CallTimeout(text))
        if self._calls and not self.closed:
            self._set_timer(min(call.due for call in self._calls.values()))

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its class

    def data_received(self, data: bytes) -> None:
        calls, self._heard_at = self._calls, self._loop.time()
        for command in self._cutter.feed(data):
            if command.is_reply:
                call = calls.pop(command.opaque, None)
                if call is not None:
                    if self._hooks:
                        self._run_hooks(call, command)
                    else:
                        call.replied(command)
            elif self._on_push is not None:
                self._on_push(self, command)
        if self._cutter.failure is not None:
            _log.warning("closing the connection to %s: %s", self.address, self._cutter.failure)
            self.close()

    def _takes_header(self, header: bytes) -> bool:
        """Whether this is the reply to a send of a template, which has its result then."""
        reply = read_stored_reply(header)
        if reply is None:
            return False
        call = self._calls.get(reply.opaque)
        if call is None or not call.stored(reply):
            return False
        del self._calls[reply.opaque]
        return True

    def _run_hooks(self, call: Call, command: Command) -> None:
        """What a hook raises is the outcome of the call it looked at."""
        try:
            for hook in self._hooks:
                hook.after_response(self.address, call.request, command)
        except Exception as error:
            call.failed(error)
        else:
            call.replied(command)

    def pause_writing(self) -> None:
        self._writable = asyncio.Event()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.lost.set()
        self.resume_writing()
        if self._timer is not None:
            self._timer.cancel()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.failed(NotReachable(f"the connection to {self.address} ended"))
