"""Bytes that leave later, more slowly, or in slices: one direction of one connection.

    put(data) -> [ due 12.50 | due 12.51 | ... ] -> write(slice)

Latency holds back each write; bandwidth is the time that the bytes of a slice take; slices leave in separate writes.
Order is kept. The wall's time, whatever clock the server has: clients wait by theirs.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVarTuple, Unpack

import msgspec

from ..requests.values import check_bool, check_int, check_number

SLICE_BYTES: Final = 16 * 1024
"""The most that leaves at once where bandwidth is limited."""
_SLICES_A_SECOND: Final = 50
"""Where bandwidth is limited, a slice is what leaves in a fiftieth of a second."""


Args = TypeVarTuple("Args")


def later(
    loop: asyncio.AbstractEventLoop, seconds: float, callback: Callable[[Unpack[Args]], object], *args: *Args
) -> asyncio.TimerHandle:
    """Call back after at least `seconds` of the wall's time; every delay of a fault is measured by this.

    uvloop rounds a timer to whole milliseconds and compares truncated times: its `call_later` may call up to a
    millisecond early.
    """
    return loop.call_later((math.ceil(seconds * 1000) + 1) / 1000, callback, *args)


class Shape(msgspec.Struct, frozen=True):
    """How bytes travel: seconds of latency, bytes a second, bytes a write, or not at all."""

    latency: float = 0.0
    bandwidth: int | None = None
    slice_bytes: int | None = None
    half_open: bool = False

    @property
    def largest(self) -> int | None:
        """Bytes that leave at once; None if there is no limit."""
        if self.bandwidth is None:
            return self.slice_bytes
        paced = max(1, min(SLICE_BYTES, self.bandwidth // _SLICES_A_SECOND))
        return paced if self.slice_bytes is None else min(paced, self.slice_bytes)

    def over(self, other: "Shape") -> "Shape":
        """Two shapes of one connection: latencies add up, the narrower one limits."""
        return Shape(
            self.latency + other.latency,
            _least(self.bandwidth, other.bandwidth),
            _least(self.slice_bytes, other.slice_bytes),
            self.half_open or other.half_open,
        )

    def beside(self, other: "Shape") -> "Shape":
        """Of one connection that two clients use: what is worst for either."""
        return msgspec.structs.replace(self.over(other), latency=max(self.latency, other.latency))

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value}


def _least(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)


def shape_of(latency: object, bandwidth: object, slice_bytes: object, half_open: object) -> Shape:
    """The shape of checked options. Raises `WrongValueError`."""
    return Shape(
        check_number("latency", 0.0 if latency is None else latency),
        None if bandwidth is None else check_int("bandwidth", bandwidth, least=1),
        None if slice_bytes is None else check_int("slice_bytes", slice_bytes, least=1),
        check_bool("half_open", half_open),
    )


class Line:
    """One direction. `write` is called with what leaves, `drained` when nothing is left on the way.

    The caller bounds what it puts: `waiting_bytes` says how much is on the way.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, write: Callable[[bytes], object], drained: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._write = write
        self._drained = drained
        self._waiting: deque[tuple[float, memoryview]] = deque()
        self.shape = Shape()
        """May be changed; what is on the way keeps its latency."""
        self._free_at = 0.0
        """When the last slice has left, where bandwidth is limited."""
        self._timer: asyncio.Handle | None = None
        self.waiting_bytes = 0

    def put(self, data: bytes | bytearray | memoryview) -> None:
        """Send it along. Half open, it is lost."""
        if self.shape.half_open or not data:
            return
        self._waiting.append((time.monotonic() + self.shape.latency, memoryview(bytes(data))))
        self.waiting_bytes += len(data)
        if self._timer is None:
            self._schedule()

    def stop(self) -> None:
        """What is on the way is lost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waiting.clear()
        self.waiting_bytes = 0

    def _schedule(self) -> None:
        now = time.monotonic()  # the loop's time may be that of its last turn
        due, data = self._waiting[0]
        at = due
        if self.shape.bandwidth is not None:
            at = max(due, self._free_at) + self._next_bytes(data) / self.shape.bandwidth
        if at > now:
            self._timer = later(self._loop, at - now, self._leave, at)
        else:
            self._timer = self._loop.call_soon(self._leave, now)

    def _next_bytes(self, data: memoryview) -> int:
        largest = self.shape.largest
        return len(data) if largest is None else min(largest, len(data))

    def _leave(self, at: float) -> None:
        """One slice leaves; the next one in another turn of the loop, so that it is a write of its own."""
        self._timer = None
        due, data = self._waiting.popleft()
        count = self._next_bytes(data)
        if count < len(data):
            self._waiting.appendleft((due, data[count:]))
        self._free_at = at
        self.waiting_bytes -= count
        if not self.shape.half_open:
            self._write(bytes(data[:count]))
        if self._waiting:
            self._schedule()
        else:
            self._drained()
