"""Forcing to disk: what the disk refuses is an error, what the file system does not know is none."""

import errno
import os
from pathlib import Path

import pytest
from pocketmq.store import DiskFailedError, PutStatus
from pocketmq.store.files import disk


@pytest.fixture
def refuse_directories(monkeypatch: pytest.MonkeyPatch):
    """fsync of a directory answers with an error number; files are forced as ever."""
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
def test_file_systems_that_cannot_force_directories_are_no_failed_disk(tmp_path, refuse_directories, number):
    refuse_directories(number)
    disk.force_directory(tmp_path)


def test_a_directory_that_is_gone_needs_no_forcing(tmp_path: Path):
    disk.force_directory(tmp_path / "gone")


def test_a_disk_that_cannot_force_a_directory_has_failed(tmp_path, refuse_directories):
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
