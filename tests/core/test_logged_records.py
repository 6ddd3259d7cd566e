"""Records found and gathered in a log: C does what Python does."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.core.choice import in_python
from pocketmq.protocol.message.record import Record, encode_record

RECORDS = st.builds(
    Record,
    topic=st.sampled_from(["a", "orders", "%RETRY%x", "t" * 127, "t" * 200]),
    queue_id=st.integers(-5, 2**31 - 1),
    queue_offset=st.integers(-5, 2**63 - 1),
    position=st.just(0),
    body=st.binary(max_size=40),
    properties=st.binary(max_size=30),
    sys_flag=st.sampled_from([0, 1, 4, 8, -256]),
    store_timestamp=st.integers(-1, 2**62),
    born_host=st.sampled_from([bytes(8), bytes(20)]),
)


@given(
    records=st.lists(RECORDS, max_size=5),
    damage=st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), max_size=2),
    cut=st.integers(0, 5),
    check_crc=st.booleans(),
    most=st.integers(0, 6),
)
def test_records_are_found_alike(native, records, damage, cut, check_crc, most) -> None:
    log = bytearray(b"".join(map(encode_record, records)))
    for at, value in damage:
        if at < len(log):
            log[at] = value
    view = memoryview(log)
    end = len(log) - cut
    found = in_python["scan_plain"](view, 0, end, check_crc, most)
    assert native.scan_plain(view, 0, end, check_crc, most) == found
    if not damage and not cut and check_crc and most > len(records):
        common = [record for record in records if record.born_host == bytes(8) and len(record.topic) < 128]
        assert len(found) == len(records) or len(common) < len(records)


@given(data=st.binary(max_size=400), at=st.integers(-5, 500), end=st.integers(-5, 500))
def test_no_bytes_make_the_scan_fail(native, data, at, end) -> None:
    view = memoryview(b"\0\0\0\x5c\xda\xa3\x20\xa7" + data)
    for start in (0, at):
        native.scan_plain(view, start, end, True, 9)


ENTRIES = st.lists(
    st.tuples(
        st.integers(900, 1200) | st.integers(-(2**63), 2**63 - 1),
        st.integers(0, 90) | st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**63), 2**63 - 1),
    ),
    max_size=5,
)


@given(
    entries=ENTRIES,
    log=st.binary(min_size=200, max_size=300),
    base=st.just(950) | st.integers(-(2**63), 2**63 - 1),
)
def test_records_are_gathered_alike_or_refused_by_both(native, entries, log, base) -> None:
    packed = memoryview(b"".join(struct.pack(">qiq", *entry) for entry in entries))
    outcomes = []
    for function in (in_python["gather_records"], native.gather_records):
        try:
            outcomes.append(function(packed, memoryview(log), base))
        except ValueError:
            outcomes.append(None)
    assert outcomes[0] == outcomes[1]
    if all(0 <= at - base <= at - base + size <= len(log) for at, size, _ in entries):
        assert outcomes[0] == b"".join(log[at - base : at - base + size] for at, size, _ in entries)


def test_half_an_entry_is_refused(core) -> None:
    gather = core.gather_records
    with pytest.raises((struct.error, ValueError)):
        gather(memoryview(bytes(30)), memoryview(b"log"), 0)
