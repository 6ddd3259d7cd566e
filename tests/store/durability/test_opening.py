"""Opening a store: which directories are refused, the lock, and what is on disk before the store accepts messages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pocketmq.store import (
    FileSizeError,
    PutStatus,
    StoreDamagedError,
    StoreLockedError,
)
from pocketmq.store.files import disk


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.mark.parametrize(
    "settings", [{"mapped_file_size_commit_log": 8192}, {"mapped_file_size_consume_queue": 400}]
)
def test_other_file_sizes_are_refused_with_a_clear_line(open_store, put, settings):
    store = open_store()
    put(store)
    store.close()
    with pytest.raises(FileSizeError, match=r"is (4096|200) bytes long; the configured size is"):
        open_store(**settings)
    open_store().close()


def test_empty_last_file_is_dropped_and_a_short_one_refused(open_store, put, bodies, root):
    store = open_store()
    put(store)
    store.close()
    (root / "commitlog" / f"{4096:020d}").touch()
    store = open_store()
    assert bodies(store) == [b"body"]
    store.close()
    (root / "commitlog" / f"{4096:020d}").write_bytes(b"short")
    with pytest.raises(FileSizeError):
        open_store()


def test_foreign_file_in_the_log_directory_is_refused_and_a_directory_ignored(open_store, put, root):
    open_store().close()
    (root / "commitlog" / "sub").mkdir(parents=True)
    store = open_store()
    put(store)
    store.close()
    (root / "commitlog" / "README").touch()
    with pytest.raises(StoreDamagedError, match="does not belong here"):
        open_store()


def test_second_store_on_the_directory_is_refused(open_store, root):
    store = open_store()
    with pytest.raises(StoreLockedError, match="already open"):
        open_store()
    script = (
        "import sys; from pocketmq.store import *\n"
        "try: MessageStore(StoreConfig(store_path_root_dir=sys.argv[1]), WallClock()).open()\n"
        "except StoreLockedError as error: print(error)"
    )
    output = subprocess.run(
        [sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=True
    )
    assert "in use by another process" in output.stdout
    store.close()
    open_store()


def test_failed_open_leaves_the_store_unlocked(open_store, put, root):
    store = open_store()
    put(store)
    store.close()
    with pytest.raises(FileSizeError):
        open_store(mapped_file_size_commit_log=8192)
    assert put(open_store()).status is PutStatus.PUT_OK


def test_abort_is_on_disk_before_the_store_accepts_messages(open_store, monkeypatch):
    forced: list[str] = []
    real = os.fsync

    def force(descriptor: int) -> None:
        forced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", force)
    monkeypatch.setattr(disk, "sync_descriptor", force)
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("finds out which file a descriptor is through /proc")
    store = open_store()
    root = str(store.config.root)
    assert [f"{root}/abort", root] == [path for path in forced if path in (root, f"{root}/abort")]
