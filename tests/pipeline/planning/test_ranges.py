"""Ranges: split, packed, limited and clamped."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.pipeline.tables.planning.positions import Queue
from pocketmq.pipeline.tables.planning.ranges import (
    Range,
    clamp,
    limit_batch,
    pack_small_ranges,
    split_ranges,
)

from pipeline.planning.test_positions import OFFSETS, QUEUES

RANGES = st.lists(
    st.builds(
        lambda queue, lo, size: Range(queue, lo, lo + size), QUEUES, st.integers(0, 99), st.integers(0, 999)
    ),
    max_size=5,
    unique_by=lambda one: one.queue,
)

COUNTS = st.one_of(st.none(), st.integers(1, 50))


@given(RANGES, COUNTS, COUNTS)
def test_splits_are_contiguous_exact_and_never_empty(
    ranges: list[Range], max_records: int | None, min_partitions: int | None
) -> None:
    parts = split_ranges(ranges, max_records=max_records, min_partitions=min_partitions)
    messages = [(part.queue, offset) for part in parts for offset in range(part.lo, part.hi)]
    assert messages == [(one.queue, offset) for one in ranges for offset in range(one.lo, one.hi)]
    assert all(part.lo < part.hi for part in parts)
    if max_records is not None:
        assert all(part.size <= max_records for part in parts)


def test_a_large_queue_is_split_more_than_a_small_one() -> None:
    large, small = Range(Queue("T", "b", 0), 0, 900), Range(Queue("T", "b", 1), 0, 100)
    sizes = [part.size for part in split_ranges([large, small], min_partitions=10)]
    assert sizes == [100] * 10


@given(RANGES, st.integers(0, 1500))
def test_small_ranges_share_a_task_in_their_order(ranges: list[Range], rows: int) -> None:
    tasks = pack_small_ranges(ranges, rows)
    assert [one for task in tasks for one in task] == ranges
    assert all(len(task) == 1 or sum(one.size for one in task) <= rows for task in tasks)
    for task, after in itertools.pairwise(tasks):
        assert sum(one.size for one in task) + after[0].size > rows, "the next one had room"


@given(OFFSETS, st.dictionaries(QUEUES, st.integers(0, 5000), max_size=6), st.integers(1, 2000))
def test_a_limited_batch_moves_every_queue_with_a_backlog(
    start: dict[Queue, int], more: dict[Queue, int], most: int
) -> None:
    end = {queue: offset + more.get(queue, 0) for queue, offset in start.items()}
    batch = limit_batch(start, end, most)
    assert batch.keys() == end.keys()
    for queue in end:
        assert start[queue] <= batch[queue] <= end[queue]
        assert batch[queue] > start[queue] or end[queue] == start[queue]
    taken = sum(batch[queue] - start[queue] for queue in end)
    assert taken <= most + len(end), "one message more at most for each queue"


@pytest.mark.parametrize(
    ("lo", "hi", "left", "lost"),
    [
        (5, 15, (10, 15), [(5, 10)]),
        (15, 25, (15, 20), [(20, 25)]),
        (5, 25, (10, 20), [(5, 10), (20, 25)]),
        (1, 5, (5, 5), [(1, 5)]),
        (25, 30, (25, 25), [(25, 30)]),
        (10, 20, (10, 20), []),
    ],
)
def test_messages_that_a_queue_no_longer_holds_are_reported(
    lo: int, hi: int, left: tuple[int, int], lost: list[tuple[int, int]]
) -> None:
    one, losses = clamp(Range(Queue("T", "b", 0), lo, hi), 10, 20)
    assert ((one.lo, one.hi), [(loss.lo, loss.hi) for loss in losses]) == (left, lost)
