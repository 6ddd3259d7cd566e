"""A slow disk blocks only the flusher's thread.

The disk here does not answer until the test releases it. A thread that needed it would wait forever, so the tests read
no clock.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pocketmq.store import PutStatus
from pocketmq.store.files import disk as disk_module
from pocketmq.store.files.mapped_file import MappedFile

from store_batches import bodies, leave_as_killed, put

FILE_BYTES = 1 << 16
WAIT_SECONDS = 30


class HeldDisk:
    """Blocks every flush until `release`."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._released = threading.Event()

    def force(self, descriptor: int, path: Path) -> None:
        if path.name == "abort":
            return  # the store is about to open
        self.asked.set()
        assert self._released.wait(WAIT_SECONDS)

    def release(self) -> None:
        self._released.set()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldDisk]:
    disk = HeldDisk()
    monkeypatch.setattr(disk_module, "force_file", disk.force)
    yield disk
    disk.release()


@pytest.fixture
def makers(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Which thread created each log file."""
    made: dict[str, str] = {}
    make = MappedFile.__init__

    def making(self, directory, name, *arguments, **options):
        if directory.name == "commitlog":
            made.setdefault(name, threading.current_thread().name)
        make(self, directory, name, *arguments, **options)

    monkeypatch.setattr(MappedFile, "__init__", making)
    return made


@pytest.mark.parametrize("mode", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_messages_are_stored_and_read_while_the_disk_is_busy(open_store, clock, disk, mode):
    store = open_store(
        flush_disk_type=mode,
        flush_in_background=True,
        read_uncommitted=True,
        mapped_file_size_commit_log=FILE_BYTES,
        flush_interval_commit_log=1,
        flush_commit_log_thorough_interval=1,
    )
    put(store)
    clock.advance(61_000)
    store._flusher.wake()
    assert disk.asked.wait(WAIT_SECONDS)
    for number in range(300):
        assert put(store, body=b"x" * 900 + b"%d" % number).status is PutStatus.PUT_OK
    assert len(store.log.files) > 3
    assert len(bodies(store)) == 301
    assert store.flushed_position == 0
    disk.release()
    store.force_log(store.log_end)
    assert store.flushed_position == store.log_end


def test_a_thread_that_forces_the_log_goes_on_when_the_store_closes(open_store, disk):
    store = open_store(flush_in_background=True, mapped_file_size_commit_log=FILE_BYTES)
    put(store)
    waiting = threading.Thread(target=store.force_log, args=(store.log_end,))
    waiting.start()
    assert disk.asked.wait(WAIT_SECONDS)
    disk.release()
    store.close()
    waiting.join(WAIT_SECONDS)
    assert not waiting.is_alive()
    assert store.flushed_position == store.log_end


def test_flusher_creates_the_next_log_file_once_the_last_is_half_full(open_store, makers):
    store = open_store(mapped_file_size_commit_log=FILE_BYTES)
    put(store)
    store.flush_pass()
    assert len(makers) == 1, "not needed yet"
    while store.log_end < FILE_BYTES // 2:
        put(store, body=b"x" * 900)
    flusher = threading.Thread(target=store.flush_pass, name="flusher")
    flusher.start()
    flusher.join()
    assert makers == {f"{0:020d}": "MainThread", f"{FILE_BYTES:020d}": "flusher"}
    while store.log_end < FILE_BYTES + 2000:
        put(store, body=b"x" * 900)
    assert len(makers) == 2
    assert store.log.files[1].path.name == f"{FILE_BYTES:020d}"


def test_unused_file_created_ahead_is_deleted_at_a_stop(open_store, tmp_path):
    store = open_store(mapped_file_size_commit_log=FILE_BYTES)
    while store.log_end < FILE_BYTES // 2:
        put(store, body=b"x" * 900)
    count = len(bodies(store))
    store.flush_pass()
    log = tmp_path / "store" / "commitlog"
    assert len(list(log.iterdir())) == 2
    leave_as_killed(store)
    store = open_store(mapped_file_size_commit_log=FILE_BYTES)
    assert store.recovery_report.cut_bytes == 0, "an empty file is no damage"
    assert len(bodies(store)) == count
    store.flush_pass()
    store.close()
    assert len(list(log.iterdir())) == 1


def test_owner_creates_the_file_if_the_flusher_could_not(open_store, monkeypatch):
    store = open_store(mapped_file_size_commit_log=FILE_BYTES)
    while store.log_end < FILE_BYTES // 2:
        put(store, body=b"x" * 900)
    with monkeypatch.context() as patch:
        patch.setattr(disk_module, "reserve_blocks", full)
        store.flush_pass()
    while store.log_end < FILE_BYTES + 2000:
        assert put(store, body=b"x" * 900).status is PutStatus.PUT_OK


def full(descriptor: int, start: int, length: int) -> None:
    raise OSError(28, "No space left on device")
