"""One connection of a client: frames in, streams, settings and windows, the end. The protocol class that asyncio calls.

One pass handles at most `PASS_REQUESTS` requests of what was read, and no more once it has taken `pass_seconds`; it
answers them with one write. The rest waits for the next loop iteration, so that other connections get their share.
Limits (`limits.Limits`): calls at once, bytes of requests that are not complete, the header list, replies that the
client does not read. A client that breaks a rule of HTTP/2, or floods, gets GOAWAY with the reason, and one line is
logged.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final, cast

from pocketmq.broker.config.addresses import packed_host
from pocketmq.broker.network.listening import descriptor_of

from ..hpack.decoding import Field
from . import frames
from .frames import FIRST_WINDOW, HEAD, HEAD_BYTES, STREAM_MASK, ConnectionFault, ErrorCode, StreamFault
from .framing import RESOURCE_EXHAUSTED
from .header_blocks import HEADER_LIST_BYTES, HeaderBlocks
from .headers import HeadersRefused, check_trailers, read_head, refusal_frame
from .limits import CONTROL_FRAMES, FRAMES_OF_A_CALL, RESETS, SETTINGS, SMALL_WINDOW, RateLimit
from .outgoing import WRITE_BYTES, Outgoing
from .server_stream import RECEIVE_WINDOW, ConnectionOwner, ServerStream

_log = logging.getLogger("pocketmq.grpc")

CONNECTION_RECEIVE_WINDOW: Final = 4 * RECEIVE_WINDOW
PASS_REQUESTS: Final = 16
"""Requests handled in one pass."""
AHEAD_BYTES: Final = 262_144
"""Read from a client while earlier frames wait to be handled; beyond that we stop reading."""


class Http2Connection(asyncio.Protocol):
    """Owned by its port."""

    def __init__(self, port: ConnectionOwner) -> None:
        self._port = port
        self.loop = port.loop
        self.streams: dict[int, ServerStream] = {}
        self.out = Outgoing(port.loop, self.streams, port.memory)
        self.peer = ""
        self.packed_host = b""
        self.last_activity = 0.0
        self.closed = False
        self.is_failed = False
        """It is being closed: what still arrives is ignored."""
        self._blocks = HeaderBlocks()
        self._buffer = b""
        self._at = 0
        """Up to here the buffer is handled."""
        self.has_preface = False
        self._behind: ServerStream | None = None
        """The stream of the last frame, if not all of its messages are handled: no further frame before."""
        self._is_scheduled = False
        self._is_ending = False
        """GOAWAY was sent: no new calls."""
        self._last_stream_id = 0
        self._stream_window = self._receive_window = FIRST_WINDOW
        self._unacknowledged = 0
        self._pass_requests = 0
        self._has_warned = False
        self._resets = RateLimit("cancelled calls", RESETS)
        self._settings = RateLimit("changes of settings", SETTINGS)
        self._controls = RateLimit("control frames", CONTROL_FRAMES)

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.out.transport = cast(asyncio.Transport, transport)
        self.out.transport.set_write_buffer_limits(high=WRITE_BYTES)
        host = transport.get_extra_info("peername") or ("", 0)
        self.peer = f"{host[0]}:{host[1]}"
        self.packed_host = packed_host(host[0], host[1])
        self.last_activity = self.loop.time()
        self._port.connected(self, descriptor_of(transport))
        self._port.service.connection_opened(self)

    def data_received(self, data: bytes) -> None:
        if self.is_failed:
            return
        self.last_activity = self.loop.time()
        left = len(self._buffer) - self._at
        self._buffer = self._buffer[self._at :] + data if left else data
        self._at = 0
        if not self._is_scheduled and not self.out.is_unread:
            self._handle()
        elif len(self._buffer) > AHEAD_BYTES and self.out.transport is not None:
            self.out.transport.pause_reading()

    def pause_writing(self) -> None:
        self.out.pause()
        if self.out.transport is not None:
            self.out.transport.pause_reading()

    def resume_writing(self) -> None:
        self.out.resume()
        self._resume()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = self.is_failed = True
        self._buffer, self._at = b"", 0
        self._cancel_calls()
        self.out.closed()
        self._port.service.connection_closed(self)
        self._port.disconnected(self)

    # -- passes

    def _handle(self) -> None:
        """One pass over what was read."""
        out = self.out
        out.in_pass = True
        self._pass_requests = 0
        has_more = False
        service = self._port.service
        try:
            service.pass_begins()
            try:
                has_more = self._process_frames()
            finally:
                service.pass_ends()
        except ConnectionFault as fault:
            self._fail(fault)
        except Exception:
            _log.exception("closing %s: a request failed", self.peer)
            self._fail(ConnectionFault(ErrorCode.INTERNAL_ERROR, "internal error"))
        finally:
            out.in_pass = False
            out.flush()
        if has_more and not self._is_scheduled:
            self._is_scheduled = True
            self.loop.call_soon(self._resume_scheduled)

    def _resume_scheduled(self) -> None:
        self._is_scheduled = False
        self._resume()

    def _resume(self) -> None:
        transport = self.out.transport
        if self.out.is_unread or self._is_scheduled or transport is None or transport.is_closing():
            return
        self._handle()
        if not self._is_scheduled and not self.out.is_unread and not transport.is_closing():
            transport.resume_reading()

    def _process_frames(self) -> bool:
        """Handle the whole frames in the buffer; True if the pass ended before they did."""
        buffer, at = self._buffer, self._at
        if not self.has_preface:
            if not frames.has_preface(buffer):
                return False
            self.has_preface = True
            self._send_preface()
            at = self._at = len(frames.PREFACE)
            frames.check_first(buffer)
        if not self._caught_up():
            return True
        end, blocks, out = len(buffer), self._blocks, self.out
        until = time.perf_counter() + self._port.limits.pass_seconds
        while end - at >= HEAD_BYTES:
            if self._pass_requests >= PASS_REQUESTS or out.is_unread:
                return True
            size_high, size_low, kind, flags, stream_id = HEAD.unpack_from(buffer, at)
            size = size_high << 8 | size_low
            if size > frames.MAX_FRAME:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"a frame of {size} bytes, at most 16384")
            stop = at + HEAD_BYTES + size
            if stop > end:
                break
            payload = buffer[at + HEAD_BYTES : stop]
            at = self._at = stop
            stream_id &= STREAM_MASK
            if blocks.stream_id and (kind != frames.CONTINUATION or stream_id != blocks.stream_id):
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a header block was interrupted")
            try:
                if kind == frames.DATA:
                    self._data_received(flags, stream_id, payload)
                elif kind == frames.HEADERS:
                    self._headers_received(flags, stream_id, payload)
                else:
                    if kind != frames.WINDOW_UPDATE:
                        self._controls.count(self.last_activity)
                    handle = _CONTROL.get(kind)
                    if handle is not None:  # unknown kinds are ignored
                        handle(self, flags, stream_id, payload)
            except StreamFault as fault:
                self._reset(stream_id, fault)
            if self._behind is not None or time.perf_counter() > until:
                return self._behind is not None or self._at < end
        return False

    def _caught_up(self) -> bool:
        """Handle more of the last frame's messages; True if there are none left."""
        stream = self._behind
        if stream is None:
            return True
        try:
            stream.resume()
        except StreamFault as fault:
            self._reset(stream.id, fault)
        self._behind = stream if stream.is_behind else None
        return self._behind is None

    def _send_preface(self) -> None:
        """Not before the client's: inside TLS nothing can be sent until the handshake is over."""
        first = {
            frames.SETTINGS_MAX_CONCURRENT_STREAMS: self._port.limits.calls,
            frames.SETTINGS_INITIAL_WINDOW_SIZE: RECEIVE_WINDOW,
            frames.SETTINGS_MAX_HEADER_LIST_SIZE: HEADER_LIST_BYTES,
        }
        self.out.write(frames.settings(first))
        self.out.write(frames.window_update(0, CONNECTION_RECEIVE_WINDOW - FIRST_WINDOW))
        self._receive_window = CONNECTION_RECEIVE_WINDOW

    # -- frames

    def _data_received(self, flags: int, stream_id: int, payload: bytes) -> None:
        size = len(payload)
        self._receive_window -= size
        if self._receive_window < 0:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "the connection is beyond its window")
        self._unacknowledged += size
        if self._unacknowledged > CONNECTION_RECEIVE_WINDOW // 2:
            self.out.write(frames.window_update(0, self._unacknowledged))
            self._receive_window += self._unacknowledged
            self._unacknowledged = 0
        is_end = bool(flags & frames.END_STREAM)
        if not size and not is_end:
            self._controls.count(self.last_activity)
        stream = self.streams.get(stream_id)
        if stream is None:
            self._refuse_idle(stream_id, "DATA")
            return
        if stream.is_half_closed:
            raise StreamFault(ErrorCode.STREAM_CLOSED, "DATA after the end of the request")
        if is_end:
            self._pass_requests += 1
        if flags & frames.PADDED:
            payload = frames.unpadded(payload, "DATA")
        stream.data_received(payload, size, is_end=is_end)
        self._behind = stream if stream.is_behind else None
        if self.out.unfinished_bytes > self._port.limits.message_bytes + RECEIVE_WINDOW:
            self._warn_once("too many unfinished requests")
            stream.refuse_message(RESOURCE_EXHAUSTED, "too many unfinished requests on this connection")

    def _headers_received(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = self._blocks.on_headers(flags, stream_id, payload)
        if block is not None:
            self._block_received(stream_id, *block)

    def _continuation_received(self, flags: int, stream_id: int, payload: bytes) -> None:
        block = self._blocks.on_continuation(flags, payload)
        if block is not None:
            self._block_received(stream_id, *block)

    def _block_received(self, stream_id: int, fields: list[Field], is_end: bool) -> None:
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._trailers_received(stream, fields, is_end=is_end)
        elif not stream_id & 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"stream {stream_id} is not a client's")
        elif stream_id <= self._last_stream_id:
            raise StreamFault(ErrorCode.STREAM_CLOSED, "HEADERS of a stream that has ended")
        else:
            self._last_stream_id = stream_id
            self._open(stream_id, fields, is_end=is_end)

    def _trailers_received(self, stream: ServerStream, fields: list[Field], *, is_end: bool) -> None:
        if stream.is_half_closed:
            raise StreamFault(ErrorCode.STREAM_CLOSED, "HEADERS after the end of the request")
        if not is_end:
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "trailers without the end of the request")
        check_trailers(fields)
        self._pass_requests += 1
        stream.half_close()

    def _open(self, stream_id: int, fields: list[Field], *, is_end: bool) -> None:
        limits, out = self._port.limits, self.out
        if len(self.streams) >= limits.calls or self._is_ending:
            self._controls.count(self.last_activity)
            out.write(frames.rst_stream(stream_id, ErrorCode.REFUSED_STREAM))
            return
        try:
            head = read_head(fields)
        except HeadersRefused as refusal:
            out.write(refusal_frame(stream_id, refusal))
            if not is_end:
                out.write(frames.rst_stream(stream_id, ErrorCode.NO_ERROR))
            return
        stream = ServerStream(out, stream_id, self._stream_window, self)
        self.streams[stream_id] = stream
        self._controls.earn(FRAMES_OF_A_CALL)
        if out.queued_bytes > limits.unread_bytes:
            self._warn_once("it does not read its replies")
            stream.finish(RESOURCE_EXHAUSTED, "the client does not read its replies")
            return
        exchange = self._port.service.opened(stream, head)
        if exchange is not None and not stream.is_closed:
            stream.begin(exchange, head, limits.message_bytes)
            if is_end:
                self._pass_requests += 1
                stream.half_close()

    def _reset_received(self, flags: int, stream_id: int, payload: bytes) -> None:
        frames.read_long(payload, "RST_STREAM")
        self._refuse_idle(stream_id, "RST_STREAM")
        stream = self.streams.pop(stream_id, None)
        if stream is not None:
            stream.cancel()
            self._resets.count(self.last_activity)

    def _settings_received(self, flags: int, stream_id: int, payload: bytes) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS on a stream")
        if flags & frames.ACK:
            if payload:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "an acknowledgement with settings")
            return
        self._settings.count(self.last_activity)
        values = frames.read_settings(payload)
        self.out.max_frame = min(
            values.get(frames.SETTINGS_MAX_FRAME_SIZE, self.out.max_frame), RECEIVE_WINDOW
        )
        window = values.get(frames.SETTINGS_INITIAL_WINDOW_SIZE, self._stream_window)
        change, self._stream_window = window - self._stream_window, window
        self.out.write(frames.SETTINGS_ACK)
        if change:
            for stream in list(self.streams.values()):
                if not stream.window_changed(change):
                    raise ConnectionFault(
                        ErrorCode.FLOW_CONTROL_ERROR, f"an initial window of {window} makes one too large"
                    )

    def _window_received(self, flags: int, stream_id: int, payload: bytes) -> None:
        increment = frames.read_long(payload, "WINDOW_UPDATE") & STREAM_MASK
        if increment < SMALL_WINDOW:
            self._controls.count(self.last_activity)
        if stream_id:
            self._refuse_idle(stream_id, "WINDOW_UPDATE")
            stream = self.streams.get(stream_id)
            if stream is None:
                return
            if not increment:
                raise StreamFault(ErrorCode.PROTOCOL_ERROR, "a window opened by 0")
            if not stream.window_changed(increment):
                raise StreamFault(ErrorCode.FLOW_CONTROL_ERROR, "a window beyond 2^31-1")
            return
        self.out.window += increment
        if not increment or self.out.window > frames.WINDOW_MAX:
            raise ConnectionFault(
                ErrorCode.FLOW_CONTROL_ERROR if increment else ErrorCode.PROTOCOL_ERROR,
                f"the connection's window was opened by {increment} to {self.out.window}",
            )
        self.out.send_queued()

    def _ping_received(self, flags: int, stream_id: int, payload: bytes) -> None:
        frames.check_form(frames.PING, stream_id, payload)
        if not flags & frames.ACK:
            self.out.write(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _refuse_idle(self, stream_id: int, name: str) -> None:
        if not stream_id or stream_id > self._last_stream_id or not stream_id & 1:
            raise ConnectionFault(
                ErrorCode.PROTOCOL_ERROR, f"{name} on stream {stream_id}, which is not open"
            )

    def _warn_once(self, reason: str) -> None:
        """Log why a call was refused; once for a connection."""
        if not self._has_warned:
            _log.warning("refusing a call of %s: %s", self.peer, reason)
        self._has_warned = True

    # -- the end

    def _reset(self, stream_id: int, fault: StreamFault) -> None:
        """End a stream whose client broke a rule. Counted like a reset of the client: it costs as much."""
        self._resets.count(self.last_activity)
        self._warn_once(fault.reason)
        self.out.write(frames.rst_stream(stream_id, fault.code))
        stream = self.streams.get(stream_id)
        if stream is not None:
            stream.cancel()
            self.out.ended(stream)

    def _cancel_calls(self) -> None:
        for stream in list(self.streams.values()):
            try:
                stream.cancel()
            except Exception:  # the other calls end all the same
                _log.exception("a call of %s cannot be ended", self.peer)
        self.streams.clear()

    def close_overloaded(self, reason: str) -> None:
        """Close it now, for this reason, and let go of what it keeps."""
        self._fail(ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, reason))
        self.abort()

    def _fail(self, fault: ConnectionFault) -> None:
        if fault.code is not ErrorCode.INTERNAL_ERROR:
            _log.warning("closing %s: %s", self.peer, fault.reason)
        self.is_failed, self._buffer, self._at = True, b"", 0
        if self.has_preface:
            self.out.write(frames.goaway(self._last_stream_id, fault.code, fault.reason))
        self._cancel_calls()
        self.close()

    def go_away(self, text: str = "") -> None:
        """Accept no new calls; close when the open ones have ended."""
        if not self._is_ending:
            self._is_ending = True
            self.out.write(frames.goaway(self._last_stream_id, ErrorCode.NO_ERROR, text))
            self.out.when_empty = self.close
            if not self.streams:
                self.close()

    def close(self) -> None:
        """Write what is queued, then close."""
        self.out.flush()
        if self.out.transport is not None:
            self.out.transport.close()

    def abort(self) -> None:
        if self.out.transport is not None:
            self.out.transport.abort()

    def wrap_transport(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> None:
        """Put a transport between the connection and its socket."""
        self.out.wrap_transport(wrap)


_CONTROL: Final[dict[int, Callable[[Http2Connection, int, int, bytes], None]]] = {
    frames.CONTINUATION: Http2Connection._continuation_received,
    frames.RST_STREAM: Http2Connection._reset_received,
    frames.SETTINGS: Http2Connection._settings_received,
    frames.WINDOW_UPDATE: Http2Connection._window_received,
    frames.PING: Http2Connection._ping_received,
    frames.PRIORITY: lambda _, flags, *form: frames.check_form(frames.PRIORITY, *form),
    frames.GOAWAY: lambda _, flags, *form: frames.check_form(frames.GOAWAY, *form),
    frames.PUSH_PROMISE: lambda *_: frames.refuse_push(),
}
