"""Which offset of a copy belongs to which offset of its source: pieces of both, in memory and as lines of JSON.

    {"topic":"T","broker":"a","queue":0,"first":100,"last":199,"toBroker":"b","toQueue":0,"toFirst":40}

A line is one request: messages [first, last] of a queue were stored as toFirst, toFirst + 1, ... of another. A group
that is at an offset of the source continues at the translated offset of the copy. The file is only appended to; a run
that was killed may repeat its last pieces, and the later line is right.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import OptionError
from ..planning.positions import Queue

MOST_PIECES: Final = 100_000
"""Pieces of a queue that are kept; older ones are forgotten."""


class Piece(msgspec.Struct, frozen=True):
    """Messages [first, last] of a queue, and where the first of them was stored."""

    first: int
    last: int
    target: Queue
    target_first: int

    def translated(self, offset: int) -> int:
        """The offset of the copy of the first message at or after `offset`."""
        return self.target_first + min(max(offset - self.first, 0), self.last - self.first + 1)


class OffsetMap:
    """The pieces of all queues. With a path they are read from it and appended to it."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._pieces: dict[Queue, list[Piece]] = {}
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                row = json.loads(line)
                queue = Queue(row["topic"], row["broker"], row["queue"])
                target = Queue(row.get("toTopic", row["topic"]), row["toBroker"], row["toQueue"])
                self._keep(queue, Piece(row["first"], row["last"], target, row["toFirst"]))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise OptionError(
                    f"--map: line {number} of {path} is not a piece of an offset map"
                ) from error

    def add(self, queue: Queue, pieces: Iterable[Piece]) -> None:
        """Remember pieces of a queue, and write them down."""
        rows = []
        for piece in pieces:
            self._keep(queue, piece)
            rows.append(_row(queue, piece))
        if self._path is not None and rows:
            with self._path.open("a", encoding="utf-8") as file:
                file.writelines(f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows)

    def _keep(self, queue: Queue, piece: Piece) -> None:
        pieces = self._pieces.setdefault(queue, [])
        while pieces and pieces[-1].first >= piece.first:  # copied again after a failure
            pieces.pop()
        pieces.append(piece)
        if len(pieces) > MOST_PIECES:
            del pieces[: MOST_PIECES // 10]

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


def _row(queue: Queue, piece: Piece) -> dict[str, Any]:
    row = {"topic": queue.topic, "broker": queue.broker_name, "queue": queue.queue_id}
    row |= {"first": piece.first, "last": piece.last}
    if piece.target.topic != queue.topic:
        row["toTopic"] = piece.target.topic
    return row | {
        "toBroker": piece.target.broker_name,
        "toQueue": piece.target.queue_id,
        "toFirst": piece.target_first,
    }
