"""The timers of several brokers that share one virtual clock: `virtual_time.py` moves them as those of one broker.

    clock   one VirtualClock
    own     timers of the clock's owner: they stay while brokers stop and start
    b0 ...  the timers of each broker that runs

What is due first runs first, whichever broker has set it. Owned by the event loop.
"""

from pocketmq.store import VirtualClock

from .virtual_timers import VirtualTimers


class SharedClockTimers:
    """`join` and `leave` mirror each other; a broker that stops takes its timers with it."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.own = VirtualTimers(clock)
        self._all = [self.own]
        self._fired = 0
        """Callbacks of those that have left."""

    def join(self) -> VirtualTimers:
        """Timers for one more broker."""
        timers = VirtualTimers(self.clock)
        self._all.append(timers)
        return timers

    def leave(self, timers: VirtualTimers) -> None:
        """Drop the timers of a broker. Does nothing if it has left."""
        if timers in self._all:
            self._all.remove(timers)
            self._fired += timers.fired
            timers.forget()

    # -- see `VirtualTimers`

    @property
    def fired(self) -> int:
        return self._fired + sum(one.fired for one in self._all)

    @property
    def is_at_rest(self) -> bool:
        return all(one.is_at_rest for one in self._all)

    def next_event_ms(self) -> int | None:
        times = [at_ms for one in self._all if (at_ms := one.next_event_ms()) is not None]
        return min(times, default=None)

    def run_next(self, until_ms: int) -> bool:
        first: VirtualTimers | None = None
        for one in self._all:
            at_ms = one.next_due_ms(until_ms)
            if at_ms is not None and (first is None or at_ms < until_ms):
                first, until_ms = one, at_ms
        if first is None:
            return False
        self.move_to(until_ms)
        return first.run_next(until_ms)

    def move_to(self, at_ms: int) -> None:
        if at_ms > self.clock.elapsed_ms:
            self.clock.advance(at_ms - self.clock.elapsed_ms)
            for one in list(self._all):
                one.fill_gaps()
