"""Walks side by side find what one walk finds: in sound logs, damaged ones, and bodies that look like records."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.protocol.message.record import Record, encode_record

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

from pocketmq.pipeline.records import lanes
from pocketmq.pipeline.records.boundaries import RecordWalk, walk_records
from pocketmq.pipeline.records.lanes import walk_joined, walk_window

from pipeline.records.record_bytes import stored

BASE = 1 << 30
BODY_AT = 88
"""Where the body of a record with IPv4 hosts begins."""


@pytest.fixture(autouse=True)
def small_lanes() -> Iterator[None]:
    """So that a log of some dozen records has several lanes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "PROBE", 2)
        patch.setattr(lanes, "LANE_RECORDS", 3)
        patch.setattr(lanes, "LEAST_LANES", 2)
        patch.setattr(lanes, "LEAST_REPLIES", 2)
        yield


def record_at(position: int, number: int, body: bytes) -> bytes:
    record = Record(topic="T", queue_id=0, queue_offset=number, position=position, body=body, properties=b"")
    return encode_record(record)


def log_of(bodies: list[int | None]) -> bytes:
    """Records with bodies of these sizes; None is a body that is itself a record, stored for its own position."""
    log = b""
    for number, size in enumerate(bodies):
        body = bytes(size or 0)
        if size is None:
            body = record_at(BASE + len(log) + BODY_AT, number, b"inner")
        log += record_at(BASE + len(log), number, body)
    return log


def as_tuple(walk: RecordWalk) -> tuple[list[int], int, str]:
    return walk.starts.tolist(), walk.stop, walk.reason


def same(data: bytes, position: int, end: int) -> bool:
    view = memoryview(data)
    return as_tuple(walk_window(view, position, end, BASE)) == as_tuple(walk_records(view, position, end))


@settings(max_examples=100)
@given(
    st.lists(st.one_of(st.integers(0, 300), st.none()), min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(0, 255)), max_size=3),
    st.integers(0, 1 << 14),
    st.integers(0, 400),
)
def test_lanes_find_what_one_walk_finds(
    bodies: list[int | None], changes: list[tuple[int, int]], end: int, cut: int
) -> None:
    data = bytearray(log_of(bodies))
    for position, byte in changes:
        data[position % len(data)] = byte
    whole = bytes(data)
    cut_off = whole[: max(len(whole) - cut, 0)]
    assert same(whole, 0, len(whole))
    assert same(whole, 0, min(end, len(whole)))
    assert same(cut_off, 0, len(cut_off))


def test_a_log_of_records_inside_bodies_is_walked_by_its_own_records() -> None:
    data = log_of([None] * 60)
    assert same(data, 0, len(data))
    assert len(walk_window(memoryview(data), 0, len(data), BASE).starts) == 60


def test_every_size_of_a_record_is_judged_as_by_one_walk() -> None:
    """The size of one record is changed to every size around it, so that the walk after it is out of step."""
    sound = stored(30, base=BASE)
    begin = walk_records(memoryview(sound), 0, len(sound)).starts[12]
    for size in range(700):
        data = bytearray(sound)
        data[begin : begin + 4] = size.to_bytes(4, "big")
        assert same(bytes(data), 0, len(data)), size


def test_long_records_and_few_bytes_are_walked_alone() -> None:
    for bodies in ([40_000] * 5, [10], [10, 10, 10]):
        data = log_of(bodies)  # type: ignore[arg-type]
        assert same(data, 0, len(data))


@settings(max_examples=100)
@given(
    st.lists(
        st.lists(st.one_of(st.integers(0, 300), st.none()), max_size=4).map(log_of), min_size=1, max_size=12
    ),
    st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(0, 255)), max_size=3),
    st.integers(0, 200),
)
def test_joined_replies_are_walked_as_one_walk_does(
    replies: list[bytes], changes: list[tuple[int, int]], cut: int
) -> None:
    replies[-1] = replies[-1][: max(len(replies[-1]) - cut, 0)]
    data = bytearray(b"".join(replies))
    for position, byte in changes:
        if data:
            data[position % len(data)] = byte
    view = memoryview(bytes(data))
    found = walk_joined(view, [len(reply) for reply in replies])
    assert as_tuple(found) == as_tuple(walk_records(view, 0, len(view)))
