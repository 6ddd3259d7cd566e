"""The loop in C finds the values that the arrays in Python find, or leaves the texts to them."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

import numpy as np
import pyarrow as pa
from pocketmq.pipeline.records import stored_properties
from pocketmq.pipeline.records.boundaries import walk_records
from pocketmq.pipeline.records.native_loops import native
from pocketmq.pipeline.records.properties import Properties
from pocketmq.pipeline.records.records import Records
from pocketmq.pipeline.records.slices import text_of
from pocketmq.pipeline.records.stored_properties import USUAL, StoredProperties
from pocketmq.protocol.message.record import Record, encode_record

from pipeline.records.record_bytes import PROPERTY_TEXTS, RECORDS

needs_c = pytest.mark.skipif(native is None, reason="not built")
PAIRS = st.tuples(st.sampled_from(["KEYS", "TAGS", "UNIQ_KEY", "a", ""]), st.sampled_from(["", "1", "two"]))
UNIFORM = st.lists(PAIRS, max_size=20).map(
    lambda pairs: "".join(f"{name}\x01{value}\x02" for name, value in pairs).encode()
)


def placed(texts: list[bytes], front: bytes = b"..") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The texts in one buffer, where they begin, and where they end."""
    ends = np.cumsum([len(front) + len(text) for text in texts], dtype=np.int64)
    begins = ends - np.array([len(text) for text in texts], dtype=np.int64)
    return np.frombuffer(b"".join(front + text for text in texts), dtype=np.uint8), begins, ends


@needs_c
@settings(max_examples=150)
@given(st.lists(PROPERTY_TEXTS | UNIFORM, min_size=1, max_size=8))
@example([b"KEYS\x01a\x02", b"KEYS\x01\x02KEYS\x01b", b"KEYS\x02KEYS\x01a\x01b\x02", b"", b"KEYSX\x01a"])
def test_values_are_those_of_the_arrays(texts: list[bytes]) -> None:
    raw, begins, ends = placed(texts)
    found = StoredProperties(raw, begins, ends)
    assert bool(found._places) == all(text.isascii() for text in texts)
    wanted = Properties(text_of(pa.array(texts, pa.binary())))
    for name in (*USUAL, "a"):
        assert found.values(name).to_pylist() == wanted.values(name).to_pylist()


@settings(max_examples=80)
@given(st.lists(RECORDS, min_size=1, max_size=8))
def test_columns_are_the_same_without_the_loop(records: list[Record]) -> None:
    data = b"".join(map(encode_record, records))
    starts = walk_records(memoryview(data), 0, len(data)).starts
    names = ["keys", "tags", "msgId", "transactionId"]
    found = [column.to_pylist() for column in Records(data, starts).columns(names)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_properties, "native", None)
        assert [column.to_pylist() for column in Records(data, starts).columns(names)] == found


@needs_c
def test_places_outside_the_buffer_are_refused() -> None:
    raw = np.zeros(10, dtype=np.uint8)
    for begin, end in ((-1, 3), (4, 3), (0, 11)):
        with pytest.raises(ValueError, match="lie in the buffer"):
            StoredProperties(raw, np.array([begin]), np.array([end])).values("KEYS")
    with pytest.raises(ValueError, match="places be as many"):
        native.find_values(
            raw, np.zeros(2, np.int64), np.zeros(2, np.int64), (b"a",), np.zeros((1, 2, 1), np.int64)
        )
