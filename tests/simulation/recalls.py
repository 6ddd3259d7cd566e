"""What producers have recalled: a message whose recall a broker confirmed before it was due is not consumed.

A message whose recall was refused is consumed as any other; one whose recall got no answer may be, or not.
"""

from collections.abc import Callable
from typing import NamedTuple


class Recalled(NamedTuple):
    """What a broker has said of a message."""

    broker_name: str
    at: float


class Recalls:
    """`now` is the loop's time, `violated` gets what must not be."""

    def __init__(self, now: Callable[[], float], violated: Callable[[str], None]) -> None:
        self._now, self._violated = now, violated
        self.asked: set[str] = set()
        """Keys of messages that nobody promises any more."""
        self._recalled: dict[str, Recalled] = {}

    def about_to_recall(self, key: str) -> None:
        self.asked.add(key)

    def refused(self, key: str) -> None:
        """The broker has done nothing."""
        self.asked.discard(key)

    def confirmed(self, key: str, broker_name: str, due: float) -> None:
        """`due` is the first time at which the message may be delivered."""
        if self._now() < due:
            self._recalled[key] = Recalled(broker_name, self._now())

    def consumed(self, group: str, key: str) -> None:
        """A listener has got a message."""
        if key in self._recalled:
            at = self._recalled[key].at
            self._violated(f"{group} got {key}, whose recall is confirmed since {at:.3f} s")

    def power_lost(self, broker_name: str, since: float) -> None:
        """The broker may have lost the recalls that it has confirmed since then."""
        self._recalled = {
            key: one
            for key, one in self._recalled.items()
            if one.broker_name != broker_name or one.at < since
        }
