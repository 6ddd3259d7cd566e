"""Measures the tables without a JVM: `python -m bench.tables [--messages N] [--store DIR]`, on an idle machine.

The time from nothing to the first rows, in a process of its own; messages a second with all columns and with headers
only, by one and by two threads; and what DuckDB takes to group and to find. The control of the first rows is a
process that imports pyarrow and ends; that of the scans is the time to touch every byte of the log. The scans read
the same store `COPIES` times, as stores of several brokers, so that a scan is long.
"""

import argparse
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pocketmq.protocol.message.record import Record, encode_record

HEADERS: Final = ("queueId", "queueOffset", "physicalOffset", "storeSize")
QUEUES: Final = 4
COPIES: Final = 4
FIRST_ROWS: Final = """
import sys
from pocketmq.pipeline.tables import open_store
assert open_store(sys.argv[1]).read_next_batch().num_rows
"""
CONTROL: Final = "import pyarrow"


def write_store(root: Path, count: int) -> None:
    """A store of one log file: bodies of 128 to 383 bytes, keys, a tag, a property, an id."""
    log = bytearray()
    units = [bytearray() for _ in range(QUEUES)]
    for number in range(count):
        properties = f"color\x01red\x02KEYS\x01k{number}\x02TAGS\x01{'AB'[number % 2]}\x02WAIT\x01true\x02"
        record = Record(
            topic="SELF_TEST_TOPIC",
            queue_id=number % QUEUES,
            queue_offset=number // QUEUES,
            position=len(log),
            body=b"x" * (128 + number % 256),
            properties=f"{properties}UNIQ_KEY\x01{number:032X}\x02".encode(),
            store_timestamp=1_700_000_000_000 + number // 10,
        )
        raw = encode_record(record)
        units[number % QUEUES] += struct.pack(">qiq", len(log), len(raw), 0)
        log += raw
    (root / "commitlog").mkdir(parents=True)
    (root / "commitlog" / f"{0:020}").write_bytes(log)
    for queue, entries in enumerate(units):
        folder = root / "consumequeue" / "SELF_TEST_TOPIC" / str(queue)
        folder.mkdir(parents=True)
        (folder / f"{0:020}").write_bytes(entries)


def shortest(work: Callable[[], Any], times: int = 5) -> float:
    """The shortest of several runs, in seconds."""
    durations = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        durations.append(time.perf_counter() - began)
    return min(durations)


def started(program: str, *arguments: str) -> float:
    """Seconds of a Python program, from its start to its end."""
    return shortest(lambda: subprocess.run([sys.executable, "-c", program, *arguments], check=True))


def read(store: Path, **options: Any) -> int:
    """Read every row, keep none."""
    from pocketmq.pipeline.tables import open_store

    stores = {f"broker-{number}": str(store) for number in range(COPIES)}
    return sum(batch.num_rows for batch in open_store(stores, **options))


def touched(store: Path) -> int:
    """The bytes of the log, each added up: what the memory gives."""
    import numpy as np

    return sum(
        int(np.fromfile(path, dtype=np.uint8).sum(dtype=np.int64)) for path in (store / "commitlog").iterdir()
    )


def queries(store: Path) -> dict[str, Callable[[], Any]]:
    """Questions for DuckDB."""
    import duckdb
    from pocketmq.pipeline.tables import store_dataset

    connection = duckdb.connect()
    connection.register("messages", store_dataset(store))

    def ask(text: str) -> Callable[[], Any]:
        return lambda: connection.execute(text).fetchall()

    return {
        "DuckDB, group by topic": ask("select topic, count(*), sum(storeSize) from messages group by 1"),
        "DuckDB, group by id": ask("select msgId from messages group by 1 having count(*) > 1"),
        "DuckDB, find a key": ask(
            "select topic, queueId, queueOffset, body from messages where keys = 'k4711'"
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument(
        "--store", type=Path, help="A store that an earlier run left; made if it does not exist."
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pocketmq-bench-") as folder:
        store, count = arguments.store or Path(folder) / "store", arguments.messages
        if not store.exists():
            write_store(store, count)
        print(f"first rows                      {started(FIRST_ROWS, str(store)):8.2f} s")
        print(f"  control: import pyarrow       {started(CONTROL):8.2f} s")
        for name, columns in (("all columns", "all"), ("lean columns", None), ("headers", HEADERS)):
            for threads in (1, 2):
                took = shortest(lambda c=columns, t=threads: read(store, columns=c, threads=t))  # type: ignore[misc]
                rate = COPIES * count / took / 1e6
                print(f"{name}, {threads} thread(s)".ljust(31), f"{rate:8.2f} M messages/s")
        print(
            f"  control: every byte touched   {count / shortest(lambda: touched(store)) / 1e6:8.2f} M messages/s"
        )
        for name, query in queries(store).items():
            print(name.ljust(31), f"{count / shortest(query) / 1e6:8.2f} M messages/s")


if __name__ == "__main__":
    main()
