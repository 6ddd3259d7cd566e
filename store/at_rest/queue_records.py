"""The records of one queue as the log holds them: queue offset, position and size of each, in 20 bytes.

A log may hold a hundred million. Queue offsets rise; one that is 0 again begins another life of the queue: its topic
was deleted and created anew, and the records before belong to no queue any more.
"""

from array import array
from bisect import bisect_left

Placed = tuple[int, int]
"""Position and size of a record."""


class QueueRecords:
    """Filled in the order of the log."""

    __slots__ = ("_by_number", "_numbers", "_positions", "_rises", "_sizes", "older")

    def __init__(self) -> None:
        self.older = 0
        """Records of earlier lives of the queue."""
        self._clear()

    def _clear(self) -> None:
        self._numbers, self._positions, self._sizes = array("q"), array("q"), array("i")
        self._rises = True
        self._by_number: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int, position: int, size: int) -> None:
        """The record of a queue offset, behind all that were added."""
        numbers = self._numbers
        if numbers and number <= numbers[-1]:
            if number == 0:
                self.older += len(numbers)
                self._clear()
            else:
                self._rises = False  # damage
        self._numbers.append(number)
        self._positions.append(position)
        self._sizes.append(size)

    def index(self, number: int) -> int:
        """The place of a queue offset among them, -1 without one; the last one if there are several."""
        if not self._rises:
            if not self._by_number:
                self._by_number = {one: at for at, one in enumerate(self._numbers)}
            return self._by_number.get(number, -1)
        at = bisect_left(self._numbers, number)
        return at if at < len(self._numbers) and self._numbers[at] == number else -1

    def place_of(self, index: int) -> Placed:
        return self._positions[index], self._sizes[index]

    def number(self, index: int) -> int:
        return self._numbers[index]

    @property
    def end(self) -> int:
        """Behind the highest queue offset; 0 without records."""
        return max(self._numbers, default=-1) + 1
