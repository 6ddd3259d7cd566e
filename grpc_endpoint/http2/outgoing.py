"""What a connection sends: frames of one pass in one write, and replies that wait for the client's windows."""

import asyncio
from collections.abc import Callable, Sized
from typing import Final, Protocol

from .frames import FIRST_WINDOW, MAX_FRAME

JOIN_BYTES: Final = 65_536
"""Up to this size the frames of a pass are joined; larger ones are handed over piece by piece."""
TURN_BYTES: Final = 1_048_576
"""Of queued replies written at once. More follow when the socket has taken these."""


class Sender(Protocol):
    """A stream, as it sends its replies."""

    id: int
    is_closed: bool
    queued_bytes: int

    def send_queued(self) -> bool:
        """Send one frame of what waits, if the windows allow it. Returns whether it sent something."""


class OpenStreams(Sized, Protocol):
    """The open streams of a connection, by id."""

    def pop(self, stream_id: int, default: None, /) -> object: ...


class PortMemory:
    """What the connections of a port keep together: requests that are not complete, replies that wait for a window."""

    def __init__(self, most_bytes: int, exceeded: Callable[[], None]) -> None:
        self.bytes = 0
        self._most = most_bytes
        self._exceeded = exceeded
        """Called for each change above the limit; the bytes are still in use then."""

    def changed(self, change: int) -> None:
        self.bytes += change
        if self.bytes > self._most:
            self._exceeded()


class Outgoing:
    """Owned by its connection. `streams` are its open streams, `memory` is shared with the other connections."""

    def __init__(self, loop: asyncio.AbstractEventLoop, streams: OpenStreams, memory: PortMemory) -> None:
        self._loop = loop
        self._streams = streams
        self._memory = memory
        self.transport: asyncio.Transport | None = None
        self.window = FIRST_WINDOW
        """What the client still accepts on the connection."""
        self.max_frame = MAX_FRAME
        self.queued_bytes = 0
        """Replies that wait for a window."""
        self.unfinished_bytes = 0
        """Messages of which only a part has arrived."""
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
        self._waiting: dict[Sender, None] = {}

    @property
    def kept_bytes(self) -> int:
        """What the client makes us keep."""
        return self.queued_bytes + self.unfinished_bytes

    def keeps(self, change: int) -> None:
        """So many bytes more, or fewer, of messages of which only a part has arrived."""
        self.unfinished_bytes += change
        self._memory.changed(change)

    def write(self, piece: bytes | memoryview) -> None:
        """Queue bytes: they leave at the end of this pass, or in the next loop iteration."""
        self._pieces.append(piece)
        self._size += len(piece)
        if not self.in_pass and not self._is_scheduled:
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

    # -- replies that wait

    def queued(self, stream: Sender, size: int) -> None:
        """A reply of this stream waits now, or more of it."""
        if not self.queued_bytes:
            self.progress_at = self._loop.time()
        self.queued_bytes += size
        self._memory.changed(size)
        self._waiting[stream] = None
        self.send_queued()

    def unqueued(self, stream: Sender, size: int) -> None:
        """So many bytes of it do not wait any more."""
        self.queued_bytes -= size
        self._memory.changed(-size)
        self.progress_at = self._loop.time()
        if stream.is_closed:
            self._waiting.pop(stream, None)

    def send_queued(self) -> None:
        """Send what the windows allow, a frame of each stream in turn."""
        left = TURN_BYTES
        waiting = self._waiting
        while waiting and left > 0 and self.window > 0 and not self.is_unread:
            has_sent = False
            for stream in list(waiting):
                before = self.window
                if stream.send_queued():
                    has_sent = True
                    left -= before - self.window
                if not stream.queued_bytes:
                    waiting.pop(stream, None)
            if not has_sent:
                return
        if waiting and left <= 0:
            self._loop.call_soon(self.send_queued)

    def ended(self, stream: Sender) -> None:
        """The stream is over in both directions."""
        self._streams.pop(stream.id, None)
        self._waiting.pop(stream, None)
        if self.when_empty is not None and not self._streams:
            self.when_empty()
