"""Tables of tasks, read by several threads: each task by one, their rows in the order of the tasks.

Spark reads the same tasks, each in a task of its own (`spark/sources/task_reader.py`).

The loops over records release the GIL (`core/scan.c`), and so do numpy and Arrow in their own. Rows are not copied. The
rows of one task more than there are threads are in memory at once.
"""

import contextlib
import functools
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, Protocol

import msgspec

from ...errors import OptionError

Progress = Callable[[float], object]
"""Called with the share of a table that was read, from 0 to 1."""
MAX_THREADS: Final = 16


class Task(Protocol):
    """A part of a table that is read by itself, here or in another process; picklable."""

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        """The rows that meet the condition, with some columns."""


class BatchesTask(msgspec.Struct, frozen=True):
    """Record batches with all columns of a table, as `read` gives them; what is asked for is chosen here."""

    read: Callable[[], Iterator[Any]]

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        return chosen(self.read(), names, condition)


def chosen(batches: Iterable[Any], names: Sequence[str], condition: Any) -> Iterator[Any]:
    """Some columns of the rows that meet the condition."""
    for batch in batches:
        matching = batch if condition is None else batch.filter(condition)
        if matching.num_rows:
            yield matching.select(list(names))


class TaskTable(msgspec.Struct, frozen=True):
    """A table of tasks. `tasks` plans what must be read for a condition, anew for each read; errors are raised then."""

    schema: Any
    tasks: Callable[[Any], Sequence[Task]]


def joined(tables: Sequence[TaskTable]) -> TaskTable:
    """The tasks of several tables with one schema, one after another."""
    return TaskTable(tables[0].schema, functools.partial(_tasks_of_all, tables))


def _tasks_of_all(tables: Sequence[TaskTable], condition: Any) -> list[Task]:
    return [task for table in tables for task in table.tasks(condition)]


class SharedTable:
    """A table of tasks, read by some threads."""

    def __init__(self, table: TaskTable, threads: int | None) -> None:
        if threads is not None and not (isinstance(threads, int) and threads >= 1):
            raise OptionError("threads", f"must be a whole number, 1 or more, got {threads!r}")
        self.schema = table.schema
        self.progress: Progress | None = None
        self._table = table
        self._threads = threads

    def batches(self, names: Sequence[str], condition: Any) -> Iterator[Any]:
        """The rows, in the order of the tasks. Errors of planning are raised by this call."""
        tasks = self._table.tasks(condition)
        return self._rows(tasks, names, condition)

    def _rows(self, tasks: Sequence[Task], names: Sequence[str], condition: Any) -> Iterator[Any]:
        # A generator of this object: a table with copies removes them with itself.
        yield from read_tasks(tasks, names, condition, self._threads or thread_count(), self.progress)


def thread_count() -> int:
    """One thread for each core that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_THREADS)


def read_tasks(
    tasks: Sequence[Task],
    names: Sequence[str],
    condition: Any,
    threads: int,
    progress: Progress | None = None,
) -> Iterator[Any]:
    """The record batches of the tasks, in their order. `progress` is called after each task."""
    with contextlib.closing(_of_tasks(tasks, names, condition, threads)) as of_tasks:
        for number, batches in enumerate(of_tasks, 1):
            yield from batches
            if progress is not None:
                progress(number / len(tasks))


def _of_tasks(
    tasks: Sequence[Task], names: Sequence[str], condition: Any, threads: int
) -> Generator[Iterable[Any]]:
    if threads <= 1 or len(tasks) <= 1:
        for task in tasks:
            yield task.batches(names, condition)
        return
    pool = ThreadPoolExecutor(min(threads, len(tasks)), thread_name_prefix="pocketmq-table")
    try:
        ahead: deque[Future[list[Any]]] = deque()
        for task in tasks:
            ahead.append(pool.submit(lambda task: list(task.batches(names, condition)), task))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
