"""The text of a table's file, made in slices, is the text that the writer makes at once."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.tables.table_text import ENTRIES_IN_A_SLICE, MapText, file_text
from pocketmq.protocol.bodies.body import DataVersion
from pocketmq.protocol.text import fastjson

VALUES = st.one_of(
    st.dictionaries(st.integers(0, 9), st.integers()), st.lists(st.text()), st.builds(DataVersion)
)


@given(st.dictionaries(st.text(), VALUES), st.dictionaries(st.text(), VALUES), st.booleans())
def test_a_file_is_written_as_at_once(first: dict[str, Any], second: dict[str, Any], is_cached: bool) -> None:
    text = MapText(is_cached=is_cached)
    for table in ({}, first, second, first | second, first):
        whole = {"a": DataVersion(), "table": table, "z": {0: 1}, "none": None}
        in_slices = file_text({**whole, "table": text.of(table)})
        assert in_slices == fastjson.dumps(whole, pretty=True, quote_integer_keys=True)


def test_slices_meet_without_a_seam() -> None:
    table = {f"k{number}": {0: number} for number in range(3 * ENTRIES_IN_A_SLICE + 1)}
    whole = {"table": table}
    for is_cached in (False, True):
        text = file_text({"table": MapText(is_cached=is_cached).of(table)})
        assert text == fastjson.dumps(whole, pretty=True, quote_integer_keys=True)


def test_the_text_of_an_unchanged_value_is_made_once() -> None:
    text, table = MapText(is_cached=True), {f"k{number}": DataVersion(counter=number) for number in range(9)}
    before = text.of(table)
    kept = dict(text._texts)
    table["k3"] = DataVersion(counter=33)
    assert text.of(table) == before.replace(b'"counter":3,', b'"counter":33,')
    assert [key for key in kept if text._texts[key] is not kept[key]] == ["k3"]
    del table["k5"]
    text.of(table)
    assert "k5" not in text._texts
