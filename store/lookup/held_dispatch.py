"""Dispatch that waits for the disk: what was appended is kept in hand until the log is forced up to it (SYNC_FLUSH).

Reading the records back from the log, as `log_dispatch.py` does, would give the same, but costs the scanning and the
properties of each. So nothing here must be right for a message to be found: if something is kept too long, is not in
one piece with what was dispatched before, or cannot be dispatched, it is forgotten and read from the log.
Owner: the event-loop thread.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from .dispatch import Dispatcher

MOST_HELD = 10_000
"""Appends."""
MOST_HELD_BYTES = 64 << 20
"""Of their records; bodies are kept as long."""


class HeldDispatch:
    """Appends in the order of the log, each with the call that dispatches it."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._held: deque[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = deque()

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, position: int, end: int, dispatch: Callable[..., None], *arguments: Any) -> None:
        """Keep the dispatch of records that lie between two log positions."""
        held = self._held
        if held and (len(held) >= MOST_HELD or end - held[0][0] > MOST_HELD_BYTES):
            held.clear()
        held.append((position, end, dispatch, arguments))

    def clear(self) -> None:
        """Forget everything."""
        self._held.clear()

    def run(self, limit: int) -> None:
        """Dispatch what lies before a log position and follows what was dispatched. Raises StoreError as the calls do;
        then everything is forgotten."""
        held, dispatcher = self._held, self._dispatcher
        try:
            while held:
                position, end, dispatch, arguments = held[0]
                if position >= dispatcher.position:
                    if position > dispatcher.position or end > limit:
                        return
                    dispatch(*arguments)
                held.popleft()
        except BaseException:
            held.clear()
            raise
