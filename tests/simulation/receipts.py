"""What gRPC consumers have received, hold and have acknowledged: a message that was acknowledged is not received again,
and one that the server renews for a living client is nobody else's.

A message has one copy only if its producer has sent it once: its key names it then, in every delivery.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from simulation.machines import Life

Named = tuple[str, str]
"""Group and key."""

Place = tuple[str, str, int]
"""Broker name, topic, queue."""


class Held(NamedTuple):
    """A delivery that its client works on, and the server renews."""

    broker_name: str
    life: Life
    at: float


class UnderWay(NamedTuple):
    """A delivery of an ordered group: its queue is closed to others until then."""

    life: Life
    at: float
    until: float


class Acknowledged(NamedTuple):
    """What a broker has said of a message."""

    broker_name: str
    at: float
    is_first: bool
    """Whether it was acknowledged at its first delivery."""


class Receipts:
    """`now` is the loop's time, `violated` gets what must not be."""

    def __init__(self, now: Callable[[], float], violated: Callable[[str], None]) -> None:
        self._now, self._violated = now, violated
        self._held: dict[Named, Held] = {}
        self._acknowledged: dict[Named, Acknowledged] = {}
        self._under_way: defaultdict[tuple[str, Place], dict[int, UnderWay]] = defaultdict(dict)
        """By group and queue, then by offset."""
        self._twice: set[Named] = set()
        self._disturbed_until: defaultdict[str, float] = defaultdict(lambda: -1.0)
        self._clock_changed_at: defaultdict[str, float] = defaultdict(lambda: -1.0)
        self._died_at: defaultdict[str, float] = defaultdict(lambda: -1.0)

    def received(
        self,
        group: str,
        key: str,
        broker_name: str,
        made_at: float,
        asked_at: float,
        renewed_for: Life | None,
    ) -> None:
        """A client has got a message that was sent and asked for at these times; `renewed_for` it, if the server hides
        it as long as the client lives."""
        named = group, key
        if named in self._acknowledged:
            at = self._acknowledged[named].at
            self._violated(f"{group} got {key} again, which is acknowledged since {at:.3f} s")
        held = self._held.pop(named, None)
        if held is not None and held.life.is_alive and self._disturbed_until[held.broker_name] < held.at:
            self._violated(f"{group} got {key}, which is renewed for another client since {held.at:.3f} s")
        if renewed_for is not None and self._has_one_copy(named, broker_name, made_at):
            self._held[named] = Held(broker_name, renewed_for, asked_at)

    def received_in_order(
        self, group: str, place: Place, offsets: list[int], asked_at: float, seconds: float, life: Life
    ) -> None:
        """A client of an ordered group has got these messages of one queue, which are hidden for so long."""
        others = self._under_way[group, place]
        for offset, one in others.items():
            is_closed = one.life.is_alive and self._now() < one.until
            if is_closed and self._disturbed_until[place[0]] < one.at:
                self._violated(
                    f"{group} got {offsets} of {place} while {offset} is under way since {one.at:.3f} s"
                )
        others.clear()
        others.update(dict.fromkeys(offsets, UnderWay(life, asked_at, asked_at + seconds)))

    def ended_in_order(self, group: str, place: Place, offset: int) -> None:
        """Its client has acknowledged a message of an ordered group, or given it back."""
        self._under_way[group, place].pop(offset, None)

    def let_go(self, group: str, key: str) -> None:
        """Its client holds it no more."""
        self._held.pop((group, key), None)

    def may_come_twice(self, group: str, key: str) -> None:
        """Its time was changed, perhaps, and its client does not have the new receipt."""
        self._twice.add((group, key))

    def acknowledged(
        self,
        group: str,
        key: str,
        broker_name: str,
        made_at: float,
        asked_at: float,
        *,
        is_first: bool,
        is_renewed: bool,
    ) -> None:
        """The broker has said so. If its clock has changed since the client asked, it may have taken an old receipt for
        a new one; if it could not store all of a renewal, there are two."""
        changed_at = (self._disturbed_until if is_renewed else self._clock_changed_at)[broker_name]
        if changed_at < asked_at and self._has_one_copy((group, key), broker_name, made_at):
            self._acknowledged[group, key] = Acknowledged(broker_name, self._now(), is_first)

    def _has_one_copy(self, named: Named, broker_name: str, made_at: float) -> bool:
        """A broker that died may have stored a message for the retry twice."""
        return self._died_at[broker_name] < made_at and named not in self._twice

    # -- faults

    def disturbed(self, broker_name: str, seconds: float) -> None:
        """A broker is down, or cannot store, for so long: it renews nothing."""
        until = self._now() + seconds
        self._disturbed_until[broker_name] = max(self._disturbed_until[broker_name], until)

    def clock_changed(self, broker_name: str) -> None:
        self._clock_changed_at[broker_name] = self._now()
        self.disturbed(broker_name, 0)

    def died(self, broker_name: str, since: float) -> None:
        """A broker has ended without saving what is younger than this: the offsets of groups, and those of the messages
        that it has stored for the retry; after a power loss, acks too."""
        self._died_at[broker_name] = self._now()
        if self._disturbed_until[broker_name] >= since:
            since = 0.0
        self._acknowledged = {
            named: ack
            for named, ack in self._acknowledged.items()
            if ack.broker_name != broker_name or (ack.at < since and ack.is_first)
        }
