"""The loop in C finds what the arrays in Python find, up to the first record that is not sound."""

import os
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.core import choice
from pocketmq.protocol.message.record import Record, encode_record

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

import msgspec
import numpy as np
from pocketmq.pipeline.records import sound_records as loops
from pocketmq.pipeline.records.boundaries import walk_records
from pocketmq.pipeline.records.columns import MESSAGE_COLUMNS
from pocketmq.pipeline.records.native_loops import SWITCH
from pocketmq.pipeline.records.records import Records
from pocketmq.pipeline.records.sound_records import is_built, own_units, sound_records

from pipeline.records.record_bytes import RECORDS, stored

needs_c = pytest.mark.skipif(not is_built(), reason="not built")
ROWS = {"most": 1000, "checks_crc": True}


def test_it_is_built_where_there_is_a_compiler() -> None:
    if shutil.which("cc") is None:
        pytest.skip("no compiler")
    assert is_built() or os.environ.get(SWITCH) == "off"


def test_one_variable_turns_off_both_extensions() -> None:
    assert SWITCH == choice.SWITCH


def test_without_the_extension_nothing_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "_native", None)
    data = memoryview(stored(3))
    assert len(sound_records(data, 0, len(data), 0, **ROWS)) == 0
    assert own_units(data, 0, np.zeros(2, np.int64), np.zeros(2, np.int64), 0, 0).tolist() == [False, False]


def written(records: list[Record], base: int) -> bytes:
    """The records one after another, each with its place in the log."""
    data = b""
    for record in records:
        data += encode_record(msgspec.structs.replace(record, position=base + len(data)))
    return data


@needs_c
@settings(max_examples=80)
@given(st.lists(RECORDS, min_size=1, max_size=8), st.integers(0, 1 << 40), st.data())
def test_records_of_every_form_have_the_same_columns(
    records: list[Record], base: int, data: st.DataObject
) -> None:
    raw = memoryview(written(records, base))
    found = sound_records(raw, 0, len(raw), base, broker_name="broker-a", **ROWS)
    expected = Records(raw, walk_records(raw, 0, len(raw)).starts, broker_name="broker-a")
    assert len(found) == len(records)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(records), max_size=len(records))))
    for ours, theirs in ((found, expected), (found.only(mask), expected.only(mask))):
        for name in MESSAGE_COLUMNS:
            assert ours.column(name).equals(theirs.column(name)), name
        assert np.array_equal(ours.sizes, theirs.sizes)


@needs_c
@settings(max_examples=120)
@given(st.lists(RECORDS, min_size=1, max_size=4), st.data())
def test_the_loop_ends_before_the_first_record_that_is_not_sound(
    records: list[Record], data: st.DataObject
) -> None:
    raw = bytearray(written(records, 5))
    starts = walk_records(memoryview(bytes(raw)), 0, len(raw)).starts.tolist()
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    found = sound_records(memoryview(raw), 0, len(raw), 5, **ROWS)
    expected = Records(bytes(raw), starts)
    whole = [start for start in starts if len(walk_records(memoryview(raw), start, start + 1).starts)]
    assert found.starts.tolist() == starts[: len(found)], "no record is found that was not there"
    assert len(found) >= sum(start <= place for start in starts) - 1, "those before the byte are found"
    judged = Records(bytes(raw), whole[: len(found)])
    assert judged.lengths_agree().all()
    assert not judged.bad_crcs().any()
    assert (expected.head("physicalOffset")[: len(found)] == found.starts + 5).all()


@needs_c
def test_the_loop_ends_at_the_bytes_and_at_the_rows_that_are_asked_for() -> None:
    data = memoryview(stored(20))
    starts = walk_records(data, 0, len(data)).starts.tolist()
    for end in (starts[7], starts[7] + 1, starts[8]):
        found = sound_records(data, 0, end, 0, **ROWS)
        assert found.starts.tolist() == [start for start in starts if start < end]
    assert (
        sound_records(data, starts[3], len(data), 0, most=4, checks_crc=False).starts.tolist() == starts[3:7]
    )
    assert len(sound_records(data, len(data), len(data) + 9, 0, **ROWS)) == 0
    assert len(sound_records(data[:-1], starts[19], len(data), 0, **ROWS)) == 0, "a record is cut off"


@needs_c
def test_many_topics_keep_their_records() -> None:
    records = [Record(f"topic-{n % 150}", 0, n, 0, b"", b"") for n in range(400)]
    data = memoryview(written(records, 0))
    found = sound_records(data, 0, len(data), 0, **ROWS)
    assert found.column("topic").to_pylist() == [record.topic for record in records]
    assert found.of_topics({"topic-3", "absent"}).nonzero()[0].tolist() == [3, 153, 303]


@needs_c
@settings(max_examples=80)
@given(st.data())
def test_a_unit_is_own_if_all_its_numbers_are(data: st.DataObject) -> None:
    base = 1000
    raw = memoryview(stored(8, base=base, queues=1))
    starts = walk_records(raw, 0, len(raw)).starts
    positions, sizes = starts + base, Records(raw, starts).sizes.copy()
    assert own_units(raw, base, positions, sizes, 0, 0).all()
    assert not own_units(raw, base, positions, sizes, 1, 0).any()
    assert not own_units(raw, base, positions, sizes, 0, 1).any()
    row = data.draw(st.integers(0, 7))
    changed = data.draw(st.sampled_from([positions, sizes]))
    wild = data.draw(st.one_of(st.integers(-3000, 3000), st.integers(-(1 << 63), (1 << 63) - 1)))
    is_same = wild == changed[row]
    changed[row] = wild
    assert own_units(raw, base, positions, sizes, 0, 0).tolist() == [n != row or is_same for n in range(8)]
