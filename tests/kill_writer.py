"""A process that writes to stores until it is killed: see `tests/store/durability/test_kill.py`.

It forks a writer for each line `DIR MODE SEED` it reads, which is a thousand times faster than starting a new process.
It prints `started PID`, later `ended PID`. Between the two it prints what the writer does:

    a QUEUE OFFSET KEY     a message was acknowledged by the rules of the flush mode
    o OFFSET               a consumer offset is about to be committed
    p OFFSET               a file with this offset, or a later one, is on disk

A message's body is its key and some more bytes. The writer continues until it is killed.
"""

import os
import random
import sys

from pocketmq.broker.tables.offset_table import OffsetTable
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.store import MessageStore, NewMessage, PutStatus, StoreConfig, WallClock

TOPIC, GROUP, QUEUES = "orders", "readers", 3
SAVE_EVERY = 25


def config_of(root: str, mode: str) -> StoreConfig:
    """Small files, so that a short life crosses many of their seams."""
    assert mode in ("SYNC_FLUSH", "ASYNC_FLUSH")
    return StoreConfig(
        store_path_root_dir=root,
        flush_disk_type="SYNC_FLUSH" if mode == "SYNC_FLUSH" else "ASYNC_FLUSH",
        mapped_file_size_commit_log=32_768,
        mapped_file_size_consume_queue=600,
        max_hash_slot_num=64,
        max_index_num=200,
        flush_interval_commit_log=5,
        flush_interval_consume_queue=7,
        flush_consume_queue_thorough_interval=20,
    )


def tell(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def write(root: str, mode: str, seed: str) -> None:
    """Never returns."""
    chance = random.Random(seed)
    clock = WallClock()
    store = MessageStore(config_of(root, mode), clock)
    store.open()
    offsets = OffsetTable(store.config.root / "config", clock.now_ms)
    offsets.load()
    for number in range(1 << 60):
        queue_id = chance.randrange(QUEUES)
        key = f"{seed}-{number}"
        properties = {"KEYS": key, "TAGS": "t"}
        body = key.encode().ljust(chance.choice((20, 200, 3000)), b".")
        result = store.append(NewMessage(TOPIC, queue_id, body, encode_properties(properties)))
        assert result.status is PutStatus.PUT_OK
        if mode == "SYNC_FLUSH" and chance.random() < 0.3:
            store.force_log(store.log_end)
            store.dispatch_flushed()
        if mode == "ASYNC_FLUSH" or result.position < store.flushed_position:
            tell(f"a {queue_id} {result.queue_offset} {key}")
        if number % 5 == 0:
            tell(f"o {number + 1}")
            offsets.commit(TOPIC, GROUP, 0, number + 1)
        if number % SAVE_EVERY == 0:
            offsets.persist()
            tell(f"p {number + 1}")


def main() -> None:
    for line in sys.stdin:
        root, mode, seed = line.split()
        pid = os.fork()
        if not pid:
            try:
                write(root, mode, seed)
            finally:
                os._exit(1)
        tell(f"started {pid}")
        os.waitpid(pid, 0)
        tell(f"ended {pid}")


if __name__ == "__main__":
    main()
