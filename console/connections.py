"""The connections of the HTTP port, and what each may cost: time, memory, and a place among the others.

uvicorn bounds neither how long a head or a body takes to arrive, nor how many bytes of replies wait for clients that do
not read them. Its protocol class gets these limits here; a connection beyond one is closed, with a line in the log.

    head          complete 10 s after its first byte, or after the connection's start; at most 16 KiB
    body          complete in 20 s, and a second more for every 16 KiB of it
    reply         the client reads some of it every 30 s
    all replies   64 MiB unread; beyond that the connection is closed whose client has read nothing for longest
    turn          a header or a chunk of 4 bytes costs 5 to 25 us, so parsing yields to the loop every 5 ms
    connections   512; a new one replaces the one that has been idle longest (half a head is idle, too)
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from time import perf_counter
from typing import Final

from pocketmq.broker.network.listening import Descriptors, descriptor_of
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

_log = logging.getLogger("pocketmq.console")
_uvicorn_log = logging.getLogger("pocketmq.console.uvicorn")
_uvicorn_log.setLevel(logging.ERROR)  # its warnings name no peer: ours do

MAX_CONNECTIONS: Final = 512
MAX_HEAD_BYTES: Final = 16 * 1024
KEEP_ALIVE_SECONDS: Final = 30
HEAD_SECONDS: Final = 10.0
BODY_SECONDS: Final = 20.0
BODY_BYTES_PER_SECOND: Final = 16 * 1024
READ_SECONDS: Final = 30.0
MAX_UNREAD_BYTES: Final = 64 << 20
LOOK_SECONDS: Final = 1.0
"""How often the limits of time are checked."""
_SLICE_BYTES: Final = 4 * 1024
_TURN_SECONDS: Final = 0.005
_HEADERS: Final = [(b"x-content-type-options", b"nosniff")]
"""Of every answer: what a topic holds must not run as a page of this port."""
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class HttpConnections:
    """All connections of one port. Belongs to its event loop."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.state = ServerState()
        self.state.default_headers = _HEADERS
        self._idle: dict[HttpConnection, None] = {}
        """Those without a request under way, the one that is idle longest first."""
        self._next_look: asyncio.TimerHandle | None = None
        self._descriptors = Descriptors()

    def __call__(self) -> "HttpConnection":
        """A protocol for a new connection."""
        return HttpConnection(self)

    def __iter__(self) -> "Iterator[HttpConnection]":
        return iter([one for one in self.state.connections if isinstance(one, HttpConnection)])

    def __len__(self) -> int:
        return len(self.state.connections)

    def make_room(self, newcomer: "HttpConnection") -> bool:
        """Whether a new connection has a place; the one that is idle longest gives it up. If not, it is answered 503:
        its descriptor is free again with that."""
        if self._next_look is None:
            self._next_look = newcomer.loop.call_later(LOOK_SECONDS, self._look_again, newcomer.loop)
        descriptor, now = descriptor_of(newcomer.transport), newcomer.loop.time()
        if not self._descriptors.has_room(descriptor, newcomer.peer, now):
            return False
        if len(self) < MAX_CONNECTIONS:
            return True
        oldest = next(iter(self._idle), None)
        if oldest is None:
            _log.warning(
                "%s is refused: %d HTTP connections have requests under way", newcomer.peer, len(self)
            )
            return False
        self.close(oldest, f"{MAX_CONNECTIONS} others are open, and it is idle longest")
        return True

    def update(self, connection: "HttpConnection", *, is_done: bool = False) -> None:
        """Note whether it is idle. With `is_done` its idle time begins now."""
        if connection.is_busy or is_done:
            self._idle.pop(connection, None)
        if not connection.is_busy:
            self._idle.setdefault(connection)

    def remove(self, connection: "HttpConnection") -> None:
        self._idle.pop(connection, None)

    def close(self, connection: "HttpConnection", reason: str) -> None:
        _log.warning("the HTTP connection of %s is closed: %s", connection.peer, reason)
        self.state.connections.discard(connection)
        self._idle.pop(connection, None)
        connection.transport.abort()

    def look(self, now: float) -> None:
        """Close what is late at loop time `now`."""
        for connection in self:
            reason = connection.lateness(now)
            if reason is not None:
                self.close(connection, reason)

    def bound_unread(self) -> None:
        """Close connections until the others' unread replies fit; the last one may have any size."""
        reading = sorted((one for one in self if one.unread), key=lambda one: one.since)
        total = sum(one.unread for one in reading)
        while total > MAX_UNREAD_BYTES and len(reading) > 1:
            slowest = reading.pop(0)
            total -= slowest.unread
            self.close(slowest, f"more than {MAX_UNREAD_BYTES} bytes of replies are not read")

    def stop(self) -> None:
        """Close every connection; their requests learn that nobody waits for the answer."""
        if self._next_look is not None:
            self._next_look.cancel()
        for connection in self:
            connection.transport.abort()

    def _look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next_look = None
        self.look(loop.time())
        if len(self):
            self._next_look = loop.call_later(LOOK_SECONDS, self._look_again, loop)


