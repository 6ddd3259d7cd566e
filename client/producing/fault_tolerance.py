"""Which brokers a producer avoids for a while, because they answered slowly or not at all.

    latency from   50  100  550   1800  3000  5000   15000 ms
    avoided for     0    0  2000  5000  6000  10000  30000 ms

A failed send that isolates counts as 10 s. 4.9 clients: thresholds 50 100 550 1000 2000 3000 15000, times 0 0 30000
60000 120000 180000 600000, a failed send counts as 30 s; nothing is "unreachable". An isolation is prolonged, never
shortened. `queue_choice.py` chooses a queue with this knowledge; `sender.py` probes brokers. Official classes:
MQFaultStrategy, LatencyFaultToleranceImpl.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from ..settings.producer_settings import LATENCY_MAX_MS, NOT_AVAILABLE_DURATION_MS

ISOLATION_LATENCY_MS: Final = 10_000
DETECT_INTERVAL_MS: Final = 2_000
DETECTOR_PERIOD_MS: Final = 3_000
"""The detector looks every so often at which brokers are due."""


class _FaultItem:
    __slots__ = ("available_from_ms", "check_at_ms", "latency_ms", "reachable")

    def __init__(self) -> None:
        self.latency_ms = 0
        self.available_from_ms = 0
        self.check_at_ms = 0
        self.reachable = True


class LatencyFaultTolerance:
    """How the brokers of one producer behaved lately. Owned by the event loop.

    `latency_max_ms` ascending, `not_available_duration_ms` one for each.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        latency_max_ms: Sequence[int] = LATENCY_MAX_MS,
        not_available_duration_ms: Sequence[int] = NOT_AVAILABLE_DURATION_MS,
        detect_interval_ms: int = DETECT_INTERVAL_MS,
    ) -> None:
        self._now_ms = now_ms
        self._latency_max_ms = tuple(latency_max_ms)
        self._duration_ms = tuple(not_available_duration_ms)
        self._detect_interval_ms = detect_interval_ms
        self._items: dict[str, _FaultItem] = {}

    def update(self, broker_name: str, latency_ms: int, *, isolate: bool, reachable: bool) -> None:
        """Note how a send to the broker went."""
        item = self._items.get(broker_name)
        if item is None:
            item = self._items[broker_name] = _FaultItem()
        item.latency_ms = latency_ms
        item.reachable = reachable
        duration_ms = self.not_available_ms(ISOLATION_LATENCY_MS if isolate else latency_ms)
        if duration_ms > 0:
            item.available_from_ms = max(item.available_from_ms, self._now_ms() + duration_ms)

    def not_available_ms(self, latency_ms: int) -> int:
        """How long a broker with this latency is avoided."""
        place = bisect_right(self._latency_max_ms, latency_ms)
        return self._duration_ms[place - 1] if place else 0

    def is_available(self, broker_name: str) -> bool:
        item = self._items.get(broker_name)
        return item is None or self._now_ms() >= item.available_from_ms

    def is_reachable(self, broker_name: str) -> bool:
        item = self._items.get(broker_name)
        return item is None or item.reachable

    def remove(self, broker_name: str) -> None:
        """Forget a broker that has no address any more."""
        self._items.pop(broker_name, None)

    def due_for_detection(self) -> list[str]:
        """Brokers to probe now; each is due again after the interval (official detectByOneRound)."""
        now_ms = self._now_ms()
        due = []
        for name, item in self._items.items():
            if now_ms >= item.check_at_ms:
                item.check_at_ms = now_ms + self._detect_interval_ms
                due.append(name)
        return due

    def note_detected(self, broker_name: str) -> None:
        """A probe was answered: the broker may be used again."""
        item = self._items.get(broker_name)
        if item is not None:
            item.reachable = True
