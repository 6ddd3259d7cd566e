"""Flushing to disk: a failure of the disk is an error, a call that the file system does not support is none."""

import errno
import os
from pathlib import Path

import pytest
from pocketmq.store import DiskFailedError, PutStatus
from pocketmq.store.files import disk

from store_batches import put


@pytest.fixture
def refuse_directories(monkeypatch: pytest.MonkeyPatch):
    """fsync of a directory fails with an error number; files are flushed as usual."""
    fsync = os.fsync

    def refuse(number: int) -> None:
        def answer(descriptor: int) -> None:
            if os.path.isdir(f"/proc/self/fd/{descriptor}"):
                raise OSError(number, os.strerror(number))
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", answer)

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("finds out which file a descriptor is through /proc")
    return refuse


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_file_system_that_cannot_flush_directories_is_no_failed_disk(tmp_path, refuse_directories, number):
    refuse_directories(number)
    disk.force_directory(tmp_path)


def test_a_deleted_directory_needs_no_flush(tmp_path: Path):
    disk.force_directory(tmp_path / "gone")


def test_a_disk_that_fails_to_flush_a_directory_has_failed(tmp_path, refuse_directories):
    refuse_directories(errno.EIO)
    with pytest.raises(DiskFailedError, match=f"cannot force {tmp_path}"):
        disk.force_directory(tmp_path)


def test_messages_are_not_acknowledged_while_the_name_of_their_log_file_is_not_on_disk(
    open_store, refuse_directories
):
    store = open_store(flush_disk_type="SYNC_FLUSH")
    put(store)
    refuse_directories(errno.EIO)
    with pytest.raises(DiskFailedError, match="commitlog"):
        store.flush_pass()
    assert store.flushed_position == 0
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE


def test_new_folders_are_forced_in_the_folders_above_them(tmp_path, monkeypatch):
    forced = []
    monkeypatch.setattr(disk, "force_directory", forced.append)
    disk.make_directory(tmp_path / "a" / "b" / "c")
    assert sorted(forced) == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    forced.clear()
    disk.make_directory(tmp_path / "a" / "b" / "d")
    disk.make_directory(tmp_path / "a" / "b")
    assert forced == [tmp_path / "a" / "b"]
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileExistsError):
        disk.make_directory(tmp_path / "file")


def test_queue_is_not_on_disk_before_all_folders_that_lead_to_it_are(
    open_store, clock, monkeypatch, tmp_path
):
    store = open_store()
    put(store)
    forced, force = [], disk.force_directory

    def noted(path: Path) -> None:
        forced.append(path)
        force(path)

    monkeypatch.setattr(disk, "force_directory", noted)
    clock.advance(61_000)
    store.flush_pass()
    root = tmp_path / "store"
    topic = root / "consumequeue" / "orders"
    assert {root, root / "consumequeue", topic, topic / "0"} <= set(forced)


def test_write_that_the_system_cuts_short_is_continued(tmp_path, monkeypatch):
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(data)[:3], at))
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    disk.write_all(descriptor, b"0123456789", 2)
    os.close(descriptor)
    assert (tmp_path / "file").read_bytes() == b"\0\x000123456789"


def test_full_sync_is_used_as_far_as_the_file_system_can(tmp_path, monkeypatch):
    """The system call of macOS, whose fsync ends at the drive's cache."""
    asked, fallen_back = [], []

    def fcntl(descriptor: int, command: int) -> None:
        asked.append((descriptor, command))
        if descriptor == 8:
            raise OSError(errno.ENOTSUP, "not on this file system")
        if descriptor == 9:
            raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(disk, "_FULL_SYNC", 51)
    monkeypatch.setattr(disk.fcntl, "fcntl", fcntl)
    monkeypatch.setattr(os, "fsync", fallen_back.append)
    disk.full_sync(7)
    disk.full_sync(8)
    with pytest.raises(OSError, match="broken"):
        disk.full_sync(9)
    assert (asked, fallen_back) == ([(7, 51), (8, 51), (9, 51)], [8])
