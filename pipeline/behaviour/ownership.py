"""Who read which queue when: runs of pulls to tenures, gaps and double owners. Pure; no Spark.

A run is what one client pulled from one queue without another client's pull in between. In a hand-over the runs of a
queue change hands once: A A A B B B. Where two clients own a queue at once their pulls alternate: A B A B. So an
alternation back to a client that was there before, and once more to the other, is a double owner; A B A alone is a
queue that was given away and came back.
"""

from collections.abc import Iterable
from itertools import groupby, pairwise
from typing import Final

import msgspec

ALTERNATIONS: Final = 3
"""Changes of hands between the same two clients, from which on both own the queue."""


class PullRun(msgspec.Struct, frozen=True, order=True):
    """Pulls of one client in a row. Times are seconds since 1970; `end` is when the last of them was answered, or its
    connection closed: a pull that waits for messages holds its queue."""

    journal: str
    group: str
    topic: str
    queue_id: int
    begin: float
    end: float
    client: str
    pulls: int
    messages: int

    @property
    def queue(self) -> tuple[str, str, str, int]:
        return self.journal, self.group, self.topic, self.queue_id


class DoubleOwner(msgspec.Struct, frozen=True):
    """Two clients that read one queue in the same time."""

    journal: str
    group: str
    topic: str
    queue_id: int
    clients: tuple[str, str]
    begin: float
    end: float
    changes: int


class Gap(msgspec.Struct, frozen=True):
    """A queue that nobody pulled from."""

    journal: str
    group: str
    topic: str
    queue_id: int
    begin: float
    end: float
    before: str
    after: str


def by_queue(runs: Iterable[PullRun]) -> list[list[PullRun]]:
    """The runs of each queue in the order of time."""
    return [list(one) for _, one in groupby(sorted(runs), key=lambda run: run.queue)]


def end_at_next_run(runs: Iterable[PullRun]) -> list[PullRun]:
    """Runs that end where the next of their queue begins: a client that gave a queue away leaves its last pull
    waiting at the broker, which makes it no second owner."""
    cut = []
    for queue in by_queue(runs):
        cut += [
            msgspec.structs.replace(run, end=max(run.begin, min(run.end, after.begin)))
            for run, after in pairwise(queue)
        ]
        cut.append(queue[-1])
    return cut


def double_owners(runs: Iterable[PullRun]) -> list[DoubleOwner]:
    """Every stretch of runs in which two clients take turns at least `ALTERNATIONS` times."""
    found = []
    for queue in by_queue(runs):
        first = 0
        while first < len(queue) - 1:
            pair = {queue[first].client, queue[first + 1].client}
            last = first + 1
            while last + 1 < len(queue) and queue[last + 1].client in pair:
                last += 1
            changes = last - first
            if changes >= ALTERNATIONS and len(pair) == 2:
                one, two = sorted(pair)
                # The first of the two was alone until the other came, and so was the last after the other had gone.
                begin, end = queue[first + 1].begin, queue[last - 1].end
                found.append(DoubleOwner(*queue[first].queue, (one, two), begin, end, changes))
            first = last
    return found


def gaps(runs: Iterable[PullRun], least_seconds: float) -> list[Gap]:
    """Times of at least so long between the last pull of one owner and the first of the next."""
    return [
        Gap(*before.queue, before.end, after.begin, before.client, after.client)
        for queue in by_queue(runs)
        for before, after in pairwise(queue)
        if after.begin - before.end >= least_seconds
    ]


def merge_tenures(runs: Iterable[PullRun], doubles: Iterable[DoubleOwner]) -> list[PullRun]:
    """Runs as tenures for a drawing: the alternating pulls of double owners become one tenure for each of the two."""
    shared = {(one.journal, one.group, one.topic, one.queue_id): one for one in doubles}
    tenures: list[PullRun] = []
    for queue in by_queue(runs):
        double = shared.get(queue[0].queue)
        if double is None:
            tenures += queue
            continue
        for client in double.clients:
            mine = [run for run in queue if run.client == client]
            tenures.append(
                msgspec.structs.replace(
                    mine[0],
                    end=mine[-1].end,
                    pulls=sum(run.pulls for run in mine),
                    messages=sum(run.messages for run in mine),
                )
            )
        tenures += [run for run in queue if run.client not in double.clients]
    return tenures
