"""What a connection sends: frames of one pass in one write, and replies that wait for the client's windows."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Protocol

from .frames import FIRST_WINDOW, MAX_FRAME
from .limits import MemoryBudget

JOIN_BYTES: Final = 65_536
"""Up to this size the frames of a pass are joined; larger ones are handed over piece by piece."""
WRITE_BYTES: Final = 65_536
"""Handed to the socket and not taken; beyond that replies wait here, where they are counted."""
JOINED_STREAM_BYTES: Final = 1_048_576
"""Up to this size the messages of a stream are sent at once."""
TURN_FRAMES: Final = 64
"""Of queued replies sent in one loop iteration: at most 1 MiB with frames of 16 KiB."""


class Sender(Protocol):
    """A stream, as it sends its replies."""

    id: int
    window: int

    @property
    def is_waiting(self) -> bool:
        """Whether replies wait."""

    def send_queued(self) -> None:
        """Send one frame of what waits; the windows are open."""


class Outgoing:
    """Owned by its connection. `streams` are its open streams, `memory` is shared with the other connections."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, streams: dict[int, Any], memory: MemoryBudget
    ) -> None:
        self._loop = loop
        self._streams = streams
        self._memory = memory
        self.transport: asyncio.Transport | None = None
        self.window = FIRST_WINDOW
        """What the client still accepts on the connection."""
        self.max_frame = MAX_FRAME
        self.queued_bytes = 0
        """Replies that wait for a window or for the socket; each counts until all of it was sent."""
        self.unfinished_bytes = 0
        """Requests that wait for their end."""
        self.unread_bytes = 0
        """What the socket has not taken, while it takes nothing more."""
        self.progress_at = 0.0
        """Loop time when a waiting reply was last sent, or began to wait."""
        self.is_unread = False
        """Whether the socket takes nothing more for now."""
        self.in_pass = False
        self.when_empty: Callable[[], None] | None = None
        """Called when the last stream has ended."""
        self._pieces: list[bytes | memoryview] = []
        self._size = 0
        self._is_scheduled = False
        self._ready: OrderedDict[Sender, None] = OrderedDict()
        """Streams with queued replies and an open window, in the order of their turns."""
        self._has_turn = False
        """The next loop iteration goes on with the queued replies."""

    @property
    def kept_bytes(self) -> int:
        """What the client makes us keep."""
        return self.queued_bytes + self.unfinished_bytes + self.unread_bytes

    @property
    def is_stuck(self) -> bool:
        """Whether something waits for the client to read."""
        return self.is_unread or self.queued_bytes > 0

    def add_unfinished(self, change: int) -> None:
        """So many bytes more, or fewer, of requests that wait for their end."""
        self.unfinished_bytes += change
        self._memory.add(change)

    def write(self, piece: bytes | memoryview) -> None:
        """Queue bytes: they leave at the end of this pass, in the next loop iteration, or once they are many."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > WRITE_BYTES:
            self.flush()
        elif not self.in_pass and not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush_scheduled)

    def _flush_scheduled(self) -> None:
        self._is_scheduled = False
        self.flush()

    def flush(self) -> None:
        pieces, transport = self._pieces, self.transport
        if not pieces:
            return
        self._pieces, size, self._size = [], self._size, 0
        if transport is None or transport.is_closing():
            return
        if len(pieces) == 1:
            transport.write(pieces[0])
        elif size <= JOIN_BYTES:
            transport.write(b"".join(pieces))
        else:
            transport.writelines(pieces)
        if self.is_unread:
            self._count_unread(transport.get_write_buffer_size())

    def wrap_transport(self, wrap: Callable[[asyncio.Transport], asyncio.Transport]) -> None:
        """Put a transport between the connection and its socket. What was written before does not pass it."""
        if self.transport is not None:
            self.flush()
            self.transport = wrap(self.transport)

    # -- a socket that takes nothing more

    def pause(self) -> None:
        if not self.is_stuck:
            self.progress_at = self._loop.time()
        self.is_unread = True
        if self.transport is not None:
            self._count_unread(self.transport.get_write_buffer_size())

    def resume(self) -> None:
        self.is_unread = False
        self._count_unread(0)
        self.progress_at = self._loop.time()
        self.send_queued()

    def _count_unread(self, size: int) -> None:
        change, self.unread_bytes = size - self.unread_bytes, size
        self._memory.add(change)

    def closed(self) -> None:
        """The connection is gone; its streams were cancelled."""
        self._count_unread(0)

    # -- replies that wait

    def enqueue(self, stream: Sender, size: int) -> None:
        """A reply of this stream waits now, or more of it."""
        if not self.is_stuck:
            self.progress_at = self._loop.time()
        self.queued_bytes += size
        self._memory.add(size)
        self.window_opened(stream)

    def dequeue(self, stream: Sender, size: int) -> None:
        """So many bytes of it do not wait any more."""
        self.queued_bytes -= size
        self._memory.add(-size)
        if not stream.is_waiting:
            self._ready.pop(stream, None)

    def window_opened(self, stream: Sender) -> None:
        """A stream may send what it has queued, if its window is open now."""
        if stream.is_waiting and stream.window > 0:
            self._ready[stream] = None
            self.send_queued()

    def send_queued(self) -> None:
        """Send what the windows allow, a frame of each stream in turn."""
        ready = self._ready
        if not ready or self._has_turn:
            return
        left = TURN_FRAMES
        while ready and self.window > 0 and not self.is_unread:
            if not left:
                self._has_turn = True
                self._loop.call_soon(self._next_turn)
                break
            left -= 1
            stream, _ = ready.popitem(last=False)
            stream.send_queued()
            if stream.is_waiting and stream.window > 0:
                ready[stream] = None
        if left < TURN_FRAMES:
            self.progress_at = self._loop.time()

    def _next_turn(self) -> None:
        self._has_turn = False
        self.send_queued()

    def ended(self, stream: Sender) -> None:
        """The stream is over in both directions."""
        self._streams.pop(stream.id, None)
        self._ready.pop(stream, None)
        if self.when_empty is not None and not self._streams:
            self.when_empty()
