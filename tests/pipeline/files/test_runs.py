"""Runs hold every record of a queue once, in the order of the log, whatever the order and the damage."""

import itertools
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pocketmq.pipeline.tables.files import runs as runs_file
from pocketmq.pipeline.tables.files.aggregates import scan_runs
from pocketmq.pipeline.tables.files.log_files import LogSplit
from pocketmq.pipeline.tables.files.scan import ScanOptions

from pipeline.store_files import Message, only_file, overwrite, whole_log, write_log

MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["T", "Other"]), st.integers(-1, 2), st.integers(0, 9)),
    min_size=1,
    max_size=40,
)
REPORT = ScanOptions(on_corrupt="report", verifies_crc=True, decode_rows=7)


def rows(splits: list[LogSplit], options: ScanOptions = REPORT, **more: Any) -> list[dict[str, Any]]:
    return [
        row for split in splits for batch in scan_runs(split, options, **more) for row in batch.to_pylist()
    ]


def runs_one_by_one(messages: list[Message]) -> list[tuple[Any, ...]]:
    """The runs of a log, by a loop over its records."""
    found: list[list[Message]] = []
    last: dict[tuple[str, int], list[Message]] = {}
    for message in messages:
        run = last.get((message.topic, message.queue_id))
        if run is None or run[-1].offset + 1 != message.offset:
            run = last[message.topic, message.queue_id] = []
            found.append(run)
        run.append(message)
    return [
        (
            *(
                run[0].topic,
                run[0].queue_id,
                run[0].offset,
                run[-1].offset,
                run[0].position,
                run[-1].position,
            ),
            *(len(run), sum(message.size for message in run)),
        )
        for run in found
    ]


def as_tuple(row: dict[str, Any]) -> tuple[Any, ...]:
    names = (
        "topic",
        "queueId",
        "firstOffset",
        "lastOffset",
        "firstPosition",
        "lastPosition",
        "records",
        "bytes",
    )
    return tuple(row[name] for name in names)


@settings(max_examples=60)
@given(MESSAGES)
def test_runs_are_those_of_a_loop_over_the_records(messages: list[Message]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        written = write_log(Path(folder), messages)
        found = rows([whole_log(Path(folder))])
    assert {row["status"] for row in found} == {"ok"}
    assert sorted(map(as_tuple, found)) == sorted(runs_one_by_one(written))


@settings(max_examples=40)
@given(MESSAGES, st.lists(st.integers(0, 3000), max_size=4))
def test_runs_of_splits_hold_each_record_once(messages: list[Message], cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        written = write_log(Path(folder), messages)
        file = only_file(Path(folder))
        edges = sorted({0, *(cut for cut in cuts if cut < file.size), file.size})
        found = rows([LogSplit(file, lo, hi, file.size) for lo, hi in itertools.pairwise(edges)])
    offsets = [
        (row["topic"], row["queueId"], offset)
        for row in found
        for offset in range(row["firstOffset"], row["lastOffset"] + 1)
    ]
    assert sorted(offsets) == sorted((one.topic, one.queue_id, one.offset) for one in written)


@settings(max_examples=40)
@given(MESSAGES)
def test_runs_that_are_too_many_to_keep_are_handed_over(messages: list[Message]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs_file, "MAX_RUNS", 4)
        written = write_log(Path(folder), messages)
        found = rows([whole_log(Path(folder))])
    assert sum(row["records"] for row in found) == len(written)
    assert sum(row["bytes"] for row in found) == sum(message.size for message in written)


@settings(max_examples=40)
@given(MESSAGES, st.integers(0, 1 << 20), st.integers(0, 255))
def test_damage_is_a_row_of_its_own_and_the_rest_are_runs(
    messages: list[Message], place: int, byte: int
) -> None:
    """Every record is in a run, or at a reported position, or lost between two reported positions."""
    with tempfile.TemporaryDirectory() as folder:
        written = write_log(Path(folder), messages)
        file = only_file(Path(folder))
        overwrite(Path(file.path), place % file.size, bytes([byte]))
        found = rows([whole_log(Path(folder))])
    read = sum(row["records"] for row in found if row["status"] == "ok")
    damage = [row for row in found if row["status"] != "ok"]
    assert len(written) - 1 <= read <= len(written)
    if read < len(written):
        assert damage
    assert all(row["file"] == file.path and row["firstPosition"] >= 0 for row in damage)


def test_the_times_of_a_run_are_its_earliest_and_latest(tmp_path: Path) -> None:
    write_log(tmp_path, [Message("T", 0, offset) for offset in range(5)])
    (row,) = rows([whole_log(tmp_path)])
    assert (row["lastTime"] - row["firstTime"]).total_seconds() == 80
