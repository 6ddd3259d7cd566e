"""Planning keeps every message once: splits, rate limits, positions as JSON."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.pipeline.errors import CheckpointError, OptionError
from pocketmq.pipeline.planning.positions import Queue, StreamPosition, read_offsets
from pocketmq.pipeline.planning.ranges import (
    Range,
    clamp,
    limit_batch,
    pack_small_ranges,
    ranges_between,
    split_ranges,
)

QUEUES = st.builds(Queue, st.sampled_from(["A", "B"]), st.sampled_from(["x", "y"]), st.integers(0, 12))
OFFSETS = st.dictionaries(QUEUES, st.integers(0, 5000), max_size=6)
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
def test_a_limited_batch_moves_every_queue_that_has_something(
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


@given(OFFSETS, st.booleans(), OFFSETS)
def test_a_position_comes_back_from_its_json(
    offsets: dict[Queue, int], is_initial: bool, begun: dict[Queue, int]
) -> None:
    position = StreamPosition(offsets, is_initial, begun)
    text = json.dumps(position.to_json())
    assert StreamPosition.of_json(json.loads(text)) == position
    backwards = StreamPosition(dict(reversed(offsets.items())), is_initial, begun)
    assert json.dumps(backwards.to_json()) == text, "the engine compares positions as text"


@pytest.mark.parametrize(
    "value", [{}, {"v": 2, "topics": {}}, {"v": 1}, {"v": 1, "topics": {"T": 3}}, {"version": 0}]
)
def test_a_checkpoint_of_something_else_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(CheckpointError, match="checkpoint"):
        StreamPosition.of_json(value)


def test_offsets_are_exclusive_ends_never_minus_one() -> None:
    queue = Queue("T", "b", 0)
    assert ranges_between({queue: 5}, {queue: 8}) == [Range(queue, 5, 8)]
    assert ranges_between({queue: 8}, {queue: 8}) == ranges_between({queue: 9}, {queue: 8}) == []


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
def test_what_a_queue_no_longer_holds_is_named(
    lo: int, hi: int, left: tuple[int, int], lost: list[tuple[int, int]]
) -> None:
    one, losses = clamp(Range(Queue("T", "b", 0), lo, hi), 10, 20)
    assert ((one.lo, one.hi), [(loss.lo, loss.hi) for loss in losses]) == (left, lost)


TWO = [Queue("T", "a", 0), Queue("T", "a", 1)]


def test_the_broker_may_be_left_out_where_there_is_one() -> None:
    wanted = {TWO[0]: 3, TWO[1]: -2}
    assert read_offsets("o", '{"T":{"0":3,"1":-2}}', TWO) == wanted
    assert read_offsets("o", '{"T":{"a":{"0":3,"1":-2}}}', TWO) == wanted
    with pytest.raises(OptionError, match="several brokers"):
        read_offsets("o", '{"T":{"0":3}}', [*TWO, Queue("T", "b", 0)])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "3",
        '{"T":3}',
        '{"T":{"0":3}}',
        '{"T":{"0":3,"1":4,"2":5}}',
        '{"T":{"0":3,"1":4},"U":{"0":1}}',
        '{"T":{"0":1.7,"1":4}}',
        '{"T":{"a":{"0":1.7,"1":4}}}',
        '{"T":{"0":true,"1":4}}',
        '{"T":{"a":{"0":"3","1":4}}}',
        '{"T":{"a":{"0":1e999,"1":4}}}',
        '{"T":{"a":{"0":null,"1":4}}}',
    ],
)
def test_offsets_must_name_exactly_the_queues_there_are(text: str) -> None:
    with pytest.raises(OptionError, match="option startingOffsets"):
        read_offsets("startingOffsets", text, TWO)
