"""The producer's message id, property UNIQ_KEY: the `msgId` that a Java program sees.

    +------------+---------+--------------+------------------------+-----------+
    | IP 4 or 16 | pid  2  | process  4   | ms since the month  4  | counter 2 |     32 or 56 hexadecimal characters
    +------------+---------+--------------+------------------------+-----------+

"Since the month" counts from local midnight of the first of the current month, so the year and month are not in the
id: a reader assumes the latest month for which the time is not in the future. Official class: MessageClientIDSetter.
"""

import itertools
from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from .offset_id import bytes_of_id


class UniqueId(msgspec.Struct, frozen=True):
    """A decoded UNIQ_KEY."""

    ip: bytes
    process_id: int
    process_hash: int
    created_ms: int
    counter: int


class UniqueIdMaker:
    """Makes message ids. Not for threads: the owner is the task that sends.

    `ip` is 4 or 16 bytes, `process_id` is cut to 16 bits, `process_hash` to 32 (Java uses the class loader's hash).
    Makers with the same three values need a `counter` in common.
    """

    def __init__(
        self,
        ip: bytes,
        process_id: int,
        process_hash: int,
        now_ms: Callable[[], int],
        *,
        counter: Iterator[int] | None = None,
    ) -> None:
        fixed = ip + (process_id & 0xFFFF).to_bytes(2, "big") + (process_hash & 0xFFFFFFFF).to_bytes(4, "big")
        self._prefix = fixed.hex().upper()
        self._now_ms = now_ms
        self._month_start_ms = self._month_end_ms = 0
        self._counter = counter or itertools.count()
        self._last_ms = -1
        self._head = ""

    def next(self) -> str:
        """The next id. Ids of one counter differ as long as fewer than 65536 are made in a millisecond."""
        now_ms = self._now_ms()
        if now_ms != self._last_ms:
            self._last_ms = now_ms
            self._head = self._prefix + self._moment(now_ms)
        return f"{self._head}{next(self._counter) & 0xFFFF:04X}"

    def _moment(self, now_ms: int) -> str:
        if now_ms >= self._month_end_ms:
            self._month_start_ms, self._month_end_ms = month_around(now_ms)
        # If the clock was set back into the month before, the time counts as the start of the month, as in Java.
        elapsed_ms = max(now_ms - self._month_start_ms, 0)
        return f"{elapsed_ms & 0xFFFFFFFF:08X}"


def decode_unique_id(text: str, now_ms: int) -> UniqueId:
    """`now_ms` decides the month. Raises BodyError unless `text` is 32 or 56 hexadecimal characters."""
    raw = bytes_of_id(text, "a unique message id")
    elapsed_ms = int.from_bytes(raw[-6:-2], "big")
    month_start_ms, _ = month_around(now_ms)
    if month_start_ms + elapsed_ms >= now_ms:
        month_start_ms, _ = month_around(month_start_ms - 1)
    return UniqueId(
        ip=raw[:-12],
        process_id=int.from_bytes(raw[-12:-10], "big"),
        process_hash=int.from_bytes(raw[-10:-6], "big"),
        created_ms=month_start_ms + elapsed_ms,
        counter=int.from_bytes(raw[-2:], "big"),
    )


def month_around(moment_ms: int) -> tuple[int, int]:
    """First and end (exclusive) of the local month that holds `moment_ms`, in epoch milliseconds."""
    start = datetime.fromtimestamp(moment_ms / 1000).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    year, month = (start.year + 1, 1) if start.month == 12 else (start.year, start.month + 1)
    end = start.replace(year=year, month=month)
    return int(start.timestamp() * 1000), int(end.timestamp() * 1000)
