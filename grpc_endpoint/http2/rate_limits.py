"""Rate limits for frames that are cheap to send and costly to handle: resets, settings, pings, small windows, empty
frames.

A window of time and a count; a client beyond it is disconnected with ENHANCE_YOUR_CALM. The limits are far above what
any client does beside its calls. Clients of grpc's C core, such as the official Python client, return the windows of
each reply and ping to measure the line: up to `FRAMES_OF_A_CALL`, which each call pays for.
"""

from typing import Final

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
