"""Rows read by several threads are the same rows in the same order; errors arrive, and no thread is left."""

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pocketmq.pipeline.errors import CorruptStoreError
from pocketmq.pipeline.tables import open_store
from pocketmq.pipeline.tables.arrow.tasks import read_tasks, thread_count

from pipeline.store_files import overwrite
from pipeline.tables.stores import COUNT, write_store


class Numbered:
    """A task with its number, in some batches. `before` is waited for before its rows are read."""

    def __init__(
        self, number: int, batches: int = 1, before: threading.Event | threading.Barrier | None = None
    ) -> None:
        self.number = number
        self.count = batches
        self.before = before
        self.is_read = threading.Event()

    def batches(self, names: Any, condition: Any) -> Iterator[Any]:
        if self.before is not None:
            self.before.wait(60)
        self.is_read.set()
        for part in range(self.count):
            yield pa.RecordBatch.from_pylist([{"task": self.number, "part": part}])


def rows_of(tasks: list[Numbered], threads: int) -> list[tuple[int, int]]:
    return [
        (row["task"], row["part"])
        for batch in read_tasks(tasks, [], None, threads)
        for row in batch.to_pylist()
    ]


def readers() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name.startswith("pocketmq-table")}


def test_two_threads_read_the_same_rows_in_the_same_order(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store")
    alone, together = (open_store(store, columns="all", threads=count).read_all() for count in (1, 2))
    assert together.num_rows == COUNT
    assert together.equals(alone)
    filtered = open_store(store, threads=2, columns=["msgId"], filters=[("queueId", "=", 3)])
    assert filtered.read_all().num_rows == COUNT // 4
    assert not readers()


def test_tasks_without_rows_with_many_batches_and_of_unequal_length_keep_their_order() -> None:
    tasks = [Numbered(number, batches=number * 7 % 5) for number in range(30)]
    tasks[4].before = tasks[5].is_read  # a later task ends first
    expected = [(task.number, part) for task in tasks for part in range(task.count)]
    assert rows_of(tasks, 2) == expected
    assert rows_of([Numbered(number, batches=number * 7 % 5) for number in range(30)], 1) == expected


def test_as_many_tasks_are_read_at_once_as_there_are_threads() -> None:
    together = threading.Barrier(3)
    assert len(rows_of([Numbered(number, before=together) for number in range(9)], 3)) == 9
    assert not together.broken


def test_one_task_more_than_there_are_threads_is_read_ahead() -> None:
    tasks = [Numbered(number) for number in range(9)]
    batches = read_tasks(tasks, [], None, 2)
    next(batches)
    assert tasks[1].is_read.wait(60)
    assert tasks[2].is_read.wait(60)
    assert not any(task.is_read.is_set() for task in tasks[3:])
    assert len(list(batches)) == 8


def test_a_reader_that_is_left_unread_ends_its_threads(tmp_path: Path) -> None:
    reader = open_store(write_store(tmp_path / "store"), threads=2)
    reader.read_next_batch()
    assert readers()
    del reader
    gc.collect()
    assert not readers()


def test_an_error_of_a_thread_is_raised_as_it_is(tmp_path: Path) -> None:
    root = write_store(tmp_path / "store")
    path = sorted((root / "commitlog").iterdir())[3]
    overwrite(path, 4, b"????")
    with pytest.raises(CorruptStoreError, match=f"{path.name} at byte 0 .*bad magic"):
        open_store(root, threads=2).read_all()
    assert not readers()


def test_progress_is_the_share_of_tasks_that_were_read() -> None:
    shares: list[float] = []
    list(read_tasks([Numbered(number) for number in range(4)], [], None, 2, shares.append))
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_no_tasks_are_no_rows() -> None:
    assert list(read_tasks([], [], None, 4)) == []
    assert thread_count() >= 1
