"""The timer wheel: where the chain of each moment ends in the timer log. One file of two weeks of seconds.

    timerwheel, 1,209,600 slots of 32 bytes; slot number = moment modulo 1,209,600

     0  moment       8   ms / timerPrecisionMs; another moment, or 0: the slot is free
     8  first        8   position in the timer log of the first unit enqueued for it
    16  last         8   position of the newest one, where the chain backwards begins
    24  count        4   units; one that deletes another message counts as -1
    28  magic        4   0

The file is sparse, and is read and written slot by slot instead of mapped: a full disk is then an error and not the end
of the process, and none of its 38.7 MB stays in memory. Official classes: TimerWheel, Slot.
"""

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from ..errors import system_error
from ..files import disk

SLOTS: Final = 604_800 * 2
SLOT: Final = struct.Struct(">qqqii")
SLOT_BYTES: Final = 32
assert SLOT.size == SLOT_BYTES
WHEEL_BYTES: Final = SLOTS * SLOT_BYTES
_CHUNK_BYTES: Final = 1 << 16
GROUP: Final = 64
GROUPS: Final = SLOTS // GROUP
assert GROUPS * GROUP == SLOTS


class Slot(msgspec.Struct, frozen=True, gc=False):
    """One moment, `time_ms`: positions of the first and last unit of its chain, and how many units."""

    time_ms: int
    first: int
    last: int
    count: int


class TimerWheel:
    """The open file. Moments are in ms and multiples of the precision. Owner: the event-loop thread, except `sync`."""

    def __init__(self, path: Path, precision_ms: int) -> None:
        """Open or make the file; `is_new` says that it was empty. Raises StoreError."""
        self.path = path
        self._precision_ms = precision_ms
        self.is_damaged = False
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
            self.is_new = os.fstat(self._descriptor).st_size != WHEEL_BYTES
            if self.is_new:
                self.clear()
        except OSError as error:
            raise system_error("open", path, error) from error

    def clear(self) -> None:
        """Forget everything."""
        self.is_damaged = False
        os.ftruncate(self._descriptor, 0)
        os.ftruncate(self._descriptor, WHEEL_BYTES)

    def slot(self, time_ms: int) -> Slot | None:
        """The slot of a moment; None if nothing is enqueued for it. Raises StoreError."""
        try:
            data = os.pread(self._descriptor, SLOT_BYTES, self._position(time_ms))
        except OSError as error:
            raise system_error("read", self.path, error) from error
        moment, first, last, count, _ = SLOT.unpack(data)
        return Slot(time_ms, first, last, count) if moment == time_ms // self._precision_ms else None

    def put_all(self, slots: Iterable[Slot]) -> None:
        """Write the slots of several moments; those that lie side by side in one piece. Raises StoreError."""
        begin, end, pieces = -1, -1, list[bytes]()
        for slot in sorted(slots, key=lambda slot: self._position(slot.time_ms)):
            position = self._position(slot.time_ms)
            if position != end and pieces:
                self._write(b"".join(pieces), begin)
                pieces.clear()
            if not pieces:
                begin = position
            pieces.append(SLOT.pack(slot.time_ms // self._precision_ms, slot.first, slot.last, slot.count, 0))
            end = position + SLOT_BYTES
        if pieces:
            self._write(b"".join(pieces), begin)

    def slots(self) -> Iterator[Slot]:
        """Every slot that was ever written, in no order; past moments among them. `is_damaged` is then true if one
        holds a moment that has its place elsewhere."""
        for begin, end in disk.written_ranges(self._descriptor, 0, WHEEL_BYTES):
            for at in range(begin - begin % SLOT_BYTES, end, _CHUNK_BYTES):
                data = os.pread(self._descriptor, min(_CHUNK_BYTES, end - at) // SLOT_BYTES * SLOT_BYTES, at)
                for number, (moment, first, last, count, _) in enumerate(
                    SLOT.iter_unpack(data), at // SLOT_BYTES
                ):
                    if moment and moment % SLOTS != number:
                        self.is_damaged = True
                    elif moment:
                        yield Slot(moment * self._precision_ms, first, last, count)

    def sync(self) -> None:
        """Force the file to disk; may run in any thread. Raises DiskFailedError."""
        disk.force_file(self._descriptor, self.path)

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, data: bytes, position: int) -> None:
        try:
            disk.write_all(self._descriptor, data, position)
        except OSError as error:
            raise system_error("write", self.path, error) from error

    def _position(self, time_ms: int) -> int:
        return time_ms // self._precision_ms % SLOTS * SLOT_BYTES


class UsedMoments:
    """Finds the next moment with messages, without reading the wheel slot by slot. Moments are numbers here: ms divided
    by the precision.

    One byte stands for 64 slots of the wheel: 0 if none of them was used in this lap. A byte that says more than is
    true costs 64 looks at the wheel, once. In memory only; made from the wheel when it is opened.
    """

    def __init__(self) -> None:
        self._groups = bytearray(GROUPS)

    def add(self, number: int) -> None:
        self._groups[number // GROUP % GROUPS] = 1

    def clear(self) -> None:
        self._groups = bytearray(GROUPS)

    def first(self, number: int, last: int, is_used: Callable[[int], bool]) -> int | None:
        """The first moment from `number` to `last` for which `is_used` is true; they are less than a lap apart."""
        groups = self._groups
        while number <= last:
            group = number // GROUP % GROUPS
            next_group = (number // GROUP + 1) * GROUP
            if groups[group]:
                for moment in range(number, min(next_group, last + 1)):
                    if is_used(moment):
                        return moment
                if number == next_group - GROUP and next_group <= last + 1:
                    groups[group] = 0  # nothing was found in all of it: it was used in an earlier lap
            found = groups.find(1, group + 1)
            if found < 0:
                found = groups.find(1, 0, group + 1)
                if found < 0:
                    return None
                found += GROUPS
            number = next_group + (found - group - 1) * GROUP
        return None
