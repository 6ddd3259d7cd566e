"""Batch bodies encoded by column equal those of the client's encoder; a repeated task gives the same ids."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.pipeline.errors import OptionError
from pocketmq.pipeline.tables.records.batch_encoder import bodies_of, elements, property_texts, row_ids
from pocketmq.pipeline.tables.records.slices import batch_slices
from pocketmq.protocol.message.batch import BatchElement, decode_batch, encode_batch
from pocketmq.protocol.message.properties import decode_properties

WORDS = st.text(st.characters(exclude_characters="\x00\x01\x02", exclude_categories=("Cs",)), max_size=8)
ROWS = st.lists(
    st.tuples(
        st.binary(max_size=30),
        st.one_of(st.none(), WORDS),
        st.one_of(st.none(), WORDS),
        st.one_of(
            st.none(),
            st.dictionaries(WORDS.filter(lambda word: len(word) > 0).map("p".__add__), WORDS, max_size=3),
        ),
        st.integers(-5, 5),
    ),
    min_size=1,
    max_size=6,
)


def batch_of(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    bodies, keys, tags, maps, flags = (list(column) for column in zip(*rows, strict=True))
    return pa.RecordBatch.from_pydict(
        {
            "body": pa.array(bodies, pa.binary()),
            "keys": pa.array(keys, pa.string()),
            "tags": pa.array(tags, pa.string()),
            "properties": pa.array(
                [None if one is None else list(one.items()) for one in maps],  # type: ignore[attr-defined]
                pa.map_(pa.string(), pa.string()),
            ),
            "flag": pa.array(flags, pa.int32()),
        }
    )


@settings(max_examples=60)
@given(ROWS)
def test_bytes_equal_those_of_the_client_and_properties_those_of_the_columns(
    rows: list[tuple[object, ...]],
) -> None:
    batch = batch_of(rows)
    ids = row_ids("writer", 0, len(rows))
    texts = property_texts(batch, ids)
    packed = elements(bodies_of(batch), texts, batch.column("flag"))
    joined = b"".join(packed.to_pylist())
    wanted = [
        BatchElement(flag, body, text.encode())  # type: ignore[arg-type]
        for (body, _, _, _, flag), text in zip(rows, texts.to_pylist(), strict=True)
    ]
    assert joined == encode_batch(wanted)
    for element, (_, keys, tags, properties, _), unique in zip(
        decode_batch(joined), rows, ids.to_pylist(), strict=True
    ):
        named = {"KEYS": keys, "TAGS": tags, "WAIT": "true", "UNIQ_KEY": unique, **(properties or {})}  # type: ignore[dict-item]
        assert decode_properties(element.properties) == {
            name: value for name, value in named.items() if value
        }


def test_ids_depend_only_on_the_writer_and_the_row() -> None:
    whole = row_ids("query/7/1", 0, 10).to_pylist()
    assert row_ids("query/7/1", 4, 3).to_pylist() == whole[4:7]
    assert not set(whole) & set(row_ids("query/7/2", 0, 10).to_pylist())
    assert all(len(one) == 32 and int(one, 16) >= 0 for one in whole)
    assert [one[12:20] for one in row_ids("w", 2**32 - 2, 2).to_pylist()] == ["FFFFFFFE", "FFFFFFFF"]
    assert {one[20:28] for one in whole} == {"00000000"}, "the time from which 4.9 tools look for the message"


@pytest.mark.parametrize("gap", [None, ""])
def test_a_gap_in_a_column_leaves_the_texts_of_the_other_rows_as_they_are(gap: str | None) -> None:
    filled = [(b"x", f"k{row}", "A", {"color": f"c{row}"}, 0) for row in range(3)]
    whole = property_texts(batch_of(filled), row_ids("w", 0, 3)).to_pylist()
    with_gaps = [*filled[:2], (b"x", gap, gap, {"color": gap}, 0)]
    texts = property_texts(batch_of(with_gaps), row_ids("w", 0, 3)).to_pylist()
    assert texts[:2] == whole[:2]
    assert set(decode_properties(texts[2])) == {"WAIT", "UNIQ_KEY"}
    assert whole[2].startswith("color\x01c2\x02KEYS\x01k2\x02TAGS\x01A\x02WAIT\x01true\x02UNIQ_KEY\x01")


@settings(max_examples=60)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 10), st.integers(1, 200))
def test_batches_hold_every_row_once_within_both_limits(
    sizes: list[int], most_rows: int, most_bytes: int
) -> None:
    cuts = batch_slices(np.array(sizes), most_rows, most_bytes)
    assert [row for first, stop in cuts for row in range(first, stop)] == list(range(len(sizes)))
    for first, stop in cuts:
        assert stop - first <= most_rows
        assert sum(sizes[first:stop]) <= most_bytes or stop - first == 1


@pytest.mark.parametrize("name", ["UNIQ_KEY", "MSG_REGION", "DELAY", "TRAN_MSG", "RETRY_TOPIC", "WAIT"])
def test_what_clients_and_brokers_set_is_not_sent_again(name: str) -> None:
    batch = batch_of([(b"x", None, None, {name: "1", "color": "red"}, 0)])
    (text,) = property_texts(batch, ids := row_ids("w", 0, 1)).to_pylist()
    assert decode_properties(text) == {"color": "red", "WAIT": "true", "UNIQ_KEY": ids[0].as_py()}


def test_a_map_that_was_read_keeps_keys_and_tags_unless_columns_set_them() -> None:
    read = {"KEYS": "k1 k2", "TAGS": "A", "__SHARDINGKEY": "s", "color": "red"}
    maps = pa.array([list(read.items())], pa.map_(pa.string(), pa.string()))
    alone = pa.RecordBatch.from_pydict({"body": [b"x"], "properties": maps})
    (text,) = property_texts(alone, row_ids("w", 0, 1)).to_pylist()
    assert decode_properties(text).items() >= read.items()
    beside = pa.RecordBatch.from_pydict({"body": [b"x"], "properties": maps, "tags": ["B"], "keys": ["k3"]})
    (text,) = property_texts(beside, row_ids("w", 0, 1)).to_pylist()
    assert decode_properties(text).items() >= {**read, "TAGS": "B", "KEYS": "k3"}.items()
    assert text.count("TAGS") == text.count("KEYS") == 1


def test_a_separator_inside_a_value_is_refused() -> None:
    with pytest.raises(OptionError, match="byte 2"):
        property_texts(batch_of([(b"x", "a\x02b", None, None, 0)]), row_ids("w", 0, 1))


def test_a_null_among_the_keys_of_a_row_is_skipped() -> None:
    keys = pa.array([["a", None, "b"], None, [], ["", ""], ["only"]], pa.list_(pa.string()))
    texts = property_texts(pa.RecordBatch.from_pydict({"keys": keys}), row_ids("w", 0, 5))
    read = [decode_properties(text).get("KEYS") for text in texts.to_pylist()]
    assert read == ["a b", None, None, None, "only"]


def test_a_property_without_a_name_is_refused() -> None:
    with pytest.raises(OptionError, match="column properties: a name must not be empty"):
        property_texts(batch_of([(b"x", None, None, {"": "1"}, 0)]), row_ids("w", 0, 1))


def test_a_row_without_body_is_refused() -> None:
    with pytest.raises(OptionError, match="body"):
        bodies_of(batch_of([(None, None, None, None, 0)]))
