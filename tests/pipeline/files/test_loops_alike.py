"""A scan finds the same with the loops in C and without them, whatever the log holds."""

import contextlib
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

from pocketmq.core.choice import in_python, is_native
from pocketmq.pipeline.files.aggregates import scan_runs
from pocketmq.pipeline.files.consume_queues import queue_splits
from pocketmq.pipeline.files.log_files import LogSplit
from pocketmq.pipeline.files.queue_check import check_units
from pocketmq.pipeline.files.scan import ScanOptions
from pocketmq.pipeline.records import records

from pipeline.files.random_stores import Message, found_by, only_file, units_of, write_log, write_queues
from pipeline.files.test_runs import MESSAGES

needs_c = pytest.mark.skipif(not is_native, reason="not built")
CHANGES = st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(0, 255)), max_size=3)


def damage(paths: list[Path], changes: list[tuple[int, int]]) -> None:
    """Write some bytes anywhere in the files."""
    for place, byte in changes:
        path = paths[place % len(paths)]
        raw = bytearray(path.read_bytes())
        raw[place % len(raw)] = byte
        path.write_bytes(raw)


@contextlib.contextmanager
def without_c() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("scan_records", "read_records_at"):
            patch.setattr(records, name, in_python[name])
        yield


@needs_c
@settings(max_examples=100)
@given(
    MESSAGES,
    CHANGES,
    st.lists(st.integers(0, 4000), max_size=3),
    st.sampled_from(["fail", "report"]),
    st.booleans(),
    st.sampled_from([frozenset(), frozenset({"T"})]),
)
@example(  # a body's length leads out of the file, where the topic would be
    [Message("T", 0, 0), Message("T", 0, 0), Message("Other", 0, 0)],
    [(343, 16)],
    [],
    "fail",
    False,
    frozenset({"T"}),
)
def test_a_scan_finds_the_same_records_and_damage(
    messages: list[Message],
    changes: list[tuple[int, int]],
    cuts: list[int],
    on_corrupt: str,
    verifies_crc: bool,
    topics: frozenset[str],
) -> None:
    options = ScanOptions(
        on_corrupt=on_corrupt,
        decode_rows=7,
        verifies_crc=verifies_crc,
        topics=topics,
    )
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder), messages)
        file = only_file(Path(folder))
        damage([Path(file.path)], changes)
        edges = sorted({0, *(cut for cut in cuts if cut < file.size), file.size})
        for begin, end in itertools.pairwise(edges):
            split = LogSplit(file, begin, end, file.size)
            in_c = found_by(split, options)
            with without_c():
                assert in_c == found_by(split, options)


@needs_c
@settings(max_examples=100)
@given(MESSAGES, CHANGES, CHANGES)
def test_runs_and_checks_of_queues_are_the_same(
    messages: list[Message], log_changes: list[tuple[int, int]], unit_changes: list[tuple[int, int]]
) -> None:
    options = ScanOptions(on_corrupt="report", verifies_crc=True, decode_rows=7)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_queues(root, units_of(write_log(root, messages)))
        file = only_file(root)
        damage([Path(file.path)], log_changes)
        damage(sorted(root.glob("consumequeue/*/*/*")), unit_changes)

        def rows() -> list[Any]:
            batches = list(scan_runs(LogSplit(file, 0, file.size, file.size), options, root=folder))
            for split in queue_splits(root / "consumequeue", frozenset()):
                batches += check_units(split, str(root / "commitlog"))
            return sorted((row for batch in batches for row in batch.to_pylist()), key=str)

        in_c = rows()
        with without_c():
            assert in_c == rows()
