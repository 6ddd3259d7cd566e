"""Properties split as arrays equal what the reader of one record's properties reads."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.pipeline.tables.records.properties import Properties
from pocketmq.protocol.message.properties import decode_properties

WORDS = st.text(st.sampled_from("abKé0"), max_size=5)
PAIRS = st.lists(st.tuples(WORDS, WORDS), max_size=5)
TIDY = st.builds(
    lambda pairs, ends: "".join(f"{name}\x01{value}\x02" for name, value in pairs)[: None if ends else -1],
    PAIRS,
    st.booleans(),
)
"""Separators alternate. Older clients write the last one, newer clients do not."""
ANY = st.one_of(TIDY, st.text(st.sampled_from("ab\x01\x02é"), max_size=8))


@st.composite
def alike(draw: st.DrawFn) -> list[str]:
    """Texts with the same names in the same order, and sometimes one that is different."""
    some = [
        "KEYS",
        "TAGS",
        "TAG",
        "UNIQ_KEY",
        "UNIQ_KEX",
        "__SHARDINGKEY",
        "__SHARDINGKEX",
        "é" * 9,
        "a" * 33,
    ]
    names = draw(st.lists(st.sampled_from(some), min_size=1, max_size=5))
    filled = st.text(st.sampled_from("abKé0"), min_size=1, max_size=12)
    end = draw(st.sampled_from([None, -1]))
    count = draw(st.integers(1, 6))
    texts = ["".join(f"{name}\x01{draw(filled)}\x02" for name in names)[:end] for _ in range(count)]
    if draw(st.booleans()):
        row, other = draw(st.integers(0, count - 1)), draw(st.sampled_from(some))
        texts[row] = draw(
            st.one_of(ANY, st.just(texts[row].replace(names[0], other)), st.just(texts[row][:-1]))
        )
    return texts


def properties_of(texts: list[str | bytes]) -> Properties:
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    edges = np.cumsum([0, *map(len, raw)], dtype=np.int64)
    return Properties(np.frombuffer(b"".join(raw), dtype=np.uint8), edges[:-1], edges[1:])


def rows(properties: Properties) -> list[dict[str, str]]:
    return [dict(row) for row in properties.maps().to_pylist()]


def among_many(odd: list[tuple[int, str]]) -> list[str]:
    texts = [f"KEYS\x01k{number}\x02UNIQ_KEY\x01{number:032}\x02" for number in range(60)]
    for row, text in odd:
        texts[row] = text
    return texts


IRREGULAR = st.lists(st.tuples(st.integers(0, 59), ANY), max_size=3).map(among_many)
MIXED = st.lists(TIDY, min_size=1, max_size=9) | st.lists(ANY, min_size=1, max_size=9)


@settings(max_examples=600)
@given(MIXED | alike() | alike() | IRREGULAR)
@example(["a\x01b", "\x01b", "a\x01b"])
@example(["a\x01b", "\x02a\x01b"])
@example(["a\x01b", "a", "b\x01c\x02"])
@example(["", "a\x01b\x02a\x01c", ""])
@example(["a\x01b\x02", "a\x01\x02b\x02"])
@example(["a\x01b\x02c\x01d", "a\x01b\x02", "c\x01d\x02e\x01f\x02"])
@example(["a\x01b", "\x01b\x02a", "a\x01b"])
def test_texts_of_a_batch_are_read_as_each_text_alone(texts: list[str]) -> None:
    properties = properties_of(texts)
    expected = [decode_properties(text.encode()) for text in texts]
    assert rows(properties) == expected
    for name in ("KEYS", "UNIQ_KEY", "__SHARDINGKEY", "a" * 33, "a", "aé"):
        assert properties.values(name).to_pylist() == [one.get(name) for one in expected]


def test_names_that_begin_alike_are_different_names() -> None:
    names = ["UNIQ_KEY", "UNIQ_KEYS", "UNIQ_KEY2", "UNIQ", "UNIQ_KE", "__SHARDINGKEY", "__SHARDINGKEX"]
    text = "".join(f"{name}\x01of {name}\x02" for name in names)
    properties = properties_of([text, text + "UNIQ_KEYS\x01last\x02", ""])
    for name in names:
        last = "last" if name == "UNIQ_KEYS" else f"of {name}"
        assert properties.values(name).to_pylist() == [f"of {name}", last, None]
    assert rows(properties)[1]["UNIQ_KEYS"] == "last"


def test_names_that_are_equal_once_they_are_decoded_are_one_name() -> None:
    properties = properties_of([b"\xff\x01one\x02\xfe\x01two\x02", "a\x01é"])
    assert rows(properties) == [{"\N{REPLACEMENT CHARACTER}": "two"}, {"a": "é"}]
    assert properties.values("\N{REPLACEMENT CHARACTER}").to_pylist() == ["two", None]
