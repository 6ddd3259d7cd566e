"""What blocks the event loop: creating files, flushing them to a slow disk, reading what is not in memory.

    python -m bench.stalls [--gigabytes 2] [--queues 2000] [--folder DIR]

First, messages fill 1 GiB log files while each fdatasync takes 200 ms longer. Then `--queues` queues get their first
message on the same slow disk. Then a store whose pages were dropped from memory is pulled from its start.

Two figures for each. A task wakes every millisecond and measures how late it is. Time spent waiting for a processor is
subtracted if the system reports it (Linux), but no system reports that a virtual machine was paused. So each turn of
the loop is measured too: a turn in which the thread never waited blocked others only for its processor time, any other
turn for its whole duration. The processor time of the turns does not depend on what else the machine does.

What a broker does with its clients, topics and offsets is measured in `broker_stalls.py`.
"""

import asyncio
import contextlib
import os
import resource
import selectors
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from pocketmq.broker.process import grow_descriptor_table, raise_file_limit
from pocketmq.store import MessageStore, NewMessage, StoreConfig, WallClock
from pocketmq.store.files import disk

from .frame import parsed

BODY_BYTES = 4000
SLOW_DISK_SECONDS = 0.2
APPENDS_IN_A_TURN = 50
PULLED_AT_ONCE = 32


def waited_for_processor() -> float:
    """Seconds this thread was ready but not running, since its start; 0 if the system does not report it."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


def times_waited() -> int:
    """How often this thread gave up its processor because it had to wait for something."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


class TurnMeter(selectors.DefaultSelector):
    """A selector that measures how long each turn of the loop blocked other ready callbacks, in milliseconds."""

    def __init__(self) -> None:
        super().__init__()
        self.held_up: list[float] = []
        self.used: list[float] = []
        """Processor time of this thread in each turn."""
        self._began: tuple[int, float, float, float] | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._began is not None:
            waits, used, elapsed, waited = self._began
            had_to_wait = times_waited() != waits
            self.used.append((time.thread_time() - used) * 1000)
            took = time.perf_counter() - elapsed - (waited_for_processor() - waited)
            self.held_up.append((took if had_to_wait else time.thread_time() - used) * 1000)
        events = super().select(timeout)
        self._began = times_waited(), time.thread_time(), time.perf_counter(), waited_for_processor()
        return events


def summary(figures: list[float]) -> str:
    """p50 to the highest, in milliseconds."""
    ordered = sorted(figures)
    if not ordered:
        return "nothing measured"
    at = [ordered[min(int(len(ordered) * share), len(ordered) - 1)] for share in (0.5, 0.99, 0.999)]
    return f"p50 {at[0]:.2f}, p99 {at[1]:.2f}, p99.9 {at[2]:.2f}, at most {ordered[-1]:.2f} ms"


class Lateness:
    """How late a task runs that is due every `period_seconds`, in milliseconds."""

    def __init__(self, period_seconds: float) -> None:
        self.longest: list[float] = []
        self._period_seconds = period_seconds

    async def watch(self) -> None:
        while True:
            due, waited = time.perf_counter() + self._period_seconds, waited_for_processor()
            await asyncio.sleep(self._period_seconds)
            waited = waited_for_processor() - waited
            self.longest.append(max(time.perf_counter() - due - waited, 0.0) * 1000)


@contextlib.asynccontextmanager
async def watched(what: str, turns: TurnMeter, period_seconds: float = 0.001) -> AsyncIterator[None]:
    lateness = Lateness(period_seconds)
    task = asyncio.create_task(lateness.watch())
    await asyncio.sleep(0)  # the opening of the store before this belongs to an earlier turn
    turns.held_up.clear()
    turns.used.clear()
    yield
    task.cancel()
    print(
        f"{what}\n  late by        {summary(lateness.longest)}\n  blocked for    {summary(turns.held_up)}\n"
        f"  processor time {summary(turns.used)}",
        flush=True,
    )


def slow_sync(sync: Callable[[int], None]) -> Callable[[int], None]:
    def slowly(descriptor: int) -> None:
        sync(descriptor)
        time.sleep(SLOW_DISK_SECONDS)

    return slowly


async def write(store: MessageStore, total_bytes: int) -> None:
    """Append that many bytes in turns of the loop."""
    body = os.urandom(BODY_BYTES)
    while store.log_end < total_bytes:
        for _ in range(APPENDS_IN_A_TURN):
            store.append(NewMessage("orders", 0, body, b""))
        await asyncio.sleep(
            0.001
        )  # not faster than a disk's sustained rate, or the system makes writers wait


async def write_to_new_queues(store: MessageStore, queues: int) -> None:
    """The first message of that many queues, each of which creates two directories, or one and a file."""
    for number in range(queues):
        store.append(NewMessage(f"topic{number // 8}", number % 8, b"first", b""))
        await asyncio.sleep(0.001)


def drop_pages(folder: Path) -> None:
    """Remove everything that is on disk already from the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


async def pull(store: MessageStore) -> int:
    """Read the queue from its start, touching each byte as a socket would."""
    offset = total = 0
    while offset < store.max_offset("orders", 0):
        result = store.get_message("orders", 0, offset, PULLED_AT_ONCE)
        total += len(b"".join(result.views))
        offset = result.next_offset
        await asyncio.sleep(0)
    return total


async def measure(folder: Path, total_bytes: int, queues: int, turns: TurnMeter) -> None:
    config = StoreConfig(store_path_root_dir=str(folder), message_index_enable=False)
    real_sync = disk.sync_descriptor
    disk.sync_descriptor = slow_sync(real_sync)
    store = MessageStore(config, WallClock())
    store.open()
    slow = f"fdatasync {SLOW_DISK_SECONDS * 1000:.0f} ms longer"
    async with watched(f"writing over {total_bytes / (1 << 30):.1f} GiB, {slow}", turns):
        await write(store, total_bytes)
    async with watched(f"the first messages of {queues} queues, {slow}", turns):
        await write_to_new_queues(store, queues)
    disk.sync_descriptor = real_sync
    store.close()
    drop_pages(folder)
    config.memory_size_bytes = 1 << 20  # all of it counts as on disk
    store = MessageStore(config, WallClock())
    store.open()
    drop_pages(folder)
    started = time.perf_counter()
    async with watched("pulling what is not in memory", turns):
        read = await pull(store)
    print(f"read {read >> 20} MiB at {read / (time.perf_counter() - started) / 1e6:.0f} MB/s")
    store.close()


def main() -> None:
    arguments = parsed(__doc__, gigabytes=2.0, queues=2000, folder=None)
    raise_file_limit()
    grow_descriptor_table()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        turns = TurnMeter()
        with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(turns)) as runner:
            total_bytes = int(arguments.gigabytes * (1 << 30))
            runner.run(measure(Path(folder), total_bytes, arguments.queues, turns))


if __name__ == "__main__":
    main()
