"""Where records begin by the consume queues: as a walk finds them, whatever queues and log hold."""

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

import msgspec
from pocketmq.pipeline.files.log_files import LogSplit
from pocketmq.pipeline.files.scan import ScanOptions
from pocketmq.pipeline.files.unit_starts import MOST_QUEUES, UnitStarts
from pocketmq.pipeline.records import sound_records
from pocketmq.pipeline.records.boundaries import walk_records

from pipeline.files.random_stores import Message, found_by, only_file, units_of, write_log, write_queues
from pipeline.files.test_runs import MESSAGES


@example([Message("T", 0, offset) for offset in (0, 1, 3, 3)], [], [], [1], "fail")  # a queue with a hole
@settings(max_examples=80)
@given(
    MESSAGES,
    st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(0, 255)), max_size=2),
    st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(0, 255)), max_size=3),
    st.lists(st.integers(0, 4000), max_size=3),
    st.sampled_from(["fail", "report"]),
)
def test_a_scan_with_queues_finds_what_a_scan_without_them_finds(
    messages: list[Message],
    log_changes: list[tuple[int, int]],
    unit_changes: list[tuple[int, int]],
    cuts: list[int],
    on_corrupt: str,
) -> None:
    """Units of some records are missing, because several messages may have one offset; others are damaged."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_queues(root, units_of(write_log(root, messages)))
        file = only_file(root)
        queue_files = sorted(root.glob("consumequeue/*/*/*"))
        for paths, changes in (([Path(file.path)], log_changes), (queue_files, unit_changes)):
            for place, byte in changes:
                path = paths[place % len(paths)]
                raw = bytearray(path.read_bytes())
                raw[place % len(raw)] = byte
                path.write_bytes(raw)
        plain = ScanOptions(on_corrupt=on_corrupt, decode_rows=7)
        quick = msgspec.structs.replace(plain, queues_folder=str(root / "consumequeue"))
        edges = sorted({0, *(cut for cut in cuts if cut < file.size), file.size})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sound_records, "_native", None)
            for begin, end in itertools.pairwise(edges):
                split = LogSplit(file, begin, end, file.size)
                assert found_by(split, quick) == found_by(split, plain)


def test_the_queues_of_a_sound_store_name_every_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = write_log(tmp_path, [Message("T", n % 3, n // 3) for n in range(300)])
    several = {("of several", 0): {n: (one.position, one.size) for n, one in enumerate(messages[::5])}}
    write_queues(tmp_path, units_of(messages) | several)
    data = memoryview(Path(only_file(tmp_path).path).read_bytes())
    by_queues = UnitStarts(str(tmp_path / "consumequeue"), 0)
    monkeypatch.setattr("pocketmq.pipeline.files.unit_starts.walk_window", None)  # must not be needed
    found, walked = by_queues.walk(data, 0, len(data)), walk_records(data, 0, len(data))
    assert (found.starts.tolist(), found.stop, found.reason) == (
        walked.starts.tolist(),
        walked.stop,
        walked.reason,
    )


@pytest.mark.parametrize("queues", [0, MOST_QUEUES + 1])
def test_a_store_without_queues_or_with_too_many_is_walked(tmp_path: Path, queues: int) -> None:
    write_log(tmp_path, [Message("T", 0, n) for n in range(100)])
    for number in range(queues):
        (tmp_path / "consumequeue" / "T" / str(number)).mkdir(parents=True)
    data = memoryview(Path(only_file(tmp_path).path).read_bytes())
    assert len(UnitStarts(str(tmp_path / "consumequeue"), 0).walk(data, 0, len(data)).starts) == 100
