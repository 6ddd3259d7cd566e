"""One call on its connection: DATA in, replies and trailers out, both under the windows of flow control.

Also what a connection needs of its surroundings: the program above it, and the port that it belongs to.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec

from .frames import DATA, WINDOW_MAX, ConnectionFault, ErrorCode, StreamFault, head, rst_stream, window_update
from .framing import PREFIX, PREFIX_BYTES, MessageDeframer, MessageRefused, is_single_message
from .headers import RequestHead, answer_frames, headers_frame, trailers_frame
from .limits import Limits, MemoryBudget
from .outgoing import JOINED_STREAM_BYTES, Outgoing

RECEIVE_WINDOW: Final = 1_048_576
"""How much a client may send on one stream before it hears of us: the official server's value."""
MESSAGES_AT_ONCE: Final = 16
"""Of one frame; a message of a telemetry stream takes up to 0.3 ms."""
_WINDOW_UPDATE_BYTES: Final = RECEIVE_WINDOW // 2
"""The window is opened again when so much was used."""


class Owner(Protocol):
    """The connection of a call."""

    loop: asyncio.AbstractEventLoop
    peer: str
    packed_host: bytes
    closed: bool

    def wrap_transport(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> None:
        """Put a transport between the connection and its socket."""

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def close(self) -> None:
        """Write what is queued, then close."""

    def abort(self) -> None: ...


class Exchange(Protocol):
    """One call, as its stream sees it. After `finish` only `on_undelivered` is called, after `on_cancel` nothing."""

    most_bytes: int
    """The longest message that the client may send."""
    needs_end: bool
    """Whether nothing happens before the client has closed its side: all but streams of both sides."""

    def on_message(self, data: bytes) -> None:
        """A whole message arrived."""

    def on_half_close(self) -> None:
        """The client sends no more messages."""

    def on_cancel(self) -> None:
        """The client wants no reply any more, or its connection is gone."""

    def on_undelivered(self) -> None:
        """The call has finished, but the client, or its connection, has gone before all replies were written."""

    def on_server_stop(self) -> None:
        """End the call now, if it would wait for something."""


class Service(Protocol):
    """The program above a port. Called on the loop; none of its methods waits."""

    def opened(self, stream: "ServerStream", head: RequestHead) -> Exchange | None:
        """A call begins; `None` if it was refused and ended at once."""

    def connection_opened(self, owner: Owner) -> None:
        """A client has connected."""

    def pass_begins(self) -> None:
        """A connection begins to handle what it has read."""

    def pass_ends(self) -> None:
        """It has handled it: what calls of one pass do together is done now."""

    def connection_closed(self, owner: Owner) -> None:
        """A connection is gone, after its calls were cancelled."""


class ConnectionOwner(Protocol):
    """The port, as its connections see it."""

    loop: asyncio.AbstractEventLoop
    service: Service
    limits: Limits
    memory: MemoryBudget

    def connected(self, connection: Any, descriptor: int) -> None: ...

    def disconnected(self, connection: Any) -> None: ...


class ServerStream(msgspec.Struct, eq=False):
    """Owned by its connection, which calls everything above `send_headers`."""

    _out: Outgoing
    id: int
    window: int
    """What the client still accepts on this stream; negative after it made its windows smaller."""
    owner: Owner
    exchange: Exchange | None = None
    is_half_closed: bool = False
    """The client sends nothing more."""
    is_closed: bool = False
    """Ended in both directions, or reset."""
    queued_bytes: int = 0
    """Of replies, each until all of it was sent: so long its bytes are kept."""
    _held_bytes: int = 0
    """Of whole messages that wait for the end of the request."""
    unfinished_bytes: int = 0
    """Of the request, until its end has arrived."""
    _content_left: int | None = None
    """What is missing of the content-length, if the headers had one."""
    _encoding: str = "identity"
    _most_bytes: int = 0
    _deframer: MessageDeframer | None = None
    """Once a frame was not just one whole message."""
    _messages: deque[bytes] | None = None
    """Those of the newest frame that are not handled; a frame of 16 KiB may have thousands."""
    _rest: tuple[int, bool] = (0, False)
    """Bytes of that frame, and whether it ends the request."""
    _receive_window: int = RECEIVE_WINDOW
    _unacknowledged: int = 0
    _queue: deque[bytes] | None = None
    """Replies that wait for a window or for the socket; most calls need none."""
    _sent: int = 0
    """Of the first of them."""
    _ending: tuple[int, str] | None = None
    _finished: Exchange | None = None
    """The exchange of a call that has finished, while replies wait for a window."""
    _has_sent_headers: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether replies wait for a window or for the socket."""
        return bool(self._queue)

    @property
    def is_unfinished(self) -> bool:
        """Whether the call waits for the rest of its request."""
        exchange = self.exchange
        return exchange is not None and exchange.needs_end and not self.is_half_closed

    # -- from the client

    def begin(self, exchange: Exchange, head: RequestHead, most_bytes: int) -> None:
        """The call is open; its messages may be so long, if its program allows it."""
        self.exchange = exchange
        self._encoding = head.encoding
        self._content_left = head.content_length
        self._most_bytes = min(most_bytes, exchange.most_bytes)

    def data_received(self, data: bytes, frame_bytes: int, *, is_end: bool) -> None:
        """One DATA frame, of so many bytes with its padding. Raises `ConnectionFault` or `StreamFault`."""
        self._receive_window -= frame_bytes
        if self._receive_window < 0:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, f"stream {self.id} is beyond its window")
        if self._content_left is not None:
            self._content_left -= len(data)
            if self._content_left < 0:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "more DATA than its content-length")
        exchange = self.exchange
        if exchange is not None:
            if self._deframer is None and is_single_message(data, self._most_bytes):  # nearly always
                exchange.on_message(data[PREFIX_BYTES:])
                if exchange.needs_end and not is_end and self.exchange is not None:
                    self._held_bytes += len(data)
                    self._set_unfinished(self._held_bytes)
            elif data and not self._cut(data):
                return
        if self._messages:
            self._rest = frame_bytes, is_end
        else:
            self._frame_handled(frame_bytes, is_end=is_end)

    @property
    def is_behind(self) -> bool:
        """Whether messages of a frame are not handled: `resume` before the next frame."""
        return bool(self._messages)

    def resume(self) -> None:
        """Handle some more. Raises `StreamFault`."""
        self._handle_some()
        if not self._messages:
            size, is_end = self._rest
            self._frame_handled(size, is_end=is_end)

    def _frame_handled(self, frame_bytes: int, *, is_end: bool) -> None:
        if is_end:
            self.half_close()
        elif not self.is_closed:
            self._unacknowledged += frame_bytes
            if self._unacknowledged >= _WINDOW_UPDATE_BYTES:
                self._out.write(window_update(self.id, self._unacknowledged))
                self._receive_window += self._unacknowledged
                self._unacknowledged = 0

    def _cut(self, data: bytes) -> bool:
        """Find the messages in a frame; False if one of them ends the call."""
        if self._deframer is None:
            self._deframer = MessageDeframer(self._encoding, self._most_bytes)
        try:
            messages = self._deframer.feed(data)
        except MessageRefused as refusal:
            self.refuse_message(refusal.status, refusal.text)
            return False
        assert self.exchange is not None
        if self.exchange.needs_end:
            self._held_bytes += sum(map(len, messages))
        self._set_unfinished(self._held_bytes + self._deframer.unfinished_bytes)
        self._messages = deque(messages)
        self._handle_some()
        return True

    def _handle_some(self) -> None:
        messages = self._messages
        for _ in range(MESSAGES_AT_ONCE):
            if messages and self.exchange is not None:
                self.exchange.on_message(messages.popleft())
        if self.exchange is None:
            self._messages = None

    def half_close(self) -> None:
        """The client sends nothing more. Raises `StreamFault`."""
        self.is_half_closed = True
        if self._content_left:
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "less DATA than its content-length")
        if self.exchange is not None:
            if self._deframer is not None and self._deframer.unfinished_bytes:
                self.refuse_message(13, "Encountered end-of-stream mid-frame")
            else:
                self._set_unfinished(0)
                self.exchange.on_half_close()

    def server_stops(self) -> None:
        """The program ends calls that would stay open."""
        if self.exchange is not None:
            self.exchange.on_server_stop()

    def window_changed(self, change: int) -> bool:
        """The client changed the window of the stream; False if it is beyond 2^31-1 now."""
        self.window += change
        if self._queue:
            self._out.window_opened(self)
        return self.window <= WINDOW_MAX

    def cancel(self) -> None:
        """The client reset the stream, or its connection is gone."""
        self.is_closed = True
        self._queue = self._messages = None
        self._dequeue(self.queued_bytes)
        self._abandon()
        finished, self._finished = self._finished, None
        if finished is not None:
            finished.on_undelivered()

    def _set_unfinished(self, unfinished_bytes: int) -> None:
        change = unfinished_bytes - self.unfinished_bytes
        if change:
            self.unfinished_bytes = unfinished_bytes
            self._out.add_unfinished(change)

    def refuse_message(self, status: int, text: str) -> None:
        """End the call because of a message that is not complete."""
        self._abandon()
        self.finish(status, text)

    def _abandon(self) -> None:
        """The call ends because of the client: the program hears that it is over."""
        self._set_unfinished(0)
        self._deframer = None
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.on_cancel()

    # -- to the client

    def send_headers(self) -> None:
        """Send the headers now; otherwise they leave with the first message."""
        if not self._has_sent_headers and not self.is_closed:
            self._has_sent_headers = True
            self._out.write(headers_frame(self.id))

    def send_message(self, data: bytes) -> None:
        """Send one message. It waits here while the client's window is closed."""
        if self.is_closed or self._ending is not None:
            return
        self.send_headers()
        size = len(data) + PREFIX_BYTES
        out = self._out
        if (
            not self._queue
            and size <= self.window
            and size <= out.window
            and size <= out.max_frame
            and not out.is_unread
        ):
            self.window -= size
            out.window -= size
            out.write(head(DATA, 0, self.id, size) + PREFIX.pack(0, len(data)) + data)
            return
        if self._queue is None:
            self._queue = deque()
        self._queue.append(PREFIX.pack(0, len(data)) + data)
        self.queued_bytes += size
        out.enqueue(self, size)

    def answer(self, data: bytes) -> None:
        """The one message of a call and its end with OK, in one piece where nothing has to wait."""
        size, out = len(data) + PREFIX_BYTES, self._out
        if (
            self._has_sent_headers
            or self.is_closed
            or self._ending is not None
            or size > self.window
            or size > out.window
            or size > out.max_frame
            or out.is_unread
        ):
            self.send_message(data)
            self.finish(0, "")
            return
        out.window -= size
        self.exchange = None
        self.is_closed = True
        out.write(answer_frames(self.id, data))
        if not self.is_half_closed:
            out.write(rst_stream(self.id, ErrorCode.NO_ERROR))
        out.ended(self)

    def answer_all(self, messages: Sequence[bytes]) -> None:
        """The messages of a call and its end with OK, in as few frames as hold them where nothing has to wait."""
        size, out = sum(map(len, messages)) + PREFIX_BYTES * len(messages), self._out
        room = min(self.window, out.window, JOINED_STREAM_BYTES)
        if self._queue or size > room or out.is_unread or self.is_closed:
            for data in messages:
                self.send_message(data)
        else:
            self.send_headers()
            self.window -= size
            out.window -= size
            whole = b"".join([piece for data in messages for piece in (PREFIX.pack(0, len(data)), data)])
            for at in range(0, size, out.max_frame):
                piece = whole[at : at + out.max_frame]
                out.write(head(DATA, 0, self.id, len(piece)))
                out.write(piece)
        self.finish(0, "")

    def finish(self, status: int, text: str) -> None:
        """End the call with a gRPC status, after the messages."""
        if self.is_closed or self._ending is not None:
            return
        exchange, self.exchange = self.exchange, None
        self._ending = status, text
        if not self._queue:
            self._end()
        else:
            self._finished = exchange

    def first_half(self, messages: Sequence[bytes]) -> bytes:
        """Frames that end in the middle of these messages, for a test that closes the connection there."""
        data = b"".join(PREFIX.pack(0, len(one)) + one for one in messages)
        data = data[: self._out.max_frame]
        headers = b"" if self._has_sent_headers else headers_frame(self.id)
        return headers + head(DATA, 0, self.id, len(data)) + data[: len(data) // 2]

    def send_queued(self) -> None:
        """Send one frame of what waits; the windows are open."""
        out, queue = self._out, self._queue
        assert queue
        whole = queue[0]
        piece = memoryview(whole)[self._sent :][: min(self.window, out.window, out.max_frame)]
        size = len(piece)
        self.window -= size
        out.window -= size
        self._sent += size
        if self._sent == len(whole):
            queue.popleft()
            self._sent = 0
            self._dequeue(len(whole))
        out.write(head(DATA, 0, self.id, size))
        out.write(piece)
        if not queue and self._ending is not None:
            self._end()

    def _dequeue(self, size: int) -> None:
        self.queued_bytes -= size
        self._out.dequeue(self, size)

    def _end(self) -> None:
        assert self._ending is not None
        status, text = self._ending
        self._finished = None
        self.is_closed = True
        self._set_unfinished(0)
        self._out.write(trailers_frame(self.id, status, text, is_only=not self._has_sent_headers))
        if not self.is_half_closed:
            self._out.write(rst_stream(self.id, ErrorCode.NO_ERROR))  # the client need not send the rest
        self._out.ended(self)
