"""Actions that a broker repeats: each part lists its own (`Periodic`), `PeriodicActions` runs them.

The next period starts when the action ends. An action that fails is logged and repeated. If the period is a setting, a
changed value applies from the next period on.

An action that visits everything a broker has is a generator: each `next` is one item, and each loop iteration handles a
limited number of them. If its period is over before its end, it is not started a second time.

An action with `next_due` belongs to the broker's clock, which may be virtual. One without it belongs to the wall's
time for ever, for example the saving of a table.
"""

import logging
from collections.abc import Callable, Generator, Iterable
from functools import partial
from itertools import islice
from typing import NamedTuple

from .slices import ITEMS_IN_A_TURN
from .timers import LoopRepeat, NextDue, Timer, Timers

_log = logging.getLogger("pocketmq.time")


class Periodic(NamedTuple):
    name: str
    seconds: float | Callable[[], float]
    action: Callable[[], object]
    next_due: NextDue | None = None
    """From which time on the action has work: periods before are skipped in virtual time."""
    is_event: bool = False
    """Whether clients see what it does, so that virtual time can move to it."""
    samples_gaps: bool = False
    """Whether the action, once virtual time has moved, fills in what all the periods since would have recorded."""
    also_in_real_time: bool = False
    """In virtual time, repeat the action by the wall's time too."""


class PeriodicActions:
    """One timer for each action. `start` and `stop` mirror each other."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._repeated: list[Timer] = []
        self._actions: list[_Action] = []

    def start(self, actions: Iterable[Periodic]) -> None:
        """Start the timers; each action first runs after one period."""
        timers = self._timers
        for periodic in actions:
            seconds = periodic.seconds if callable(periodic.seconds) else partial(float, periodic.seconds)
            action, next_due = _Action(periodic, timers), periodic.next_due
            self._actions.append(action)
            if next_due is not None:
                of_clock = {"is_event": periodic.is_event, "samples_gaps": periodic.samples_gaps}
                self._repeated.append(timers.repeat(seconds, action, next_due, **of_clock))
            if next_due is None or (periodic.also_in_real_time and timers.is_virtual):
                self._repeated.append(LoopRepeat(seconds, action))

    def stop(self) -> None:
        for timer in self._repeated:
            timer.cancel()
        self._repeated.clear()
        for action in self._actions:
            action.stop()
        self._actions.clear()


class _Action:
    def __init__(self, periodic: Periodic, timers: Timers) -> None:
        self._periodic = periodic
        self._timers = timers
        self._rest: Generator[object] | None = None
        """What is left of an action that takes several loop iterations."""

    def __call__(self) -> None:
        if self._rest is None:
            self._rest = self._steps()
            self._go_on()

    def stop(self) -> None:
        self._rest = None

    def _steps(self) -> Generator[object]:
        result = self._periodic.action()
        if isinstance(result, Generator):
            yield from result

    def _go_on(self) -> None:
        rest = self._rest
        if rest is None:
            return
        try:
            is_over = sum(1 for _ in islice(rest, ITEMS_IN_A_TURN)) < ITEMS_IN_A_TURN
        except Exception:
            _log.exception("periodic action %s failed", self._periodic.name)
            is_over = True
        if is_over:
            self._rest = None
        else:
            self._timers.call_soon(self._go_on)
