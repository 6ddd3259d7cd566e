"""The offset map stays small, and never lets a group miss a message."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.jobs.moving import offset_map
from pocketmq.pipeline.jobs.moving.offset_map import OffsetMap, Piece
from pocketmq.pipeline.tables.planning.positions import Queue

SOURCE, COPY = Queue("T", "a", 0), Queue("T", "b", 1)


def test_pieces_that_continue_each_other_are_one(tmp_path: Path) -> None:
    known = OffsetMap(tmp_path / "map")
    known.add(SOURCE, (Piece(offset, offset, COPY, offset + 7) for offset in range(100)))
    known.add(SOURCE, [Piece(100, 149, COPY, 107)])
    known.save()
    (line,) = (tmp_path / "map").read_text().splitlines()
    assert json.loads(line)["last"] == 149
    assert known.translated(SOURCE, 120) == OffsetMap(tmp_path / "map").translated(SOURCE, 120) == (COPY, 127)


def test_offsets_are_translated_between_and_after_pieces(tmp_path: Path) -> None:
    known = OffsetMap(tmp_path / "map")
    known.add(SOURCE, [Piece(10, 19, COPY, 100), Piece(30, 34, COPY, 110)])
    known.save()
    copies = {10: 100, 15: 105, 20: 110, 25: 110, 30: 110, 35: 115, 99: 115}
    for offsets in (known, OffsetMap(tmp_path / "map")):
        assert offsets.translated(SOURCE, 9) is None
        assert {offset: offsets.translated(SOURCE, offset) for offset in copies} == {
            offset: (COPY, copy) for offset, copy in copies.items()
        }


def test_what_is_copied_again_replaces_only_what_it_covers() -> None:
    known = OffsetMap()
    known.add(SOURCE, [Piece(0, 99, COPY, 0)])
    known.add(SOURCE, [Piece(90, 119, COPY, 200)])
    assert [known.translated(SOURCE, offset) for offset in (89, 90, 119, 120)] == [
        (COPY, 89),
        (COPY, 200),
        (COPY, 229),
        (COPY, 230),
    ]


def test_pieces_are_longer_the_farther_they_are_from_the_end(tmp_path: Path) -> None:
    """Others write to the queue of the copies, so no piece continues the one before."""
    path = tmp_path / "map"
    known = OffsetMap(path)
    for number in range(5_000):
        known.add(SOURCE, [Piece(number * 10, number * 10 + 9, COPY, number * 11)])
    known.save()
    assert len(path.read_text().splitlines()) == offset_map.MAX_PIECES
    assert not list(tmp_path.glob("*.new"))
    for offsets in (known, OffsetMap(path)):
        assert offsets.translated(SOURCE, 49_995) == (COPY, 4_999 * 11 + 5), "the newest are exact"
        for offset in range(0, 50_000, 7):
            target, copy = offsets.translated(SOURCE, offset) or (None, -1)
            exact, distance = offset // 10 * 11 + offset % 10, 50_000 - offset
            assert target == COPY
            assert exact - distance / 4 - 11 <= copy <= exact


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40),
    st.integers(2, 8),
)
def test_no_group_misses_a_message(steps: list[tuple[int, int, int]], most: int) -> None:
    """Whatever gaps both sides have: a group never continues after the copy of the message it would read next."""
    exact: dict[int, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(offset_map, "MAX_PIECES", most)
        known = OffsetMap()
        source = target = 0
        for count, source_gap, target_gap in steps:
            source, target = source + source_gap, target + target_gap
            known.add(SOURCE, [Piece(source, source + count - 1, COPY, target)])
            exact |= {source + number: target + number for number in range(count)}
            source, target = source + count, target + count
    for offset in range(source):
        place = known.translated(SOURCE, offset)
        following = min((copy for of_source, copy in exact.items() if of_source >= offset), default=target)
        assert place is None or place[1] <= following
    assert known.translated(SOURCE, source) == (COPY, target)


@pytest.mark.parametrize("content", [b"my thesis", b"{}", b'{"a": 1}', b"\xff\xfe", b"one line\nand another"])
def test_a_file_that_is_no_map_is_refused_and_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "thesis.txt"
    path.write_bytes(content)
    with pytest.raises(OptionError, match="is not a piece of an offset map"):
        OffsetMap(path)
    assert path.read_bytes() == content
