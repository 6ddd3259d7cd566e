"""The part of a broker that keeps messages until they are due: delay levels, and the timer of the 5.x line."""

from pocketmq.store.timer.timer_checkpoint import TimerCheckpoint

from ..state.broker_state import BrokerState
from ..state.part import Part
from ..time.periodic import Periodic
from .delay_levels import DelayLevels
from .timer import MessageTimer

SAMPLE_SECONDS = 1.0


class Delayed(Part):
    """`start` and `stop` mirror each other."""

    def __init__(self, state: BrokerState) -> None:
        super().__init__(state)
        self.levels = DelayLevels(state)
        self.timer = MessageTimer(state)

    def start(self) -> None:
        self.levels.start()
        self.timer.start()

    def stop(self) -> None:
        """Stop delivering delay levels. The timer runs until `close`, because it may be in the middle of a slot."""
        self.levels.stop()

    def rewind(self, mark: TimerCheckpoint | None) -> None:
        """Follow the queues, which went back to their state at the mark (`MessageTimer.mark`)."""
        self.levels.stop()
        self.timer.rewind(mark)
        self.levels.start()

    def close(self) -> None:
        """Finish the current slot and save the timer."""
        self.timer.stop()

    def abandon(self) -> None:
        """Stop at once, and save nothing."""
        self.levels.stop()
        self.timer.stop(saves=False)

    def periodic(self) -> tuple[Periodic, ...]:
        timer = self.timer
        return (
            Periodic(
                "timer rates",
                SAMPLE_SECONDS,
                lambda: timer.sample(self.clock.now_ms()),
                next_due=lambda: None,
                samples_gaps=True,
            ),
        )
