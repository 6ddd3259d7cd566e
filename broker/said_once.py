"""Remembers what the log has said already, so that a reason that users search for is said once, not each second."""

from collections.abc import Hashable
from typing import Final

MAX_REASONS: Final = 1000
"""Reasons remembered; then the oldest is forgotten, and may be said again."""


class SaidOnce:
    """One memory for one kind of reasons. Owner: the event loop's thread."""

    __slots__ = ("_said",)

    def __init__(self) -> None:
        self._said: dict[Hashable, None] = {}

    def first(self, reason: Hashable) -> bool:
        """True for a reason that was not said before; from then on it was."""
        if reason in self._said:
            return False
        if len(self._said) >= MAX_REASONS:
            del self._said[next(iter(self._said))]
        self._said[reason] = None
        return True
