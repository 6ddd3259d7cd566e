"""Latencies as a histogram of bounded size, exact to within 1 %.

microseconds   0 .. 255      one bucket each
               256 ..        128 buckets for each doubling
"""

from collections import defaultdict

_BITS = 8
"""Leading bits that are kept."""


class Latencies:
    """Add seconds, get percentiles in ms."""

    def __init__(self) -> None:
        self.count = 0
        self.max_ms = 0.0
        self._buckets: defaultdict[int, int] = defaultdict(int)

    def add(self, seconds: float, count: int = 1) -> None:
        """Add `count` latencies of this length. A negative one (the clock was set back) counts as 0."""
        microseconds = max(0, int(seconds * 1e6))
        shift = max(0, microseconds.bit_length() - _BITS)
        self._buckets[shift << _BITS | microseconds >> shift] += count
        self.count += count
        if seconds * 1000 > self.max_ms:
            self.max_ms = seconds * 1000

    def percentile_ms(self, percent: float) -> float:
        """The latency that `percent` per cent do not exceed; 0 if none was added."""
        wanted = self.count * percent / 100
        seen = 0
        for key in sorted(self._buckets):
            seen += self._buckets[key]
            if seen >= wanted:
                shift = key >> _BITS
                highest = (((key & (1 << _BITS) - 1) + 1) << shift) - 1
                return min(highest / 1000, self.max_ms) if shift else highest / 1000
        return 0.0
