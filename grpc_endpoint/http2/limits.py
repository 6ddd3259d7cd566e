"""What clients may use: of each connection, of a whole port, and how often in a time.

Resets, settings, pings, small windows and empty frames are cheap to send and costly to handle: a client beyond their
rate is disconnected with ENHANCE_YOUR_CALM. The rates are far above what any client does beside its calls. Clients of
grpc's C core, such as the official Python client, return the windows of each reply and ping to measure the line: up to
`FRAMES_OF_A_CALL`, which each call pays for.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from .frames import ConnectionFault, ErrorCode

WINDOW_SECONDS: Final = 10.0
RESETS: Final = 1_000
"""Calls that a client may cancel, or have us reset by breaking a rule, in a window."""
SETTINGS: Final = 100
"""Each may change the windows of all streams. Clients send one, and a few more while they measure the line."""
CONTROL_FRAMES: Final = 10_000
"""Frames that carry no request, in a window."""
FRAMES_OF_A_CALL: Final = 4
"""So many of them are free with each call: handling the call costs more."""
SMALL_WINDOW: Final = 1_024
"""A WINDOW_UPDATE of fewer bytes is one of them. A larger one is earned: the client has read as much."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Of each connection, and of all of a port together."""

    message_bytes: int = 136_314_880
    """The longest message of a client."""
    calls: int = 10_000
    """Calls at once; a client keeps back more than that."""
    idle_seconds: float = 120.0
    """A connection without a call is closed after this time."""
    pass_seconds: float = 0.005
    """A pass over what a connection has sent ends with the frame that it handles then; the others have their turn."""
    shutdown_seconds: float = 2.0
    """How long open calls may take when the port stops."""
    unread_bytes: int = 67_108_864
    """Replies that wait for a client's window; new calls are refused beyond that."""
    connections: int = 10_000
    """At once; more are closed when they open."""
    port_calls: int = 100_000
    """Open calls of all connections, some KiB each; beyond that the one that has most is closed."""
    port_bytes: int = 545_259_520
    """Unfinished requests and replies that clients do not read, of all connections; beyond that the one that keeps most
    is closed. The first 64 KiB of each socket are not counted."""


class MemoryBudget:
    """What the connections of a port keep together: unfinished requests, waiting replies, what sockets do not take."""

    def __init__(self, most_bytes: int, exceeded: Callable[[], None]) -> None:
        self.bytes = 0
        self._most = most_bytes
        self._exceeded = exceeded
        """Called for each change above the limit; the bytes are still in use then."""

    def add(self, change: int) -> None:
        self.bytes += change
        if self.bytes > self._most:
            self._exceeded()


class RateLimit:
    """Counts one kind of frame of one connection."""

    __slots__ = ("_count", "_most", "_name", "_since")

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._since = 0.0
        self._count = 0

    def earn(self, frames: int) -> None:
        """So many that were counted, or those that come next in this window, do not count."""
        self._count -= frames

    def count(self, now: float) -> None:
        """One more, at this time. Raises `ConnectionFault` beyond the limit."""
        if now - self._since > WINDOW_SECONDS:
            self._since, self._count = now, 0
        self._count += 1
        if self._count > self._most:
            raise ConnectionFault(
                ErrorCode.ENHANCE_YOUR_CALM, f"more than {self._most} {self._name} in {WINDOW_SECONDS:.0f} s"
            )
