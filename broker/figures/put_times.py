"""How long appends took in the last whole minute: their distribution, and its 99th and 99.9th percentile.

The store counts its appends in thirteen classes of time since the start; this file compares the counts once a minute.
Percentiles are interpolated inside a class, which is finer below 1 ms and coarser above than in the official broker.
Mirrors the put times of `StoreStatsService`.
"""

from collections.abc import Sequence
from typing import Final

from pocketmq.store.put_statistics import PUT_TIME_LIMITS_MS

_CLASS_ENDS_MS: Final = (1, *PUT_TIME_LIMITS_MS[1:], 60_000)
"""The upper limit of each class for interpolation; the last class has none, so a minute is used."""
_MINUTE_MS: Final = 60_000


class PutTimes:
    """Owned by the event loop. `roll` is due every second."""

    def __init__(self, now_ms: int) -> None:
        self._minute_start_ms = now_ms
        self._before = [0] * len(_CLASS_ENDS_MS)
        self.counts = [0] * len(_CLASS_ENDS_MS)
        """Appends of the last whole minute by class; all 0 in the first minute."""

    def roll(self, now_ms: int, counts: Sequence[int]) -> None:
        """Close the minute if it is over. `counts` are the store's counts since the start."""
        if 0 <= now_ms - self._minute_start_ms < _MINUTE_MS:
            return
        self._minute_start_ms = now_ms
        self.counts = [now - before for now, before in zip(counts, self._before, strict=True)]
        self._before = list(counts)

    def percentile_ms(self, share: float) -> float:
        """The time that `share` (0 to 1) of the last whole minute's appends did not exceed; 0 without appends."""
        wanted = int(sum(self.counts) * share)
        passed = lower_ms = 0
        for end_ms, count in zip(_CLASS_ENDS_MS, self.counts, strict=True):
            if wanted <= passed + count:
                return lower_ms + ((end_ms - lower_ms) * (wanted - passed) / count if count else 0.0)
            passed += count
            lower_ms = end_ms
        return float(lower_ms)
