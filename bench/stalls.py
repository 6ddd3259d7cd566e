"""What holds up the event loop: making log files, forcing them to a slow disk, reading what is not in memory.

    python -m bench.stalls [--gigabytes 2] [--folder DIR]

A task wakes every millisecond and notes how late it is, first while messages roll over 1 GiB log files and each
fdatasync takes 200 ms longer than it does, then while a store whose pages were dropped from memory is pulled from its
start. Time spent waiting for a processor is the machine's and is taken off where the system tells it (Linux).
"""

import argparse
import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from pocketmq.store import MessageStore, NewMessage, StoreConfig, WallClock, mapped_file

BODY_BYTES = 4000
SLOW_DISK_SECONDS = 0.2
APPENDS_IN_A_TURN = 50
PULLED_AT_ONCE = 32


def waited_for_processor() -> float:
    """Seconds this thread was ready to run and did not, since it began; 0 where the system does not tell."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


class Lateness:
    """Of a task that wants to run every millisecond, in milliseconds."""

    def __init__(self) -> None:
        self.longest: list[float] = []

    async def watch(self) -> None:
        while True:
            due, waited = time.perf_counter() + 0.001, waited_for_processor()
            await asyncio.sleep(0.001)
            waited = waited_for_processor() - waited
            self.longest.append(max(time.perf_counter() - due - waited, 0.0) * 1000)

    def line(self, what: str) -> str:
        ordered = sorted(self.longest)
        if not ordered:
            return f"{what}: nothing measured"
        at = [ordered[min(int(len(ordered) * share), len(ordered) - 1)] for share in (0.5, 0.99, 0.999)]
        return f"{what}: late by p50 {at[0]:.2f}, p99 {at[1]:.2f}, p99.9 {at[2]:.2f}, at most {ordered[-1]:.2f} ms"


@contextlib.asynccontextmanager
async def watched(what: str) -> AsyncIterator[None]:
    lateness = Lateness()
    task = asyncio.create_task(lateness.watch())
    yield
    task.cancel()
    print(lateness.line(what), flush=True)


def slow_sync(sync: Callable[[int], None]) -> Callable[[int], None]:
    def slowly(descriptor: int) -> None:
        sync(descriptor)
        time.sleep(SLOW_DISK_SECONDS)

    return slowly


async def write(store: MessageStore, total_bytes: int) -> float:
    """Append that much in turns of the loop; the longest append in ms."""
    body = os.urandom(BODY_BYTES)
    longest = 0.0
    while store.log_max_offset < total_bytes:
        for _ in range(APPENDS_IN_A_TURN):
            started, waited = time.perf_counter(), waited_for_processor()
            store.append(NewMessage("orders", 0, body, b"", {}))
            longest = max(longest, time.perf_counter() - started - (waited_for_processor() - waited))
        await asyncio.sleep(0.001)  # not faster than disks take it for long, or the system makes writers wait
    return longest * 1000


def drop_pages(folder: Path) -> None:
    """Out of the page cache with all that is on disk already."""
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


async def measure(folder: Path, total_bytes: int) -> None:
    config = StoreConfig(store_path_root_dir=str(folder), message_index_enable=False)
    real_sync = mapped_file.sync_descriptor
    mapped_file.sync_descriptor = slow_sync(real_sync)
    store = MessageStore(config, WallClock())
    store.open()
    async with watched(
        f"writing over {total_bytes >> 30} GiB, fdatasync {SLOW_DISK_SECONDS * 1000:.0f} ms longer"
    ):
        longest = await write(store, total_bytes)
    print(f"longest append: {longest:.2f} ms")
    mapped_file.sync_descriptor = real_sync
    store.close()
    drop_pages(folder)
    config.memory_size_bytes = 1 << 20  # all of it counts as on disk
    store = MessageStore(config, WallClock())
    store.open()
    drop_pages(folder)
    started = time.perf_counter()
    async with watched("pulling what is not in memory"):
        read = await pull(store)
    print(f"read {read >> 20} MiB at {read / (time.perf_counter() - started) / 1e6:.0f} MB/s")
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="How long the event loop is held up.")
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--folder", help="Where the store is made; a disk, not memory.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        asyncio.run(measure(Path(folder), int(arguments.gigabytes * (1 << 30))))


if __name__ == "__main__":
    main()
