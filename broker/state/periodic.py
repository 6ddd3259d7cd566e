"""Actions that a broker repeats: each part lists its own (`Periodic`), `Timers` runs them on the event loop.

The next period starts when the action ends. An action that fails is logged and repeated. If the period is a setting, a
changed value applies from the next period on.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

_log = logging.getLogger("pocketmq.state")


class Periodic(NamedTuple):
    """One repeated action."""

    name: str
    seconds: float | Callable[[], float]
    action: Callable[[], object]


class Timers:
    """One timer for each action. `start` and `stop` mirror each other."""

    def __init__(self) -> None:
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._is_stopped = False

    def start(self, actions: Iterable[Periodic]) -> None:
        """Start the timers; each action first runs after one period."""
        for periodic in actions:
            self._start(periodic)

    def stop(self) -> None:
        self._is_stopped = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _start(self, periodic: Periodic) -> None:
        name, seconds, action = periodic
        loop = asyncio.get_running_loop()

        def wait_seconds() -> float:
            return seconds() if callable(seconds) else seconds

        def act() -> None:
            try:
                action()
            except Exception:
                _log.exception("periodic action %s failed", name)
            if not self._is_stopped:
                self._timers[name] = loop.call_later(wait_seconds(), act)

        self._timers[name] = loop.call_later(wait_seconds(), act)
