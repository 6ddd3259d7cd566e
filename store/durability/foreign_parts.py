"""Refuses a store with parts that cannot be read here, made by newer official brokers or by accident, before anything
is changed.

Opening such a store would show topics without their messages, or messages without their topics. Directories that are
empty (5.5.0 makes `rocksdbstore` and `compaction` at every start) are no reason to refuse.
"""

import os
from pathlib import Path
from typing import Final

from .. import layout
from ..errors import StoreDamagedError

_ROCKSDB_MARK: Final = "CURRENT"
"""The one file that every RocksDB directory has under this name."""
_PARTS: Final = (
    (layout.CONSUME_QUEUE, _ROCKSDB_MARK, "its queues are kept in RocksDB (storeType=defaultRocksDB)"),
    ("consumequeue_rocksdb", _ROCKSDB_MARK, "its queues are kept in RocksDB (storeType=defaultRocksDB)"),
    ("config/rdb", _ROCKSDB_MARK, "its tables are kept in RocksDB (configManagerVersion=v2)"),
    ("config/topics", _ROCKSDB_MARK, "its topics are kept in RocksDB (storeType=defaultRocksDB)"),
    ("config/consumerOffsets", _ROCKSDB_MARK, "its offsets are kept in RocksDB (storeType=defaultRocksDB)"),
    ("compaction/compactionLog", "", "it has compacted topics (cleanup.policy=COMPACTION)"),
    ("batchconsumequeue", "", "it has topics of batch queues (queue.type=BatchCQ)"),
)
_FOLDERS: Final = (layout.COMMIT_LOG, layout.CONSUME_QUEUE, layout.INDEX, layout.CONFIG)
_FILES: Final = (layout.CHECKPOINT, layout.ABORT, layout.LOCK)


def refuse_foreign_parts(root: Path) -> None:
    """Raises StoreDamagedError for a part that cannot be read here, and names it."""
    for path in (root, *(root / name for name in _FOLDERS)):
        if path.exists() and not path.is_dir():
            raise StoreDamagedError(f"{path} is not a directory")
    for path in (root / name for name in _FILES):
        if path.is_dir():
            raise StoreDamagedError(f"{path} is a directory: it must be a file")
    for place, mark, reason in _PARTS:
        if _holds(root / place, mark):
            raise StoreDamagedError(f"cannot open store {root}: {reason}, see {root / place}")


def _holds(folder: Path, mark: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name == mark if mark else entry.is_dir() for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
