"""Dispatch that waits for the disk: what was appended is kept in hand until the log is forced up to it (SYNC_FLUSH).

Reading the records back from the log, as `log_dispatch.py` does, would give the same, but costs the scanning and the
properties of each. So nothing here must be right for a message to be found: if something is kept too long, is not in
one piece with what was dispatched before, or cannot be dispatched, it is forgotten and read from the log.
Owner: the event-loop thread.
"""

from collections import deque

from ..put_values import Placed
from .dispatch import Dispatcher

MOST_HELD = 10_000
"""Appends."""
MOST_HELD_BYTES = 64 << 20
"""Of their records in the log, of which only the property texts are kept."""


class HeldDispatch:
    """Appends in the order of the log."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._held: deque[Placed] = deque()

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, placed: Placed) -> None:
        """Keep what was appended behind what is held."""
        held = self._held
        if held and (len(held) >= MOST_HELD or placed.end - held[0].positions[0] > MOST_HELD_BYTES):
            held.clear()
        held.append(placed)

    def clear(self) -> None:
        """Forget everything."""
        self._held.clear()

    def run(self, limit: int) -> None:
        """Dispatch what lies before a log position and follows what was dispatched. Raises StoreError as the calls do;
        then everything is forgotten."""
        held, dispatcher = self._held, self._dispatcher
        try:
            while held:
                placed = held[0]
                position = placed.positions[0]
                if position >= dispatcher.position:
                    if position > dispatcher.position or placed.end > limit:
                        return
                    dispatcher.dispatch(placed)
                held.popleft()
        except BaseException:
            held.clear()
            raise
