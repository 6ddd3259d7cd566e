"""Brings timer log and wheel to one state at a start, after any stop, of this broker or an official one.

Units of messages that a power loss took from the commit log are cut from the end of the timer log, so that no message
that gets their place is delivered for them. Units behind the checkpoint's mark are put into the wheel, or all of them
if the wheel cannot be used. If the wheel then names a unit that the log has lost, it is made again.
Owner: the event-loop thread.
"""

import logging
from typing import Protocol

from .timer_log import MAGIC_DELETE, TimerLog, TimerUnit
from .timer_wheel import Slot, TimerWheel

logger = logging.getLogger(__name__)


class Linked(Protocol):
    """The part of a `TimerStore` that recovery uses."""

    log: TimerLog
    wheel: TimerWheel

    def slot(self, due_ms: int) -> Slot | None: ...

    def write_slots(self) -> None: ...

    def link(self, first: int, last: int, due_ms: int, slot: Slot | None, change: int) -> None: ...

    def clear_wheel(self) -> None: ...

    def has_message(self, unit: TimerUnit) -> bool: ...


def recover_log(timers: Linked, forced_to: int, has_snapshots: bool) -> None:
    """`forced_to` is the checkpoint's position in the timer log; `has_snapshots` says that the wheel's file is outdated
    because an official broker kept the wheel in snapshots. Raises StoreError."""
    log, wheel = timers.log, timers.wheel
    if wheel.is_new or not 0 <= forced_to <= log.end or has_snapshots:
        forced_to = 0
        timers.clear_wheel()
    for _ in log.recover(forced_to):
        pass  # only the end is wanted
    lost = log.cut_lost_units(timers.has_message)
    if lost:
        logger.warning("the commit log has lost %d timed messages: they are cut from the timer log", lost)
    _walk(timers, forced_to)
    if log.end < forced_to or any(slot.last >= log.end for slot in wheel.slots()) or wheel.is_damaged:
        logger.warning("timer wheel %s does not fit its log: made again", wheel.path)
        timers.clear_wheel()
        _walk(timers, 0)
    log.files.flushed = min(forced_to, log.end)


def _walk(timers: Linked, begin: int) -> None:
    for position, unit in timers.log.recover(begin):
        slot = timers.slot(unit.due_ms)
        if slot is None or slot.last < position:
            timers.link(position, position, unit.due_ms, slot, -1 if unit.magic & MAGIC_DELETE else 1)
    timers.write_slots()
