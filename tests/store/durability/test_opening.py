"""Opening a store: which directories are refused, the lock, and what is on disk before the store accepts messages."""

import os
import subprocess
import sys
import threading

import pytest
from pocketmq.store import FileSizeError, PutStatus, StoreClosedError, StoreDamagedError, StoreLockedError
from pocketmq.store.at_rest.check import check_store
from pocketmq.store.at_rest.contents import StoreContents
from pocketmq.store.durability.store_lock import StoreLock
from pocketmq.store.files import disk

from store_batches import bodies, put


@pytest.mark.parametrize(
    "settings", [{"mapped_file_size_commit_log": 8192}, {"mapped_file_size_consume_queue": 400}]
)
def test_other_file_sizes_are_refused_with_a_clear_line(open_store, settings):
    store = open_store()
    put(store)
    store.close()
    with pytest.raises(FileSizeError, match=r"is (4096|200) bytes long; the configured size is"):
        open_store(**settings)
    open_store().close()


def test_empty_last_file_is_dropped_and_a_short_one_refused(open_store, root):
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


def test_foreign_file_in_the_log_directory_is_refused_and_a_directory_ignored(open_store, root):
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


def test_a_lock_that_was_never_acquired_releases_nothing(tmp_path, monkeypatch):
    closed: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", closed.append)
        StoreLock(tmp_path).release()
    assert closed == []


def test_failed_open_leaves_the_store_unlocked(open_store, root):
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
    assert [path for path in forced if path in (root, f"{root}/abort")][-2:] == [f"{root}/abort", root]


def test_store_is_opened_once(open_store):
    store = open_store()
    put(store)
    store.close()
    with pytest.raises(StoreClosedError, match="was opened before"):
        store.open()
    assert open_store().max_offset("orders", 0) == 1


def test_look_at_an_open_store_is_refused_in_its_process_and_leaves_it_locked(open_store, root):
    """Closing any descriptor of `lock` would give up the process's record lock."""
    store = open_store()
    put(store)
    for look in (check_store, StoreContents):
        with pytest.raises(StoreLockedError, match="already open in this process"):
            look(root)
    run = subprocess.run([sys.executable, "-c", LOCK, root / "lock"], capture_output=True, text=True)
    assert run.stdout.strip() == "locked"


LOCK = """
import fcntl, os, sys
try:
    fcntl.lockf(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
    print("free")
except OSError:
    print("locked")
"""


def test_of_threads_that_open_one_directory_at_once_one_gets_it(tmp_path):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(60):
            folder = tmp_path / str(number)
            folder.mkdir()
            locks, got = [StoreLock(folder), StoreLock(folder)], []
            barrier = threading.Barrier(2)

            def acquire(lock: StoreLock, got=got, barrier=barrier) -> None:
                barrier.wait()
                try:
                    lock.acquire()
                    got.append(lock)
                except StoreLockedError:
                    pass

            threads = [threading.Thread(target=acquire, args=(lock,)) for lock in locks]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(got) == 1
            got[0].release()
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("name", [".DS_Store", ".nfs0000000001a2b3c400000001"])
def test_hidden_files_of_other_programs_are_left_alone(open_store, root, name):
    store = open_store()
    put(store)
    store.close()
    places = [root / "commitlog" / name, root / "consumequeue" / "orders" / "0" / name]
    for place in places:
        place.write_bytes(b"x")
    assert bodies(open_store()) == [b"body"]
    assert all(place.exists() for place in places)


def test_foreign_file_in_one_queue_keeps_no_broker_from_starting(open_store, root):
    store = open_store()
    put(store)
    store.close()
    (root / "consumequeue" / "orders" / "0" / "notes.txt").write_bytes(b"x")
    store = open_store()
    assert put(store).queue_offset == 1
    assert len(bodies(store)) == 2
