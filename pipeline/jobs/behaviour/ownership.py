"""Which client read which queue when: from runs of pulls to tenures, gaps and double owners. Pure; no Spark.

A run is a sequence of pulls by one client from one queue, without another client's pull in between. In a hand-over the
owner changes once: A A A B B B. If two clients own a queue at the same time, their pulls alternate: A B A B. So three
changes between the same two clients are a double owner. A B A alone is a queue that was handed over and handed back.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final

import msgspec

ALTERNATIONS: Final = 3
"""With so many changes between the same two clients, both own the queue."""


class OfQueue(msgspec.Struct, frozen=True, order=True):
    """A time in a queue, in seconds since 1970."""

    journal: str
    group: str
    topic: str
    queue_id: int
    begin: float
    end: float

    @property
    def queue(self) -> tuple[str, str, str, int]:
        return self.journal, self.group, self.topic, self.queue_id


class PullRun(OfQueue, frozen=True, order=True):
    """Consecutive pulls of one client.

    `end` is when the last pull was answered or its connection closed: a pull that waits for messages holds its queue.
    """

    client: str
    pulls: int
    messages: int


class DoubleOwner(OfQueue, frozen=True):
    """Two clients that read one queue at the same time."""

    clients: tuple[str, str]
    changes: int


class Gap(OfQueue, frozen=True):
    """A time without a pull from a queue."""

    before: str
    after: str


def by_queue(runs: Iterable[PullRun]) -> list[list[PullRun]]:
    """The runs of each queue, in the order of time."""
    return [list(of_queue) for _, of_queue in groupby(sorted(runs), key=lambda run: run.queue)]


def end_at_next_run(runs: Iterable[PullRun]) -> list[PullRun]:
    """The runs, each ending at the latest where the next run of its queue begins.

    The last pull of a client that handed a queue over may still wait at the broker, which does not make that client a
    second owner.
    """
    result = []
    for queue in by_queue(runs):
        result += [
            msgspec.structs.replace(run, end=max(run.begin, min(run.end, after.begin)))
            for run, after in pairwise(queue)
        ]
        result.append(queue[-1])
    return result


def _alternations(queue: Sequence[PullRun]) -> Iterator[tuple[int, int]]:
    """(first, last) of each sequence of runs in which two clients alternate at least `ALTERNATIONS` times."""
    first = 0
    while first < len(queue) - 1:
        pair = {queue[first].client, queue[first + 1].client}
        last = first + 1
        while last + 1 < len(queue) and queue[last + 1].client in pair:
            last += 1
        if last - first >= ALTERNATIONS and len(pair) == 2:
            yield first, last
        first = last


def double_owners(runs: Iterable[PullRun]) -> list[DoubleOwner]:
    """Every sequence of runs in which two clients alternate at least `ALTERNATIONS` times."""
    found = []
    for queue in by_queue(runs):
        for first, last in _alternations(queue):
            first_client, second_client = sorted((queue[first].client, queue[first + 1].client))
            # In the first and the last run of the sequence the other client does not read the queue.
            begin, end = queue[first + 1].begin, queue[last - 1].end
            clients = first_client, second_client
            found.append(DoubleOwner(*queue[first].queue, begin, end, clients, last - first))
    return found


def gaps(runs: Iterable[PullRun], least_seconds: float) -> list[Gap]:
    """Times of `least_seconds` or more between the last pull of one owner and the first of the next."""
    return [
        Gap(*before.queue, before.end, after.begin, before.client, after.client)
        for queue in by_queue(runs)
        for before, after in pairwise(queue)
        if after.begin - before.end >= least_seconds
    ]


def merge_tenures(runs: Iterable[PullRun]) -> list[PullRun]:
    """Runs as tenures: the alternating runs of double owners become one tenure for each of the two."""
    tenures: list[PullRun] = []
    for queue in by_queue(runs):
        merged: set[int] = set()
        for first, last in _alternations(queue):
            for begin in (first, first + 1):
                numbers = [
                    number
                    for number in range(begin, last + 1)
                    if queue[number].client == queue[begin].client and number not in merged
                ]
                merged.update(numbers)
                of_client = [queue[number] for number in numbers]
                if of_client:  # a run may end one sequence and begin the next
                    tenures.append(_merged(of_client))
        tenures += [run for number, run in enumerate(queue) if number not in merged]
    return tenures


def _merged(runs: Sequence[PullRun]) -> PullRun:
    return msgspec.structs.replace(
        runs[0],
        end=runs[-1].end,
        pulls=sum(run.pulls for run in runs),
        messages=sum(run.messages for run in runs),
    )
