"""Caches: one bounded by the length of its keys, and two by their number.

What is made of a text is at most some hundred times as large. `functools.lru_cache` counts entries, and one entry may
be made of a text as long as a frame.
"""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")

_ENTRY: Final = 64
"""Length that each entry counts as, besides its own."""
MAX_REASONS: Final = 1000
"""Of `SaidOnce`; then the oldest is forgotten, and may be said again."""


class BoundedCache(Generic[KeyT, ValueT]):
    """The entries used last, up to `max_length` characters in all. Owner: the event loop's thread."""

    __slots__ = ("_entries", "_length", "_max_length")

    def __init__(self, max_length: int) -> None:
        self._max_length = max_length
        self._length = 0
        self._entries: dict[KeyT, tuple[ValueT, int]] = {}

    def get(self, key: KeyT) -> ValueT | None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._entries[key] = entry  # now the newest
        return entry[0]

    def put(self, key: KeyT, value: ValueT, length: int) -> None:
        """Add an entry made of a text of that length; an entry longer than the whole cache is not kept."""
        length += _ENTRY
        if length > self._max_length:
            return
        self._entries[key] = value, length
        self._length += length
        while self._length > self._max_length:
            oldest = next(iter(self._entries))
            self._length -= self._entries.pop(oldest)[1]


class ByKind(dict[KeyT, ValueT]):
    """What was decided, by kinds of a bounded length; all is forgotten when there are too many."""

    def __init__(self, max_kinds: int) -> None:
        super().__init__()
        self._max_kinds = max_kinds

    def keep(self, kind: KeyT, value: ValueT) -> None:
        if len(self) >= self._max_kinds:
            self.clear()
        self[kind] = value


class SaidOnce:
    """What the log has said already, so that a reason that users search for is said once, not each second."""

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
