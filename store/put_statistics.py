"""Counters of appends, for runtime information and metrics: how many messages, how many bytes, how long.

Plain numbers on the append path; rates are computed by their reader. Official class: StoreStatsService.
"""

import time

SLOW_NS = 1_000_000
PUT_TIME_LIMITS_MS = (0, 10, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000, 10000)
"""Upper ends of the classes of putMessageDistributeTime; the first is "below 1 ms", the last class has no end."""


class PutStatistics:
    """Owner: the event-loop thread."""

    __slots__ = ("bytes", "entire_time_max_ms", "failed", "messages", "slow")

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.failed = 0
        self.entire_time_max_ms = 0
        self.slow = [0] * len(PUT_TIME_LIMITS_MS)
        """Appends that took 1 ms or more, by class; the rest were faster."""

    def count(self, messages: int, size: int, started_ns: int) -> None:
        """Count an append of some messages; `started_ns` is from `time.perf_counter_ns`."""
        self.messages += messages
        self.bytes += size
        elapsed_ns = time.perf_counter_ns() - started_ns
        if elapsed_ns >= SLOW_NS:
            self.count_slow_append(elapsed_ns // SLOW_NS)

    def count_slow_append(self, elapsed_ms: int) -> None:
        """Note an append of a millisecond or more."""
        self.entire_time_max_ms = max(self.entire_time_max_ms, elapsed_ms)
        for number, limit_ms in enumerate(PUT_TIME_LIMITS_MS[1:]):
            if elapsed_ms < limit_ms:
                self.slow[number] += 1
                return
        self.slow[-1] += 1

    def distribution(self) -> list[tuple[str, int]]:
        """The official classes with their names, `<=0ms` first."""
        names = "<=0ms 0~10ms 10~50ms 50~100ms 100~200ms 200~500ms 500ms~1s 1~2s 2~3s 3~4s 4~5s 5~10s 10s~"
        fast = self.messages - sum(self.slow)
        return list(zip(names.split(), [fast, *self.slow], strict=True))
