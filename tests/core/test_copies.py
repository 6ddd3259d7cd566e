"""Records are read for messages stored anew: C reads what Python does, and the same of it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.core.properties import BUCKETS
from pocketmq.protocol.message.properties import encode_properties_text
from pocketmq.protocol.message.record import Record, encode_record

from property_texts import MANY_PAIRS, TEXTS

BASE = 1000
NAMES, NUMBER = ("KEYS", "TAGS", "ü"), "NUMBER"
NUMBERS = st.sampled_from(["0", "7", "-1", "2147483648", "07", "+1", "x", "", "9" * 19])
NUMBERED = st.builds(
    lambda number, text, is_first: b"\x02".join(
        (b"NUMBER\x01" + number.encode(), text) if is_first else (text, b"NUMBER\x01" + number.encode())
    ),
    NUMBERS,
    TEXTS,
    st.booleans(),
)
RECORDS = st.builds(
    Record,
    topic=st.sampled_from(["a", "orders", "ü", "t" * 127, "t" * 200]),
    queue_id=st.integers(-5, 5),
    queue_offset=st.integers(-5, 2**63 - 1),
    position=st.just(0),
    body=st.binary(max_size=40),
    properties=st.one_of(
        NUMBERED, NUMBERED, NUMBERED, TEXTS, MANY_PAIRS, st.just(b"NUMBER\x011\x02KEYS\x01" + b"k" * 5000)
    ),
    flag=st.integers(0, 1),
    sys_flag=st.sampled_from([0, 4, 8]),
    born_timestamp=st.integers(-1, 2**62),
    born_host=st.sampled_from([bytes(8), bytes(20)]),
    store_host=st.sampled_from([bytes(8), b"\x01" * 20]),
    store_timestamp=st.integers(-1, 2**62),
    reconsume_times=st.integers(0, 1),
)
CHANGES = st.sampled_from([(), ("KEYS", None), ("TAGS", "new", "NUMBER", None), ("ü", "é")])


def log_of(records: list[Record], shift: int = 0) -> tuple[bytearray, list[int]]:
    """The records one behind the other, and their positions."""
    log, positions = bytearray(), []
    for record in records:
        data = bytearray(encode_record(record))
        positions.append(BASE + len(log))
        data[28:36] = (positions[-1] + shift).to_bytes(8, "big")
        log += data
    return log, positions


@given(
    records=st.lists(RECORDS, max_size=6),
    damage=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 255)), max_size=2),
    more=st.lists(
        st.integers(BASE - 50, BASE + 900) | st.sampled_from([-1, 2**63 - 1, -(2**63)]), max_size=3
    ),
    shift=st.sampled_from([0, 0, 0, 1]),
    changes=CHANGES,
    is_5=st.booleans(),
)
def test_records_are_read_alike(native, records, damage, more, shift, changes, is_5) -> None:
    log, positions = log_of(records, shift)
    for at, value in damage:
        if at < len(log):
            log[at] = value
    form = memoryview(log), BASE, positions + more, NAMES, NUMBER, changes, BUCKETS[is_5], is_5
    in_c, plain = native.read_copies(*form), in_python["read_copies"](*form)
    assert len(in_c) == len(plain) == len(positions + more)
    both = [(one, other) for one, other in zip(in_c, plain, strict=True) if one is not None]
    for one, other in both:
        assert other is not None, "read in C only"
        assert one[1:] == other[1:]
    for (one, other), (next_one, next_other) in itertools.combinations(both, 2):
        assert (one[0] == next_one[0]) == (other[0] == next_other[0])
    if not damage and not shift:
        texts = [bytes(record.properties) for record in records]
        for text, one in zip(texts, in_c[: len(records)], strict=True):
            assert one is None or b"NUMBER\x01" in text


def a_record(**changes: object) -> Record:
    properties = {"PGROUP": "g", "NUMBER": "3", "TAGS": "t", "REAL": "orders"}
    values = {
        "topic": "half",
        "queue_id": 0,
        "queue_offset": 5,
        "position": 0,
        "body": b"body",
        "born_timestamp": 77,
    }
    return Record(**{**values, "properties": encode_properties_text(properties).encode(), **changes})


def test_a_copy_has_its_numbers_and_its_changed_text(core) -> None:
    log, positions = log_of([a_record(), a_record(queue_offset=6, body=b"", store_timestamp=9)])
    form = (
        memoryview(log),
        BASE,
        positions,
        ("PGROUP", "REAL"),
        "NUMBER",
        ("REAL", None, "NUMBER", None),
        128,
        True,
    )
    first, second = core.read_copies(*form)
    kind, queue_offset, number, born_timestamp, body, text = first
    assert (queue_offset, number, born_timestamp, bytes(body)) == (5, 3, 77, b"body")
    assert text == b"PGROUP\x01g\x02TAGS\x01t\x02"
    assert second[:3] == (kind, 6, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"topic": "other"},
        {"queue_id": 1},
        {"flag": 1},
        {"sys_flag": 8},
        {"born_host": bytes(7) + b"\x01"},
        {"born_host": bytes(20)},
        {"store_host": bytes(7) + b"\x01"},
        {"reconsume_times": 1},
        {"properties": b"PGROUP\x01h\x02NUMBER\x013\x02REAL\x01orders\x02"},
        {"properties": b"NUMBER\x013\x02REAL\x01orders\x02"},
    ],
)
def test_other_records_have_other_kinds(core, change) -> None:
    log, positions = log_of([a_record(), a_record(**change)])
    first, second = core.read_copies(
        memoryview(log), BASE, positions, ("PGROUP", "REAL"), "NUMBER", (), 128, True
    )
    assert first[0] != second[0]


def test_kinds_that_are_the_same_are_one_object(native) -> None:
    log, positions = log_of([a_record(), a_record(queue_offset=6)])
    first, second = native.read_copies(memoryview(log), BASE, positions, ("PGROUP",), "NUMBER", (), 128, True)
    assert first[0] is second[0]