class HttpConnection(H11Protocol):
    """uvicorn's connection, within the limits above."""

    def __init__(self, connections: HttpConnections) -> None:
        super().__init__(connections.config, connections.state, {})
        self.logger = _uvicorn_log
        self._all = connections
        self._unparsed: deque[bytes] = deque()
        self._is_parsing = False
        self.peer = "?"
        self.since = self.loop.time()
        """When the present head or body began, or the client last read some of a reply: loop time."""
        self._received = 0
        """Bytes since then."""
        self._unread_before = 0

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way: its head is complete, its reply is not."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def unread(self) -> int:
        """Bytes of replies that the client has not read."""
        return self.transport.get_write_buffer_size()

    def lateness(self, now: float) -> str | None:
        """Why the connection must be closed; None if it is within the limits of time."""
        unread, before = self.unread, self._unread_before
        self._unread_before = unread
        if unread:
            if unread < before or not before:  # more of it shows only that we write
                self.since = now
            return "its client reads no replies" if now > self.since + READ_SECONDS else None
        if not self.is_busy:
            is_waiting = self.timeout_keep_alive_task is not None  # uvicorn limits the time between requests
            return None if is_waiting or now <= self.since + HEAD_SECONDS else "half a head for too long"
        if self.cycle.more_body and now > self.since + BODY_SECONDS + self._received / BODY_BYTES_PER_SECOND:
            return "half a body for too long"
        return None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        host, port = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self.peer = f"{host}:{port}"
        self.transport = transport
        has_room = self._all.make_room(self)
        super().connection_made(transport)
        if has_room:
            self._all.update(self)
        else:
            self.connections.discard(self)
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unparsed.clear()
        self._all.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.timeout_keep_alive_task is not None and not self.is_busy:
            self.since, self._received = self.loop.time(), 0
        self._received += len(data)
        self._unparsed.extend(data[at : at + _SLICE_BYTES] for at in range(0, len(data), _SLICE_BYTES))
        if not self._is_parsing:
            self._parse()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.since, self._received = self.loop.time(), 0
        self._all.update(self, is_done=True)
        if self.unread:
            self._all.bound_unread()

    def send_400_response(self, msg: str) -> None:
        _log.warning("the HTTP connection of %s is closed: no valid request", self.peer)
        super().send_400_response(msg)

    def _parse(self) -> None:
        """Parse for a turn; the rest waits for the next one, and nothing more is read until then."""
        was_busy, until = self.is_busy, perf_counter() + _TURN_SECONDS
        while self._unparsed and perf_counter() < until:
            if self.transport.is_closing():
                self._unparsed.clear()
                return
            super().data_received(self._unparsed.popleft())
        if self.is_busy and not was_busy:
            self.since, self._received = self.loop.time(), 0
        self._all.update(self)
        self._is_parsing = bool(self._unparsed)
        if self._is_parsing:
            self.transport.pause_reading()
            self.loop.call_soon(self._parse)
        elif not self.flow.read_paused and not self.transport.is_closing():
            self.transport.resume_reading()
