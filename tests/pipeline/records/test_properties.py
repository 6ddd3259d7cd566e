"""Properties split as arrays equal what the reader of one record's properties reads."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.protocol.message.properties import decode_properties

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

import pyarrow as pa
from pocketmq.pipeline.records.properties import Properties

WORDS = st.text(st.sampled_from("abKé0"), max_size=5)
PAIRS = st.lists(st.tuples(WORDS, WORDS), max_size=5)
TIDY = st.builds(
    lambda pairs, ends: "".join(f"{name}\x01{value}\x02" for name, value in pairs)[: None if ends else -1],
    PAIRS,
    st.booleans(),
)
"""Separators alternate. Older clients write the last one, newer clients do not."""
ANY = st.one_of(TIDY, st.text(st.sampled_from("ab\x01\x02é"), max_size=8))


def rows(properties: Properties) -> list[dict[str, str]]:
    return [dict(row) for row in properties.maps().to_pylist()]


@settings(max_examples=150)
@given(st.one_of(st.lists(TIDY, min_size=1, max_size=9), st.lists(ANY, min_size=1, max_size=9)))
@example(["a\x01b", "\x01b", "a\x01b"])
@example(["a\x01b", "\x02a\x01b"])
@example(["a\x01b", "a", "b\x01c\x02"])
@example(["", "a\x01b\x02a\x01c", ""])
def test_texts_of_a_batch_are_read_as_each_text_alone(texts: list[str]) -> None:
    assert rows(Properties(pa.array(texts))) == [decode_properties(text.encode()) for text in texts]


@given(st.lists(TIDY, min_size=3, max_size=6))
def test_a_slice_of_a_longer_array_is_read_without_the_rest(texts: list[str]) -> None:
    some = Properties(pa.array(texts).slice(1, len(texts) - 2))
    assert rows(some) == [decode_properties(text.encode()) for text in texts[1:-1]]
