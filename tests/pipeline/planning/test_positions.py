"""Positions of streams, and offsets that users write, as JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.pipeline.errors import CheckpointError, OptionError
from pocketmq.pipeline.tables.planning.positions import Queue, StreamPosition, read_offsets
from pocketmq.pipeline.tables.planning.ranges import Range, ranges_between

QUEUES = st.builds(Queue, st.sampled_from(["A", "B"]), st.sampled_from(["x", "y"]), st.integers(0, 12))
OFFSETS = st.dictionaries(QUEUES, st.integers(0, 5000), max_size=6)


@given(OFFSETS, st.booleans(), OFFSETS)
def test_a_position_survives_its_json(
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
def test_a_checkpoint_of_another_source_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(CheckpointError, match="checkpoint"):
        StreamPosition.of_json(value)


def test_offsets_are_exclusive_ends_never_minus_one() -> None:
    queue = Queue("T", "b", 0)
    assert ranges_between({queue: 5}, {queue: 8}) == [Range(queue, 5, 8)]
    assert ranges_between({queue: 8}, {queue: 8}) == ranges_between({queue: 9}, {queue: 8}) == []


TWO = [Queue("T", "a", 0), Queue("T", "a", 1)]


def test_the_broker_may_be_omitted_if_there_is_only_one() -> None:
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
def test_offsets_must_name_exactly_the_existing_queues(text: str) -> None:
    with pytest.raises(OptionError, match="option startingOffsets"):
        read_offsets("startingOffsets", text, TWO)
