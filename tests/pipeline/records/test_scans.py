"""Records and pairs found in C and in arrays: the same numbers for any bytes, and those that were written."""

from types import ModuleType

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.pipeline.tables.records import scans
from pocketmq.pipeline.tables.records.scans import ANYWHERE, COLUMNS, PAIR_COLUMNS
from pocketmq.protocol.message.properties import decode_properties
from pocketmq.protocol.message.record import Record, encode_record

from pipeline.records.record_bytes import PROPERTY_TEXTS, RECORDS, stored

BASE = 1000
PYTHON = ModuleType("python")
for function in ("scan_records", "read_records_at", "list_pairs"):
    setattr(PYTHON, function, in_python[function])
FORMS = [PYTHON, scans]
"""In Python, and as installed: in C if it was built."""
LONGS = st.one_of(st.integers(-3000, 3000), st.integers(-(1 << 63), (1 << 63) - 1))
EDITS = st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 255)), max_size=3)


def written(records: list[Record], edits: list[tuple[int, int]]) -> bytearray:
    """The records one after another, each with its place in the log, and some bytes changed."""
    data = bytearray()
    for record in records:
        data += encode_record(msgspec.structs.replace(record, position=BASE + len(data)))
    for place, byte in edits:
        if data:
            data[place % len(data)] = byte
    return data


def scanned(
    form: ModuleType, data: bytes, at: int, end: int, base: int, check_crc: bool, most: int = 20
) -> list[dict[str, int | bytes]]:
    """The rows of a scan, each with its topic instead of the number of it."""
    room = np.empty((most, len(COLUMNS)), dtype=np.int64)
    count, topics = form.scan_records(data, at, end, base, check_crc, room)
    return [
        {**dict(zip(COLUMNS, row, strict=True)), "topic": topics[row[-1]]} for row in room[:count].tolist()
    ]


@settings(max_examples=150)
@given(
    st.lists(RECORDS, max_size=6),
    EDITS,
    st.integers(-3, 1500),
    st.booleans(),
    st.sampled_from([BASE, ANYWHERE]),
)
@example(  # a body's length leads out of the buffer, where the topic would be
    [Record("T", 0, 0, 0, b"x", b"")] * 3, [(84, 16)], 0, False, BASE
)
def test_any_bytes_are_scanned_alike(
    records: list[Record], edits: list[tuple[int, int]], cut: int, check_crc: bool, base: int
) -> None:
    data = bytes(written(records, edits))
    end = len(data) - cut
    found, same = (scanned(form, data, 0, end, base, check_crc) for form in FORMS)
    assert found == same
    if not edits and cut <= 0:
        assert [
            (row["topic"], row["queueId"], row["queueOffset"], row["storeTimestamp"]) for row in found
        ] == [(one.topic.encode(), one.queue_id, one.queue_offset, one.store_timestamp) for one in records]
        for row, one in zip(found, records, strict=True):
            assert data[row["bodyBegin"] : row["bodyEnd"]] == one.body
            assert data[row["topicEnd"] + 2 : row["start"] + row["storeSize"]] == one.properties


@pytest.mark.parametrize("form", FORMS, ids=["python", "installed"])
def test_a_scan_ends_before_the_first_record_that_is_damaged(form: ModuleType) -> None:
    data = stored(20, base=BASE)
    rows = scanned(form, data, 0, len(data), BASE, True)
    starts = [int(row["start"]) for row in rows]
    assert len(starts) == 20
    for place, change, is_found in (
        (4, 9, False),
        (28, 9, False),
        (88, 63, False),
        (0, 127, False),
        (12, 9, True),
    ):
        raw = bytearray(data)
        raw[starts[7] + place] = change
        count = len(scanned(form, bytes(raw), 0, len(raw), BASE, True))
        assert count == (20 if is_found else 7), place
    for end in (starts[7], starts[7] + 1, starts[8]):
        assert [row["start"] for row in scanned(form, data, 0, end, BASE, True)] == [
            start for start in starts if start < end
        ]
    assert [row["start"] for row in scanned(form, data, starts[3], len(data), BASE, False, most=4)] == starts[
        3:7
    ]
    assert scanned(form, data, len(data), len(data) + 9, BASE, False) == []
    assert scanned(form, data[:-1], starts[19], len(data), BASE, False) == [], "a record is cut off"
    with pytest.raises(ValueError, match="below 0"):
        scanned(form, data, -1, 9, BASE, False)


