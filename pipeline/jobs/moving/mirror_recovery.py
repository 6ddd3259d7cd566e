"""Copies that a mirror sent without an answer: it looks whether the target has them, and so sends none twice.

A mirror that is killed, or whose target does not answer, does not know what became of its last request. Neither does
one whose source lost its last offsets: the broker ended without saving them, or a slave that lags answers in its place.
Copies keep the ids of their messages and their order, so all that are not known lie after the copy of the message
before the position.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from ...tables.brokers.broker_client import BrokerClient
from ...tables.brokers.range_reader import RangeReader
from ...tables.planning.positions import Queue
from ...tables.planning.ranges import QueueBounds, Range
from ...tables.planning.topic_options import SourceOptions

MAX_SCANNED: Final = 200_000
"""Messages at the end of a target queue that are looked at: others may write to it too."""
FIRST_LOOK: Final = 1000
"""Messages at the end that are looked at first, then four times as many."""


def ids_of(client: BrokerClient, part: Range, options: SourceOptions) -> list[tuple[str, int]]:
    """(message id, queue offset) of each message of a range."""
    found: list[tuple[str, int]] = []
    for records in RangeReader(client, part, options).batches():
        ids, offsets = (column.to_pylist() for column in records.columns(("msgId", "queueOffset")))
        found += zip(ids, offsets, strict=True)
    return found


def search_begin(
    client: BrokerClient, target: Queue, held: QueueBounds, known: str | None, options: SourceOptions
) -> int:
    """Where unknown copies begin in a target queue: after the last copy of the message `known`.

    Without one, `MAX_SCANNED` before the end.
    """
    least = max(held.low, held.high - MAX_SCANNED)
    end, count = held.high, FIRST_LOOK
    while known is not None and end > least:
        begin = max(end - count, least)
        for message_id, offset in reversed(ids_of(client, Range(target, begin, end), options)):
            if message_id == known:
                return offset + 1
        end, count = begin, count * 4
    return least


def found_copies(wanted: Sequence[str], stored: Iterable[tuple[str, int]]) -> list[int]:
    """The offsets of the copies of the first of the wanted messages, as many as are stored in the same order.

    Other messages between them, and copies that are stored twice, are passed over.
    """
    offsets: list[int] = []
    for message_id, offset in stored:
        if len(offsets) < len(wanted) and message_id == wanted[len(offsets)]:
            offsets.append(offset)
    return offsets
