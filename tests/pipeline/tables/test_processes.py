"""Rows read by several processes are the same rows in the same order; errors arrive, and no process is left."""

import gc
import os
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="the pipeline's extra is not installed")

from pocketmq.pipeline.errors import CorruptStoreError, PipelineError
from pocketmq.pipeline.tables import open_store, processes
from pocketmq.pipeline.tables.processes import can_use_processes, processes_for, read_tasks

from pipeline.tables.stores import COUNT, write_store

pytestmark = [
    pytest.mark.skipif(not can_use_processes(), reason="needs files in memory that can be handed over"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_store(tmp_path_factory.mktemp("processes") / "store")


def children() -> set[str]:
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"PPid:\t{os.getpid()}\n" in (process / "status").read_text():
                found.add(process.name)
        except OSError:
            continue
    return found


def test_two_processes_read_the_same_rows_in_the_same_order(store: Path) -> None:
    before = children()
    alone, together = (open_store(store, processes=count).read_all() for count in (1, 2))
    assert together.num_rows == COUNT
    assert together.equals(alone)
    filtered = open_store(store, processes=2, columns=["msgId"], filters=[("queueId", "=", 3)])
    assert filtered.read_all().num_rows == COUNT // 4
    assert children() == before


def test_a_reader_that_is_left_unread_ends_its_processes(store: Path) -> None:
    before = children()
    reader = open_store(store, processes=2)
    reader.read_next_batch()
    assert len(children() - before) == 2
    del reader
    gc.collect()
    assert children() == before


def test_an_error_of_a_process_is_raised_as_it_is(tmp_path: Path) -> None:
    root = write_store(tmp_path / "store")
    path = sorted((root / "commitlog").iterdir())[3]
    raw = bytearray(path.read_bytes())
    raw[4:8] = b"????"
    path.write_bytes(raw)
    with pytest.raises(CorruptStoreError, match=f"{path.name} at byte 0 .*bad magic"):
        open_store(root, processes=2).read_all()


def test_a_process_that_dies_is_an_error(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_PROGRAM", "raise SystemExit(7)")
    with pytest.raises(PipelineError, match="a reader process ended"):
        open_store(store, processes=2).read_all()


def test_small_tables_are_read_by_this_process_alone() -> None:
    assert processes_for(1 << 20, None) == 1
    assert processes_for(1 << 40, None) >= 1
    assert processes_for(1 << 20, 3) == 3
    assert list(read_tasks([], [], None, 4)) == []
