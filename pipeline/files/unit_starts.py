"""Where records begin, as the consume queues of a store say it: quicker than any walk, and believed only as far as the
log itself agrees.

    units of Orders 0:  0        620        ...      units of Orders 1:  310      930     ...
    sorted together:    0  310  620  930             each must be a record that ends where the next one begins

Records without a unit (of deleted topics, of transactions, not dispatched yet) break the chain. The walk continues
there as without queues, so the result is always that of `walk_records`.
"""

from bisect import bisect_left
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..records.boundaries import AT_END, Positions, RecordWalk
from ..records.lanes import prove_starts, walk_window
from .consume_queues import UNIT, queue_folders
from .mapped_file import FILE_NAME

MOST_QUEUES: Final = 256
"""With more queues, each has too few units in a window of the log to be worth the search."""
LEAST_PROVED: Final = 0.5
"""The share of a window's units that must have been proved for the next window to ask the queues again."""


class UnitStarts:
    """The positions in the units of all queues of a store, by place in the log. `root` is the folder of the queues."""

    def __init__(self, root: str, base: int) -> None:
        """`base` is the log position of byte 0 of the file that is walked."""
        self._base = base
        self._queues: list[list[Any]] = []
        try:
            folders = [folder for _, _, folder in queue_folders(Path(root), frozenset())]
            if len(folders) <= MOST_QUEUES:
                self._queues = [_written_files(folder) for folder in folders]
        except OSError:  # a topic is just being deleted
            self._queues = []

    def walk(self, data: memoryview, position: int, end: int) -> RecordWalk:
        """The same as `walk_window(data, position, end, base)`."""
        if not self._queues:
            return walk_window(data, position, end, self._base)
        guesses = self._between(position, end)
        starts, stop = prove_starts(data, guesses, position)
        if len(starts) < LEAST_PROVED * len(guesses) or not len(starts):
            self._queues = []
        if stop >= end:
            return RecordWalk(starts, stop, AT_END)
        rest = walk_window(data, stop, end, self._base)
        if not len(starts):
            return rest
        return RecordWalk(np.concatenate((starts, rest.starts)), rest.stop, rest.reason)

    def _between(self, position: int, end: int) -> Positions:
        """The positions in units that point into [position, end), ascending."""
        lo, hi = position + self._base, end + self._base
        pieces = []
        for files in self._queues:
            for positions in files:
                if len(positions) and positions[-1] >= lo and positions[0] < hi:
                    first = bisect_left(positions, lo)
                    pieces.append(positions[first : bisect_left(positions, hi, first)].astype(np.int64))
        if not pieces:
            return np.empty(0, dtype=np.int64)
        guesses: Positions = np.sort(np.concatenate(pieces), kind="stable")  # merges rising pieces
        # Those of a damaged queue need not rise, so that its piece may reach further.
        guesses = guesses[bisect_left(guesses, lo) : bisect_left(guesses, hi)]
        is_repeated = guesses[1:] == guesses[:-1]
        if is_repeated.any():  # a record may have units in several queues
            guesses = guesses[np.append(True, ~is_repeated)]
        guesses -= self._base
        return guesses


def _written_files(folder: Path) -> list[Any]:
    """The positions in the written units of each file of a queue, as arrays over the mapped files."""
    found = []
    for path in sorted(path for path in folder.iterdir() if FILE_NAME.fullmatch(path.name)):
        count = path.stat().st_size // UNIT.itemsize
        if count:
            mapped = np.memmap(path, dtype=UNIT, mode="r", shape=(count,))
            # After the last written unit are zeros.
            empty = partial(_is_empty, mapped["size"])
            written = bisect_left(range(count), True, key=empty)
            found.append(np.asarray(mapped["position"][:written]))
    return found


def _is_empty(sizes: Any, row: int) -> bool:
    return bool(sizes[row] == 0)
