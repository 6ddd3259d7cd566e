"""Store files are split at any byte without losing a record; damage is reported with its position."""

import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.pipeline.errors import CorruptStoreError, OptionError
from pocketmq.pipeline.tables.files import scan as store_scan
from pocketmq.pipeline.tables.files.log_files import (
    MAX_SPLITS,
    LogFile,
    LogSplit,
    data_end,
    files_at,
    log_files,
    log_splits,
)
from pocketmq.pipeline.tables.files.scan import ScanOptions, scan_log
from pocketmq.pipeline.tables.records.boundaries import find_record
from pocketmq.pipeline.tables.records.records import scan

from pipeline.records.record_bytes import stored

BASE = 1 << 20
COUNT = 60
DATA = stored(COUNT, base=BASE)
FILE_BYTES = len(DATA) + 300
FILE = DATA + struct.pack(">ii", 300, -875286124) + bytes(292)


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> LogFile:
    path = tmp_path_factory.mktemp("log") / f"{BASE:020}"
    path.write_bytes(FILE)
    return log_files(path.parent)[0]


def offsets(split: LogSplit) -> list[int]:
    return [
        one
        for found in scan_log(split, ScanOptions(decode_rows=7))
        if found.records is not None
        for one in found.records.column("physicalOffset").to_pylist()
    ]


@given(
    st.lists(st.integers(0, 99), unique=True, min_size=1).map(sorted),
    st.lists(st.integers(-5, 1100), max_size=20),
)
def test_the_files_of_some_positions_are_those_that_begin_last_before_them(
    bases: list[int], positions: list[int]
) -> None:
    files = [LogFile(f"{base:020}", base * 10, 10, False) for base in bases]
    expected = {
        max(before, key=lambda file: file.base)
        for position in positions
        if (before := [file for file in files if file.base <= position])
    }
    found = files_at(files, np.array(positions, dtype=np.int64))
    assert found == sorted(expected, key=lambda file: file.base)


STARTS = [BASE + one for one in scan(DATA, 0, len(DATA), most=COUNT).starts]


@settings(max_examples=60)
@given(st.lists(st.integers(0, FILE_BYTES), max_size=8))
def test_splits_at_any_byte_give_each_record_once(log_file: LogFile, cuts: list[int]) -> None:
    edges = sorted({0, *cuts, FILE_BYTES})
    parts = [offsets(LogSplit(log_file, lo, hi, 0)) for lo, hi in itertools.pairwise(edges)]
    assert [one for part in parts for one in part] == STARTS


@pytest.mark.parametrize("distance", range(-9, 10))
def test_a_split_beside_a_record_start_loses_none(log_file: LogFile, distance: int) -> None:
    """A record that begins within eight bytes before a split's end belongs to that split."""
    cut = STARTS[20] - BASE + distance
    left, right = LogSplit(log_file, 0, cut, 0), LogSplit(log_file, cut, FILE_BYTES, 0)
    assert offsets(left) + offsets(right) == STARTS


def test_a_body_that_holds_a_record_is_not_read_as_a_record() -> None:
    inner = stored(1, base=5)
    data = memoryview(inner + inner)
    assert find_record(data, 1, len(data), 5) == len(data), "its stored position is different"


def damaged(tmp_path: Path, position: int, change: bytes) -> LogSplit:
    raw = bytearray(FILE)
    raw[position : position + len(change)] = change
    path = tmp_path / f"{BASE:020}"
    path.write_bytes(raw)
    return LogSplit(log_files(tmp_path)[0], 0, FILE_BYTES, BASE + len(DATA))


PLACE = STARTS[30] - BASE
DAMAGES = {
    "bad size (plausible)": (PLACE, struct.pack(">i", 2 * (STARTS[31] - STARTS[30]))),
    "bad magic": (PLACE + 4, b"\0\0\0\1"),
    "bad size": (PLACE, struct.pack(">i", 17)),
    "bad offset": (PLACE + 28, struct.pack(">q", 4711)),
    "bad crc": (PLACE + 88, b"?"),
}


