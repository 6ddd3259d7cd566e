"""The text of a table's file, made in pieces, is the text that the writer makes at once."""

from collections import deque
from copy import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.tables.table_text import ENTRIES_IN_A_SLICE, MapText, file_pieces
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.text import fastjson

VALUES = st.one_of(
    st.dictionaries(st.integers(0, 9), st.integers()), st.lists(st.text()), st.builds(DataVersion)
)


@given(st.dictionaries(st.text(), VALUES), st.dictionaries(st.text(), VALUES), st.booleans())
def test_a_file_is_written_as_at_once(first: dict[str, Any], second: dict[str, Any], is_cached: bool) -> None:
    text = MapText(None if is_cached else copy)
    for table in ({}, first, second, first | second, first):
        whole = {"a": DataVersion(), "table": table, "z": {0: 1}, "none": None}
        in_pieces = b"".join(file_pieces({**whole, "table": text.pieces(table)}))
        assert in_pieces == fastjson.dumps(whole, pretty=True, quote_integer_keys=True)


def test_slices_meet_without_a_seam() -> None:
    table = {f"k{number}": {0: number} for number in range(3 * ENTRIES_IN_A_SLICE + 1)}
    whole = {"table": table}
    for copy_of in (None, copy):
        pieces = list(file_pieces({"table": MapText(copy_of).pieces(table)}))
        assert max(map(len, pieces)) < ENTRIES_IN_A_SLICE * 30
        assert b"".join(pieces) == fastjson.dumps(whole, pretty=True, quote_integer_keys=True)


def test_the_text_of_an_unchanged_value_is_made_once() -> None:
    text, table = MapText(), {f"k{number}": DataVersion(counter=number) for number in range(9)}
    before = b"".join(text.pieces(table))
    kept = dict(text._texts)
    table["k3"] = DataVersion(counter=33)
    assert b"".join(text.pieces(table)) == before.replace(b'"counter":3,', b'"counter":33,')
    assert [key for key in kept if text._texts[key] is not kept[key]] == ["k3"]
    del table["k5"]
    deque(text.pieces(table), maxlen=0)
    assert "k5" not in text._texts


def test_two_texts_of_one_map_are_made_at_once() -> None:
    """A companion's snapshot, while the thread writes the table."""
    text, table = MapText(), {f"k{number}": DataVersion(counter=number) for number in range(999)}
    before = b"".join(text.pieces(table))
    first = text.pieces({**table, "k": DataVersion()})
    next(first)
    assert b"".join(text.pieces(table)) == before
    assert b'"k":' in b"".join(first)
    del table["k3"]
    assert b'"k3":' not in b"".join(text.pieces(table))
