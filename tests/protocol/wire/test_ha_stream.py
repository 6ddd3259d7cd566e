"""The HA port's bytes: any split of the stream gives the same parts and the newest report."""

import itertools
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.protocol.errors import FrameError
from pocketmq.protocol.wire.ha_stream import MAX_PART_BYTES, PART_HEAD, REPORT, PartReader, ReportReader

PARTS = st.lists(st.tuples(st.integers(0, 1 << 40), st.binary(max_size=60)), max_size=8)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@given(PARTS, st.lists(st.integers(0, 1000), max_size=10))
def test_parts_survive_any_split(parts: list[tuple[int, bytes]], cuts: list[int]) -> None:
    stream = b"".join(PART_HEAD.pack(position, len(data)) + data for position, data in parts)
    reader = PartReader()
    read = [(position, bytes(part)) for piece in split(stream, cuts) for position, part in reader.feed(piece)]
    assert read == parts


def test_head_is_an_int64_and_an_int32_and_a_report_an_int64() -> None:
    assert PART_HEAD.pack(1 << 33, 5) == bytes.fromhex("0000000200000000 00000005")
    assert REPORT.pack(258) == bytes.fromhex("0000000000000102")


@pytest.mark.parametrize("head", [(0, -1), (0, MAX_PART_BYTES + 1), (-1, 4)])
def test_an_impossible_size_ends_the_stream(head: tuple[int, int]) -> None:
    with pytest.raises(FrameError):
        list(PartReader().feed(struct.pack(">qi", *head)))


@given(st.lists(st.integers(0, 1 << 62), min_size=1, max_size=5), st.lists(st.integers(0, 100), max_size=6))
def test_the_newest_report_counts(reports: list[int], cuts: list[int]) -> None:
    reader = ReportReader()
    stream = b"".join(REPORT.pack(one) for one in reports)
    heard = [one for piece in split(stream, cuts) if (one := reader.feed(piece)) is not None]
    assert heard[-1] == reports[-1]


def test_half_a_report_is_not_read() -> None:
    reader = ReportReader()
    assert reader.feed(REPORT.pack(7)[:5]) is None
    assert reader.feed(REPORT.pack(7)[5:]) == 7
