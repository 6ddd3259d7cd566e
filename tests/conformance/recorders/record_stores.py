"""Record the golden stores again: store directories of official brokers that were stopped or killed.

    PYTHONPATH=tests python -m conformance.recorders.record_stores [--line 4.9|5.5] [--end stop|kill]

Each becomes `stores/<line>-<end>.tar.xz`: the store's files, and beside them `expected.json`, what the broker itself
answered over the wire before it ended. One turn of `tests/conformance/stores/store_chain.py` makes it: plain, keyed and
tagged messages, a batch, a delayed message, a group with offsets and a retry. Needs Java, Maven and network namespaces.

Left out are files that PocketMQ neither reads nor writes, and files of many empty megabytes: the timer wheel, its log,
RocksDB's directory. Read by `tests/store/test_golden_stores.py`.
"""

import argparse
import hashlib
import io
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from conformance.stores.store_chain import Chain, Turn
from conformance.stores.store_snapshot import Snapshot
from golden import FOLDER

STORES = FOLDER.parent / "stores"
LEFT_OUT = {"timerwheel", "timerlog", "rocksdbstore", "compaction"}


def expected_of(snapshot: Snapshot) -> dict[str, Any]:
    """What the broker answered, made small: bodies are digests."""
    return {
        "queues": [
            {
                "topic": topic,
                "queueId": queue_id,
                "minOffset": queue.min_offset,
                "maxOffset": queue.max_offset,
                "messages": [
                    [
                        message.offset,
                        message.position,
                        message.properties.get("KEYS", ""),
                        message.properties.get("TAGS", ""),
                        hashlib.sha256(message.body).hexdigest()[:16],
                    ]
                    for message in snapshot.messages[topic, queue_id]
                ],
            }
            for (topic, queue_id), queue in snapshot.queues.items()
        ],
        "topics": snapshot.topics,
        "groups": snapshot.groups,
        "offsets": snapshot.offsets,
        "delays": snapshot.delays,
        "keys": snapshot.by_key,
        "uniqueKeys": snapshot.by_unique_key,
    }


def record(line: str, end: str) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        chain = Chain((Turn(f"official-{line}", end),), Path(folder), line)
        chain.run()
        closed = chain.steps[0].closed
        assert closed is not None
        store = next(path.parent for path in Path(folder).rglob("commitlog") if path.is_dir())
        path = STORES / f"{line}-{end}.tar.xz"
        path.parent.mkdir(exist_ok=True)
        with tarfile.open(path, "w:xz", preset=9) as archive:
            for entry in sorted(store.rglob("*")):
                name = entry.relative_to(store)
                if entry.is_file() and name.parts[0] not in LEFT_OUT and not name.name.endswith(".bak"):
                    archive.add(entry, f"store/{name}", recursive=False)
            _add(archive, "expected.json", json.dumps(expected_of(closed)).encode())
        return path


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the golden stores again.")
    parser.add_argument("--line", choices=["4.9", "5.5"], action="append")
    parser.add_argument("--end", choices=["stop", "kill"], action="append")
    arguments = parser.parse_args()
    for line in arguments.line or ["4.9", "5.5"]:
        for end in arguments.end or ["stop", "kill"]:
            path = record(line, end)
            print(path.name, path.stat().st_size, "bytes", flush=True)


if __name__ == "__main__":
    main()
