"""The counters of one series of messages, their snapshots, and the figures of a window of snapshots.

A window is the difference of its last and first snapshot (315); `Throughput` and `DayTotals` are the rates and totals
of 28. `statistics.py` has the series of a broker.
"""

from collections import deque
from datetime import datetime
from typing import Final

from pocketmq.protocol.bodies.broker import BrokerStatsItem

TPS_SPANS_SECONDS: Final = (10, 60, 600)
WINDOWS: Final = (("minute", 10_000), ("hour", 600_000), ("day", 3_600_000))

MOST_SNAPSHOTS: Final = 25

Totals = tuple[int, int, int, int]
"""Messages stored, reads that found something, reads that found nothing, messages delivered: since the start."""

_Sum = tuple[int, int, int, int]
"""(time in ms, calls, messages, bytes)"""


class Traffic:
    """Sums since the start of one series, and their snapshots."""

    __slots__ = ("calls", "count", "day", "hour", "minute", "size_bytes", "total")

    def __init__(self, total: "Traffic | None" = None) -> None:
        self.calls = 0
        self.count = 0
        self.size_bytes = 0
        self.total = total
        """The series over all topics, which counts the same messages."""
        self.minute: deque[_Sum] = deque(maxlen=7)
        self.hour: deque[_Sum] = deque(maxlen=7)
        self.day: deque[_Sum] = deque(maxlen=MOST_SNAPSHOTS)

    def add(self, count: int, size_bytes: int, calls: int = 1) -> None:
        """Count messages here and in the total."""
        self.calls += calls
        self.count += count
        self.size_bytes += size_bytes
        total = self.total
        if total is not None:  # it has no total itself
            total.calls += calls
            total.count += count
            total.size_bytes += size_bytes

    def snapshot(self, window: str, step_ms: int, now_ms: int) -> None:
        sums: deque[_Sum] = getattr(self, window)
        if not sums:
            sums.append((now_ms - step_ms, 0, 0, 0))
        sums.append((now_ms, self.calls, self.count, self.size_bytes))


class Throughput:
    """The store's totals of stored and read messages, one snapshot a second."""

    def __init__(self) -> None:
        self._sums: deque[tuple[int, int, int, int, int]] = deque(maxlen=TPS_SPANS_SECONDS[-1] + 1)

    def snapshot(self, now_ms: int, stored: int, found: int, missed: int, transferred: int) -> None:
        self._sums.append((now_ms, stored, found, missed, transferred))

    def fill_gap(self, since_ms: int, now_ms: int, totals: Totals) -> None:
        """Take a snapshot of the present totals for each second between two times."""
        seconds = (now_ms - since_ms) // 1000
        for second in range(max(seconds - TPS_SPANS_SECONDS[-1], 1), seconds):
            self.snapshot(since_ms + second * 1000, *totals)

    def stored(self, seconds: int) -> float | None:
        """Messages a second over the last `seconds`; `None` until that many snapshots exist."""
        return self._mean(1, seconds)

    def found(self, seconds: int) -> float | None:
        """Reads a second that found something."""
        return self._mean(2, seconds)

    def missed(self, seconds: int) -> float | None:
        """Reads a second that found nothing."""
        return self._mean(3, seconds)

    def transferred(self, seconds: int) -> float | None:
        """Messages a second delivered to readers."""
        return self._mean(4, seconds)

    def _mean(self, field: int, seconds: int) -> float | None:
        sums = self._sums
        if len(sums) <= seconds:
            return None
        first, last = sums[-(seconds + 1)], sums[-1]
        elapsed_ms = last[0] - first[0]
        return (last[field] - first[field]) / elapsed_ms * 1000.0 if elapsed_ms > 0 else 0.0


class DayTotals:
    """Messages stored and read until this morning and until yesterday morning (since the start of the broker)."""

    def __init__(self, now_ms: int) -> None:
        self.put_yesterday_morning = self.put_today_morning = 0
        self.got_yesterday_morning = self.got_today_morning = 0
        self._day = _local_day(now_ms)

    def roll(self, now_ms: int, put: int, got: int) -> None:
        """Keep the sums when a local day begins."""
        day = _local_day(now_ms)
        if day <= self._day:
            return
        self._day = day
        self.put_yesterday_morning, self.put_today_morning = self.put_today_morning, put
        self.got_yesterday_morning, self.got_today_morning = self.got_today_morning, got


def window_of(sums: deque[_Sum], *, in_bytes: bool, with_calls: bool) -> BrokerStatsItem:
    if not sums:
        return BrokerStatsItem()
    first, last = sums[0], sums[-1]
    field = 3 if in_bytes else 2
    total = last[field] - first[field]
    calls = last[1] - first[1] if with_calls else 0
    elapsed_ms = last[0] - first[0]
    return BrokerStatsItem(
        sum=total,
        tps=total * 1000.0 / elapsed_ms if elapsed_ms > 0 else 0.0,
        avgpt=total / calls if calls > 0 else 0.0,
    )


def sum_of(left: Traffic, right: Traffic) -> Traffic:
    """The sum of two series whose snapshots were taken at the same times."""
    both = Traffic()
    both.count = left.count + right.count
    for window, _ in WINDOWS:
        pairs = zip(getattr(left, window), getattr(right, window), strict=True)
        getattr(both, window).extend((a[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]) for a, b in pairs)
    return both


def _local_day(now_ms: int) -> int:
    return datetime.fromtimestamp(now_ms / 1000).toordinal()
