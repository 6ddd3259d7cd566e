"""Dispatch that waits for the disk: what was appended is kept until the log is forced up to it (SYNC_FLUSH).

Reading the records back from the log, as `log_dispatch.py` does, would give the same, but costs the scanning and the
properties of each. So nothing here must be right for a message to be found: if something is kept too long, is not in
one piece with what was dispatched before, or cannot be dispatched, it is forgotten and read from the log.
Owner: the event-loop thread.
"""

from collections import deque

from ..put_values import Placed
from .dispatch import Dispatcher

MAX_DEFERRED = 10_000
"""Appends."""
MAX_DEFERRED_BYTES = 64 << 20
"""Of their records in the log, of which only the property texts are kept."""


class DeferredDispatch:
    """Appends in the order of the log."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._deferred: deque[Placed] = deque()

    def __len__(self) -> int:
        return len(self._deferred)

    def defer(self, placed: Placed) -> None:
        """Keep what was appended behind what is deferred."""
        deferred = self._deferred
        if deferred and (
            len(deferred) >= MAX_DEFERRED or placed.end - deferred[0].positions[0] > MAX_DEFERRED_BYTES
        ):
            deferred.clear()
        deferred.append(placed)

    def clear(self) -> None:
        """Forget everything."""
        self._deferred.clear()

    def run(self, limit: int) -> None:
        """Dispatch what lies before a log position and follows what was dispatched. Raises StoreError as the calls do;
        then everything is forgotten."""
        deferred, dispatcher = self._deferred, self._dispatcher
        try:
            while deferred:
                placed = deferred[0]
                position = placed.positions[0]
                if position >= dispatcher.position:
                    if position > dispatcher.position or placed.end > limit:
                        return
                    dispatcher.dispatch(placed)
                deferred.popleft()
        except BaseException:
            deferred.clear()
            raise