@pytest.mark.parametrize("status", DAMAGES)
def test_one_damaged_record_is_reported_skipped_or_named_and_the_others_are_read(
    tmp_path: Path, status: str
) -> None:
    split = damaged(tmp_path, *DAMAGES[status])
    statuses: list[str] = []
    read = 0
    for found in scan_log(split, ScanOptions(on_corrupt="report", verifies_crc=True)):
        if found.records is None:
            statuses.append(found.bad_status)
            assert found.bad_position == BASE + PLACE
        else:
            bad = [] if found.statuses is None else [one for one in found.statuses.to_pylist() if one != "ok"]
            statuses += bad
            read += len(found.records) - len(bad)
    assert (statuses, read) == ([status.partition(" (")[0]], COUNT - 1)
    skipping = scan_log(split, ScanOptions(on_corrupt="skip", verifies_crc=True))
    assert sum(len(found.records) for found in skipping if found.records is not None) == COUNT - 1
    with pytest.raises(CorruptStoreError, match=rf"{BASE:020} at byte {PLACE} .*{status.partition(' (')[0]}"):
        list(scan_log(split, ScanOptions(verifies_crc=True)))


def test_bytes_being_written_after_the_known_end_are_the_end(tmp_path: Path) -> None:
    raw = DATA + DATA[:50] + bytes(500)
    path = tmp_path / f"{BASE:020}"
    path.write_bytes(raw)
    split = LogSplit(log_files(tmp_path)[0], 0, len(raw), BASE + len(DATA))
    assert offsets(split) == STARTS


def test_splits_cover_every_byte_once(tmp_path: Path) -> None:
    for base, size in ((0, 1000), (1000, 1000), (2000, 10)):
        (tmp_path / f"{base:020}").write_bytes(bytes(size))
    splits = log_splits(log_files(tmp_path), 300, 2, 0)
    covered = [split.file.base + byte for split in splits for byte in range(split.begin, split.end)]
    assert covered == list(range(2010))
    assert max(split.end - split.begin for split in splits) <= 300


def test_splits_of_one_byte_are_not_more_than_spark_can_hold(tmp_path: Path) -> None:
    """A file of 1 GiB would be as many tasks, each an object in the driver."""
    last = tmp_path / "last"
    last.write_bytes(b"x" * (1 << 20))
    files = [LogFile("a", 0, 1 << 30, False), LogFile(str(last), 1 << 30, 1 << 20, True)]
    splits = log_splits(files, 1, 2, (1 << 30) + (1 << 19))
    assert 0.9 * MAX_SPLITS < len(splits) <= MAX_SPLITS + 2 * len(files)
    assert sum(split.end - split.begin for split in splits) == sum(file.size for file in files)


def test_the_unwritten_part_of_a_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / f"{BASE:020}"
    with path.open("wb") as file:
        file.write(DATA)
        file.truncate(1 << 30)
    if data_end(str(path)) == 1 << 30:
        pytest.skip("this file system does not tell where a file has no data")
    for known_end in (BASE + len(DATA), BASE + STARTS[40] - BASE, 0):
        splits = log_splits(log_files(tmp_path), 1 << 20, 1, known_end)
        assert splits[-1].end < 1 << 20
        assert [one for split in splits for one in offsets(split)] == STARTS


def test_data_after_a_hole_is_found(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(b"x" * 10)
        file.seek(8 << 20)
        file.write(b"x")
        file.truncate(16 << 20)
    assert (8 << 20) < data_end(str(path)) <= 16 << 20
    assert data_end(str(path), 16 << 20) == 16 << 20


def test_a_batch_is_limited_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_scan, "BATCH_BYTES", 500)
    (tmp_path / f"{BASE:020}").write_bytes(FILE)
    found = list(scan_log(LogSplit(log_files(tmp_path)[0], 0, FILE_BYTES, 0), ScanOptions()))
    assert len(found) > len(DATA) // 1000
    assert all(one.records is not None and one.records.sizes[:-1].sum() < 500 for one in found)
    assert offsets(LogSplit(log_files(tmp_path)[0], 0, FILE_BYTES, 0)) == STARTS


def test_a_folder_that_is_not_a_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="nothing-here is not a folder"):
        log_files(tmp_path / "nothing-here")
