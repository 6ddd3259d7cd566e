"""How long storing took in the last whole minute: the distribution and its 99 and 99.9 per cent points.

The store counts its appends in thirteen classes since the start; here those counts are compared once a minute. The
points are interpolated inside a class, which is finer below 1 ms and coarser above than the official reckoning.
Mirrors the put times of `StoreStatsService`.
"""

from collections.abc import Sequence
from typing import Final

from pocketmq.store.put_statistics import PUT_TIME_LIMITS_MS

_CLASS_ENDS_MS: Final = (1, *PUT_TIME_LIMITS_MS[1:], 60_000)
"""Where each class ends for interpolation; the last has no end, a minute counts for it."""
_MINUTE_MS: Final = 60_000


class PutTimes:
    """Owned by the event loop. `roll` is due every second."""

    def __init__(self, now_ms: int) -> None:
        self._minute_start_ms = now_ms
        self._before = [0] * len(_CLASS_ENDS_MS)
        self.counts = [0] * len(_CLASS_ENDS_MS)
        """Appends of the last whole minute by class; all 0 in the first minute."""

    def roll(self, now_ms: int, counts: Sequence[int]) -> None:
        """Close the minute if it is over. `counts` are the store's, since the start."""
        if 0 <= now_ms - self._minute_start_ms < _MINUTE_MS:
            return
        self._minute_start_ms = now_ms
        self.counts = [now - before for now, before in zip(counts, self._before, strict=True)]
        self._before = list(counts)

    def percentile_ms(self, share: float) -> float:
        """The time below which `share` (0 to 1) of the last whole minute's appends stayed; 0 without appends."""
        wanted = int(sum(self.counts) * share)
        passed = lower_ms = 0
        for end_ms, count in zip(_CLASS_ENDS_MS, self.counts, strict=True):
            if wanted <= passed + count:
                return lower_ms + ((end_ms - lower_ms) * (wanted - passed) / count if count else 0.0)
            passed += count
            lower_ms = end_ms
        return float(lower_ms)
