"""Tasks read by several threads, each task by one, their rows in the order of the tasks.

The loops over records release the GIL (`core/scan.c`), and so do numpy and Arrow in their own. Rows are not copied. The
rows of one task more than there are threads are in memory at once.
"""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

Progress = Callable[[float], object]
"""Called with the share of a table that was read, from 0 to 1."""
MAX_THREADS: Final = 16


def thread_count() -> int:
    """One thread for each core that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_THREADS)


def read_tasks(
    tasks: Sequence[Any],
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
    tasks: Sequence[Any], names: Sequence[str], condition: Any, threads: int
) -> Generator[Iterable[Any]]:
    """The batches of each task."""
    if threads <= 1 or len(tasks) <= 1:
        for task in tasks:
            yield task.batches(names, condition)
        return
    pool = ThreadPoolExecutor(min(threads, len(tasks)), thread_name_prefix="pocketmq-table")
    try:
        ahead: deque[Future[list[Any]]] = deque()
        for task in tasks:
            ahead.append(pool.submit(_rows_of, task, names, condition))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _rows_of(task: Any, names: Sequence[str], condition: Any) -> list[Any]:
    return list(task.batches(names, condition))
