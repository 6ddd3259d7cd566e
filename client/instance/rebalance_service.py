"""When the consumers of an instance rebalance: every 20 s, every second while unbalanced, and early if asked to.

What a round does is `rebalancing/held_queues.py`. Mirrors `RebalanceService`. 4.9 clients rebalance at once when asked
to, and know no unbalanced state.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from ..clock import steady_ms
from .groups import GroupTable

_log = logging.getLogger(__name__)

REBALANCE_INTERVAL_MS: Final = 20_000
REBALANCE_MIN_INTERVAL_MS: Final = 1_000
"""Also the pause after a round that was not balanced."""


def next_round_in_ms(*, balanced: bool) -> int:
    """Pause until the next round, unless one is asked for before."""
    return REBALANCE_INTERVAL_MS if balanced else REBALANCE_MIN_INTERVAL_MS


def early_round_in_ms(now_ms: int, last_round_ms: int) -> int:
    """Pause before a round that is asked for now: it begins at least a second after the last one ended."""
    return max(0, min(REBALANCE_MIN_INTERVAL_MS, last_round_ms + REBALANCE_MIN_INTERVAL_MS - now_ms))


class RebalanceService:
    """One for each instance; `run` is a task of its own."""

    def __init__(self, groups: GroupTable) -> None:
        self._groups = groups
        self._wanted = asyncio.Event()

    def rebalance_now(self) -> None:
        """Ask for a round, also while one runs: another follows it."""
        self._wanted.set()

    async def run(self) -> None:
        """Rounds one after the other, until cancelled."""
        wait_ms = next_round_in_ms(balanced=True)
        last_ms = steady_ms() - REBALANCE_MIN_INTERVAL_MS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ms / 1000):
                    await self._wanted.wait()
            pause_ms = early_round_in_ms(steady_ms(), last_ms)
            if pause_ms > 0:
                await asyncio.sleep(pause_ms / 1000)
            self._wanted.clear()
            wait_ms = next_round_in_ms(balanced=await self._round())
            last_ms = steady_ms()

    async def _round(self) -> bool:
        """One round of every consumer; whether each has what it should have."""
        balanced = True
        for consumer in [*self._groups.consumers.values()]:
            try:
                if not await consumer.rebalance():
                    balanced = False
            except Exception:
                _log.exception("rebalance of %s failed", consumer.group)
                balanced = False
        return balanced
