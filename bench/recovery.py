"""How long does opening a store take after an unclean stop?

    python -m bench.recovery [--messages 900000] [--size 1000] [--only "machine down"]

The same log of about a GB is opened three times, each from its own copy of the directory: after a clean stop; after a
kill of the process, with complete queues and index; after a power loss before the first checkpoint, so that recovery
cannot trust queues and index and dispatches each record again. Each message has a unique key, a key and a tag: three
entries in the index. The seconds are those of the whole `open`, with the copies' pages in memory.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from pocketmq.protocol.message.properties import encode_properties
from pocketmq.store import MessageStore, NewMessage, StoreConfig, WallClock

QUEUES = 8
STOPS = ("in order", "killed", "machine down")


def fill(folder: Path, messages: int, size: int) -> None:
    """Write the store and leave it as a kill before the first checkpoint would."""
    store = MessageStore(StoreConfig(store_path_root_dir=str(folder)), WallClock(), flush_in_background=False)
    store.open()
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    for number in range(messages):
        properties = {
            "UNIQ_KEY": f"7F000001ABCD18B4AAC200{number:010X}",
            "KEYS": f"order{number}",
            "TAGS": f"tag{number % 10}",
        }
        store.append(NewMessage("orders", number % QUEUES, body, encode_properties(properties)))
    store._flusher = None  # not closed: `abort` remains, and so does an empty checkpoint
    store._lock.release()


def stopped(original: Path, folder: Path, stop: str) -> Path:
    """A copy of the store in the state after that kind of stop."""
    shutil.copytree(original, folder)
    abort = folder / "abort"
    if stop == "machine down":
        pid, _, inode = abort.read_text().split()
        abort.write_text(f"{pid} another-boot {inode}")
    else:
        pid, boot, _ = abort.read_text().split()
        abort.write_text(f"{pid} {boot} {abort.stat().st_ino}")
    if stop == "in order":
        store = MessageStore(StoreConfig(store_path_root_dir=str(folder)), WallClock())
        store.open()
        store.close()
    return folder


def seconds_to_open(folder: Path) -> tuple[float, float, int]:
    """Seconds and processor seconds of `open`, and how many records were dispatched again."""
    store = MessageStore(StoreConfig(store_path_root_dir=str(folder)), WallClock(), flush_in_background=False)
    started, used = time.perf_counter(), time.process_time()
    store.open()
    elapsed, used = time.perf_counter() - started, time.process_time() - used
    assert store.recovery_report is not None
    dispatched = store.recovery_report.dispatched_records
    store.close()
    return elapsed, used, dispatched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=900_000)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--only", choices=STOPS)
    parser.add_argument("--folder", help="Where the stores are made; a disk, not memory.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        original = Path(folder) / "original"
        fill(original, options.messages, options.size)
        for stop in STOPS if options.only is None else (options.only,):
            copy = stopped(original, Path(folder) / "copy", stop)
            elapsed, used, dispatched = seconds_to_open(copy)
            shutil.rmtree(copy)
            print(
                f"{stop}: {elapsed:.1f} s, processor {used:.1f} s, {dispatched} records dispatched",
                flush=True,
            )


if __name__ == "__main__":
    main()
