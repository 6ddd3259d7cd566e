"""Rows read by several processes are the same rows in the same order; errors arrive, and no process is left."""

import gc
import os
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

import pyarrow as pa
from pocketmq.pipeline.errors import CorruptStoreError, PipelineError
from pocketmq.pipeline.tables import open_store, processes
from pocketmq.pipeline.tables.processes import can_use_processes, processes_for, read_tasks

from pipeline.tables.numbered_tasks import Dying, Numbered
from pipeline.tables.stores import COUNT, write_store

pytestmark = [
    pytest.mark.skipif(not can_use_processes(), reason="needs files in memory that can be handed over"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("processes") / "store")


@pytest.fixture
def wait_for_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small stores are read before a reader has started, so wait for the readers."""
    monkeypatch.setattr(processes, "START_SECONDS", 60.0)


def children() -> set[str]:
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"PPid:\t{os.getpid()}\n" in (process / "status").read_text():
                found.add(process.name)
        except OSError:
            continue
    return found


@pytest.mark.usefixtures("wait_for_readers")
def test_two_processes_read_the_same_rows_in_the_same_order(store: Path) -> None:
    before = children()
    alone, together = (open_store(store, columns="all", processes=count).read_all() for count in (1, 2))
    assert together.num_rows == COUNT
    assert together.equals(alone)
    filtered = open_store(store, processes=2, columns=["msgId"], filters=[("queueId", "=", 3)])
    assert filtered.read_all().num_rows == COUNT // 4
    assert children() == before


def test_this_process_reads_while_the_others_start(store: Path) -> None:
    """Nothing is waited for, so a small store is read before a reader has started."""
    assert open_store(store, processes=2).read_all().equals(open_store(store, processes=1).read_all())


@pytest.mark.usefixtures("wait_for_readers")
def test_tasks_without_rows_with_many_batches_and_of_unequal_length_keep_their_order() -> None:
    tasks = [
        Numbered(number, batches=number * 7 % 5, seconds=0.05 if number in (3, 9) else 0.0)
        for number in range(30)
    ]
    rows = []
    for batch in read_tasks(tasks, [], None, 2):
        values = batch.slice(0, 1).to_pylist()[0]
        assert batch.num_rows == 1 + 5000 * (values["task"] % 3)
        assert pa.compute.count_distinct(batch.column("task")).as_py() == 1
        rows.append(values)
    assert [(row["task"], row["part"]) for row in rows] == [
        (task.number, part) for task in tasks for part in range(task.count)
    ]
    assert len({row["process"] for row in rows} - {os.getpid()}) == 2


@pytest.mark.usefixtures("wait_for_readers")
def test_rows_that_are_kept_are_not_written_over() -> None:
    kept = list(read_tasks([Numbered(number, batches=3) for number in range(40)], [], None, 2))
    assert [batch.column("task").unique().to_pylist() for batch in kept] == [
        [number] for number in range(40) for _ in range(3)
    ]


def test_a_reader_that_is_left_unread_ends_its_processes(store: Path) -> None:
    before = children()
    reader = open_store(store, processes=2)
    reader.read_next_batch()
    assert len(children() - before) == 2
    del reader
    gc.collect()
    assert children() == before


@pytest.mark.usefixtures("wait_for_readers")
def test_an_error_of_a_process_is_raised_as_it_is(tmp_path: Path) -> None:
    root = write_store(tmp_path / "store")
    path = sorted((root / "commitlog").iterdir())[3]
    raw = bytearray(path.read_bytes())
    raw[4:8] = b"????"
    path.write_bytes(raw)
    with pytest.raises(CorruptStoreError, match=f"{path.name} at byte 0 .*bad magic"):
        open_store(root, processes=2).read_all()


@pytest.mark.usefixtures("wait_for_readers")
def test_a_process_that_cannot_start_is_an_error(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PROGRAM", "raise SystemExit(7)")
    with pytest.raises(PipelineError, match="a reader process ended with exit code 7"):
        open_store(store, processes=2).read_all()


@pytest.mark.usefixtures("wait_for_readers")
def test_a_process_that_dies_while_it_reads_is_an_error() -> None:
    before = children()
    tasks = [
        *(Numbered(number) for number in range(5)),
        Dying(5),
        *(Numbered(number) for number in range(6, 20)),
    ]
    with pytest.raises(PipelineError, match="a reader process ended"):
        list(read_tasks(tasks, [], None, 2))
    assert children() == before


def test_small_tables_are_read_by_this_process_alone() -> None:
    assert processes_for(1 << 20, None) == 1
    assert processes_for(1 << 40, None) >= 1
    assert processes_for(1 << 20, 3) == 3
    assert list(read_tasks([], [], None, 4)) == []