@settings(max_examples=100)
@given(st.lists(RECORDS, min_size=1, max_size=6), EDITS, st.lists(LONGS, max_size=3))
def test_any_places_are_read_alike(
    records: list[Record], edits: list[tuple[int, int]], wild: list[int]
) -> None:
    data = bytes(written(records, edits))
    sizes = [len(encode_record(record)) for record in records]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    places = np.array(sorted(starts + wild), dtype=np.int64)
    found = []
    for form in FORMS:
        room = np.empty((len(places), len(COLUMNS)), dtype=np.int64)
        _, topics = form.read_records_at(data, places, places, room)
        found.append((room[:, :-1].tolist(), [topics[n] if size else b"" for n, size in room[:, [-1, 1]]]))
        assert room[:, 0].tolist() == places.tolist()
    assert found[0] == found[1]
    if not edits and not wild:
        assert [row[1] for row in found[0][0]] == sizes


def pairs(form: ModuleType, texts: list[bytes], front: bytes = b"..") -> list[list[tuple[bytes, bytes]]]:
    """The pairs of each text."""
    data = b"".join(front + text for text in texts)
    ends = np.cumsum([len(front) + len(text) for text in texts], dtype=np.int64)
    begins = ends - np.array([len(text) for text in texts], dtype=np.int64)
    room = np.empty((200, len(PAIR_COLUMNS)), dtype=np.int64)
    count, names = form.list_pairs(data, begins, ends, room)
    found: list[list[tuple[bytes, bytes]]] = [[] for _ in texts]
    for row, name, begin, end in room[:count].tolist():
        found[row].append((names[name], data[begin:end]))
    return found


NAMES = ["KEYS", "TAGS", "TAG", "UNIQ_KEY", "UNIQ_KEX", "", "é" * 9, "a" * 33]
SAME = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(["", "1", "two", "é"])), max_size=20).map(
    lambda some: "".join(f"{name}\x01{value}\x02" for name, value in some).encode()
)


@settings(max_examples=300)
@given(st.lists(PROPERTY_TEXTS | SAME, min_size=1, max_size=8))
@example([b"KEYS\x01a\x02", b"KEYS\x01\x02KEYS\x01b", b"KEYS\x02KEYS\x01a\x01b\x02", b"", b"KEYSX\x01a"])
@example(
    [
        b"".join(b"n%d\x01v\x02" % n for n in range(100)),
        b"".join(b"n%d\x01v\x02" % n for n in range(99, 0, -1)),
    ]
)
@example([b"a\x01b\x02c\x01d", b"a\x01b\x02", b"c\x01d\x02e\x01f\x02"])
def test_pairs_are_those_of_each_text_alone(texts: list[bytes]) -> None:
    found = [pairs(form, texts) for form in FORMS]
    assert found[0] == found[1]
    for text, of_text in zip(texts, found[0], strict=True):
        assert len(dict(of_text)) == len(of_text)
        assert {name.decode(): value.decode() for name, value in of_text} == decode_properties(text)


@pytest.mark.parametrize("form", FORMS, ids=["python", "installed"])
def test_what_does_not_fit_is_refused(form: ModuleType) -> None:
    raw, room = np.zeros(10, dtype=np.uint8), np.empty((1, len(PAIR_COLUMNS)), dtype=np.int64)
    for begin, end in ((-1, 3), (4, 3), (0, 11)):
        with pytest.raises(ValueError, match="lie in the buffer"):
            form.list_pairs(raw, np.array([begin]), np.array([end]), room)
    text = np.frombuffer(b"a\x01b\x02c\x01d", dtype=np.uint8)
    assert form.list_pairs(text, np.array([0]), np.array([7]), room)[0] == -1, "one row for two pairs"
    with pytest.raises(ValueError, match="as many"):
        form.read_records_at(raw, np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros((1, 12), np.int64))
