"""Which offset of a copy belongs to which offset of its source: pieces of both, in memory and as lines of JSON.

    {"topic":"T","broker":"a","queue":0,"first":100,"last":199,"toBroker":"b","toQueue":0,"toFirst":40}

Messages [first, last] of a queue were stored as toFirst, toFirst + 1, ... of another. A group that is at an offset of
the source continues at the translated offset of the copy. A piece that continues the one before makes one with it, so a
queue that only the mirror writes to is one piece. Of a queue with more than `MAX_PIECES` the oldest are merged two by
two. A merged piece has "toLast": a group inside it continues at its first copy, and so reads some messages again rather
than missing some.

The file is appended to, and written anew when most of its lines are history. A run that was killed may repeat its last
pieces, and the later line is right; a line that it did not finish is dropped.
"""

import json
import os
import shutil
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import OptionError
from ..planning.positions import Queue

MAX_PIECES: Final = 10_000
"""Pieces of a queue that are kept."""
SPARE_LINES: Final = 1000
"""The file is written anew when it has twice as many lines as pieces, and so many more."""


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


_BEGIN: Final = '{"topic":'
"""How each line begins."""


class OffsetMap:
    """The pieces of all queues. With a path they are read from it and written to it."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._pieces: dict[Queue, list[Piece]] = {}
        self._lines = 0
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        is_whole = True
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                is_whole = line.endswith("\n")  # else the mirror was killed while it wrote this line
                try:
                    self._keep(*_piece_of(json.loads(line)))
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    if is_whole or not (line.startswith(_BEGIN) or _BEGIN.startswith(line)):
                        raise OptionError(
                            "--map", f": line {number} of {path} is not a piece of an offset map"
                        ) from error
                self._lines = number
        if not is_whole or self._is_mostly_history():
            self._write_anew()

    def add(self, queue: Queue, pieces: Iterable[Piece]) -> None:
        """Remember pieces of a queue, and write them down."""
        rows = []
        for piece in joined(pieces):
            self._keep(queue, piece)
            rows.append(_line(queue, piece))
        if self._path is None or not rows:
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(rows)
        self._lines += len(rows)
        if self._is_mostly_history():
            self._write_anew()

    def _is_mostly_history(self) -> bool:
        return self._lines > 2 * sum(map(len, self._pieces.values())) + SPARE_LINES

    def _write_anew(self) -> None:
        assert self._path is not None
        lines = [_line(queue, piece) for queue, pieces in self._pieces.items() for piece in pieces]
        other = self._path.with_name(f"{self._path.name}.new")
        other.touch(0o600)
        shutil.copymode(self._path, other)
        with other.open("w", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        other.replace(self._path)
        self._lines = len(lines)

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
            half = len(pieces) // 2
            pieces[:half] = _merged(pieces[:half])

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


def _merged(pieces: list[Piece]) -> list[Piece]:
    """Each two as one. What cannot be merged is forgotten, but for the later one."""
    return [
        (first.merged(second) or second) if second is not None else first
        for first, second in zip(pieces[::2], [*pieces[1::2], None], strict=False)
    ]


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
