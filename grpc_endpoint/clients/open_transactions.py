"""The half messages that clients may end now, by topic and transaction id.

A client ends a transaction by topic and id; the broker wants to know where the half message is. A send and a check
remember that, for half a minute. Mirrors the proxy's `TransactionDataManager`. In memory only: after a restart the
broker's check asks the client, and remembers anew.
"""

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final

import msgspec

MOST_KEYS: Final = 100_000
"""Transactions at once; the oldest is forgotten for the next."""


class OpenTransaction(msgspec.Struct, frozen=True):
    """Where a half message is: its offset in the half queue, and its position in the log."""

    queue_offset: int
    position: int
    expires_ms: int


class OpenTransactions:
    """At most `most` places of one transaction: it gets a new one with each check."""

    def __init__(self, now_ms: Callable[[], int], *, expire_ms: int, most: int) -> None:
        self._now_ms = now_ms
        self._expire_ms = expire_ms
        self._most = most
        self._places: dict[tuple[str, str], deque[OpenTransaction]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def remember(self, topic: str, transaction_id: str, queue_offset: int, position: int) -> None:
        """A half message was stored, or put back before a check."""
        key = topic, transaction_id
        places = self._places.pop(key, None)
        if places is None:
            places = deque(maxlen=max(self._most, 1))
            self._make_room()
        places.append(OpenTransaction(queue_offset, position, self._now_ms() + self._expire_ms))
        self._places[key] = places

    def take(self, topic: str, transaction_id: str) -> OpenTransaction | None:
        """The newest place that has not expired; it is forgotten then."""
        places = self._places.get((topic, transaction_id))
        if places is None:
            return None
        place = places.pop()
        if not places or place.expires_ms < self._now_ms():
            del self._places[topic, transaction_id]
        return place if place.expires_ms >= self._now_ms() else None

    def _make_room(self) -> None:
        """Forget what has expired, oldest first, and the oldest if the table is full."""
        now_ms = self._now_ms()
        for key, places in list(islice(self._places.items(), 8)):
            if places[-1].expires_ms < now_ms or len(self._places) >= MOST_KEYS:
                del self._places[key]
