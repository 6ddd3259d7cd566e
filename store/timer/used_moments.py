"""Finds the next moment with messages, without reading the wheel slot by slot.

One byte stands for 64 slots of the wheel: 0 if none of them was used in this lap. A byte that says more than is true
costs 64 looks at the wheel, once. In memory only; made from the wheel when it is opened. Owner: the event-loop thread.
"""

from collections.abc import Callable
from typing import Final

from .timer_wheel import SLOTS

GROUP: Final = 64
GROUPS: Final = SLOTS // GROUP
assert GROUPS * GROUP == SLOTS


class UsedMoments:
    """Moments are numbers here: ms divided by the precision."""

    def __init__(self) -> None:
        self._groups = bytearray(GROUPS)

    def add(self, number: int) -> None:
        self._groups[number // GROUP % GROUPS] = 1

    def clear(self) -> None:
        self._groups = bytearray(GROUPS)

    def first(self, number: int, last: int, is_used: Callable[[int], bool]) -> int | None:
        """The first moment from `number` to `last` for which `is_used` is true; they are less than a lap apart."""
        groups = self._groups
        while number <= last:
            group = number // GROUP % GROUPS
            next_group = (number // GROUP + 1) * GROUP
            if groups[group]:
                for moment in range(number, min(next_group, last + 1)):
                    if is_used(moment):
                        return moment
                if number == next_group - GROUP and next_group <= last + 1:
                    groups[group] = 0  # nothing was found in all of it: it was used in an earlier lap
            found = groups.find(1, group + 1)
            if found < 0:
                found = groups.find(1, 0, group + 1)
                if found < 0:
                    return None
                found += GROUPS
            number = next_group + (found - group - 1) * GROUP
        return None
