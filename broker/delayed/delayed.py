"""The part of a broker that keeps messages until they are due: delay levels, and the timer of the 5.x line."""

from collections.abc import Iterator

from pocketmq.store.timer.timer_checkpoint import TimerCheckpoint

from ..state.broker_state import BrokerState
from ..state.part import Part
from ..time.periodic import Periodic
from .delay_levels import DelayLevels
from .timer import MessageTimer

SAMPLE_SECONDS = 1.0


class Delayed(Part):
    def __init__(self, state: BrokerState) -> None:
        super().__init__(state)
        self.levels = DelayLevels(state)
        self.timer = MessageTimer(state)

    def rewind(self, mark: TimerCheckpoint | None) -> None:
        """Follow the queues, which went back to their state at the mark (`MessageTimer.mark`)."""
        self.levels.stop()
        self.timer.rewind(mark)
        self.levels.start()

    def periodic(self) -> Iterator[Periodic]:
        sample = self.timer.sample
        yield Periodic("timer rates", SAMPLE_SECONDS, sample, next_due=lambda: None, samples_gaps=True)
