"""Flushing to disk: a failure of the disk is an error, a call that the file system does not support is none."""

import errno
import os
from pathlib import Path

import pytest
from pocketmq.store import DiskFailedError, PutStatus
from pocketmq.store.files import disk


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
    open_store, put, refuse_directories
):
    store = open_store(flush_disk_type="SYNC_FLUSH")
    answers: list[bool] = []
    result = put(store)
    store.when_flushed(result.position + result.size, answers.append)
    refuse_directories(errno.EIO)
    with pytest.raises(DiskFailedError, match="commitlog"):
        store.flush_pass()
    assert answers == [False]
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE
