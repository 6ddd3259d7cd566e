"""Which offset of a copy belongs to which offset of its source: pieces of both, in memory and as lines of JSON.

    {"topic":"T","broker":"a","queue":0,"first":100,"last":199,"toBroker":"b","toQueue":0,"toFirst":40}

Messages [first, last] of a queue were stored as toFirst, toFirst + 1, ... of another. A group that is at an offset of
the source continues at the translated offset of the copy. A piece that continues the one before makes one with it, so a
queue that only the mirror writes to is one piece. Of a queue with more than `MAX_PIECES` some are merged: a piece
is longer the farther it is from the end, as MirrorMaker 2 keeps offsets at powers of two. A merged piece has "toLast":
a group inside it continues at its first copy, and so reads some messages again rather than missing some.

The file is written anew before positions are committed.
"""

import json
import os
import shutil
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from ...errors import OptionError
from ...tables.planning.positions import Queue

MAX_PIECES: Final = 64
"""Pieces of a queue that are kept."""


class Piece(msgspec.Struct, frozen=True):
    """Messages [first, last] of a queue, and where they were stored: the first at `target_first`.

    `target_last` is given if others lie between them.
    """

    first: int
    last: int
    target: Queue
    target_first: int
    target_last: int | None = None

    @property
    def target_end(self) -> int:
        """One past the last copy."""
        if self.target_last is not None:
            return self.target_last + 1
        return self.target_first + self.last - self.first + 1

    def translated(self, offset: int) -> int:
        """The offset of the copy of the first message at or after `offset`; of an earlier one if that is not known."""
        if offset <= self.first:
            return self.target_first
        if offset > self.last:
            return self.target_end
        return self.target_first + (offset - self.first if self.target_last is None else 0)

    def until(self, offset: int) -> "Piece | None":
        """The part before an offset of the source; None if there is none."""
        if offset <= self.first:
            return None
        return self if offset > self.last else msgspec.structs.replace(self, last=offset - 1)

    def joined(self, following: "Piece") -> "Piece | None":
        """One piece for two, if it says the same as both."""
        is_exact = self.target_last is None and following.target_last is None
        continues = following.first == self.last + 1 and following.target_first == self.target_end
        if is_exact and continues and following.target == self.target:
            return msgspec.structs.replace(self, last=following.last)
        return None

    def merged(self, following: "Piece") -> "Piece | None":
        """One piece for two, which says less than both; None if their copies are not in one queue, in order."""
        if following.target != self.target or following.target_first < self.target_end:
            return None
        return Piece(self.first, following.last, self.target, self.target_first, following.target_end - 1)


class OffsetMap:
    """The pieces of all queues. With a path they are read from it, and `save` writes them to it."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._pieces: dict[Queue, list[Piece]] = {}
        self._is_saved = True
        if path is None or not path.exists():
            return
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                try:
                    self._keep(*_piece_of(json.loads(line)))
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise OptionError(
                        "--map", f": line {number} of {path} is not a piece of an offset map"
                    ) from error

    def add(self, queue: Queue, pieces: Iterable[Piece]) -> None:
        """Remember pieces of a queue."""
        for piece in joined(pieces):
            self._keep(queue, piece)
            self._is_saved = False

    def save(self) -> None:
        """Write the file anew if something was added. Whoever reads it has the old one or the new one, whole."""
        if self._path is None or self._is_saved:
            return
        other = self._path.with_name(f"{self._path.name}.new")
        if self._path.exists():
            other.touch(0o600)
            shutil.copymode(self._path, other)
        with other.open("w", encoding="utf-8") as file:
            file.writelines(_line(queue, piece) for queue, pieces in self._pieces.items() for piece in pieces)
            file.flush()
            os.fsync(file.fileno())
        other.replace(self._path)
        self._is_saved = True

    def _keep(self, queue: Queue, piece: Piece) -> None:
        pieces = self._pieces.setdefault(queue, [])
        while pieces and pieces[-1].last >= piece.first:  # copied again after a failure
            before = pieces.pop().until(piece.first)
            if before is not None:
                pieces.append(before)
        longer = pieces[-1].joined(piece) if pieces else None
        if longer is not None:
            pieces[-1] = longer
            return
        pieces.append(piece)
        if len(pieces) > MAX_PIECES:
            _merge_two(pieces)

    def translated(self, queue: Queue, offset: int) -> tuple[Queue, int] | None:
        """Where a group that is at `offset` of the source continues in the copy; None if the map does not know."""
        pieces = self._pieces.get(queue, [])
        number = bisect_right(pieces, offset, key=lambda piece: piece.first) - 1
        if number < 0:
            return None
        piece = pieces[number]
        if offset > piece.last + 1 and number + 1 < len(pieces):  # between two pieces: at the next
            piece = pieces[number + 1]
        return piece.target, piece.translated(offset)


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The same in as few pieces as possible."""
    result: list[Piece] = []
    for piece in pieces:
        longer = result[-1].joined(piece) if result else None
        if longer is None:
            result.append(piece)
        else:
            result[-1] = longer
    return result


def _merge_two(pieces: list[Piece]) -> None:
    """Merge the two neighbours that are shortest for their distance from the end, or forget the first of them."""
    end = pieces[-1].last

    def length(number: int) -> float:
        first, last = pieces[number].first, pieces[number + 1].last
        return (last - first) / (end - last)

    number = min(range(len(pieces) - 2), key=length, default=0)
    pieces[number : number + 2] = [pieces[number].merged(pieces[number + 1]) or pieces[number + 1]]


def _piece_of(row: dict[str, Any]) -> tuple[Queue, Piece]:
    queue = Queue(row["topic"], row["broker"], row["queue"])
    target = Queue(row.get("toTopic", row["topic"]), row["toBroker"], row["toQueue"])
    return queue, Piece(row["first"], row["last"], target, row["toFirst"], row.get("toLast"))


def _line(queue: Queue, piece: Piece) -> str:
    row: dict[str, Any] = {"topic": queue.topic, "broker": queue.broker_name, "queue": queue.queue_id}
    row |= {"first": piece.first, "last": piece.last}
    if piece.target.topic != queue.topic:
        row["toTopic"] = piece.target.topic
    row |= {"toBroker": piece.target.broker_name, "toQueue": piece.target.queue_id}
    row["toFirst"] = piece.target_first
    if piece.target_last is not None:
        row["toLast"] = piece.target_last
    return f"{json.dumps(row, separators=(',', ':'))}\n"
