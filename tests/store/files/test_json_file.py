"""Configuration files survive a kill at any moment and any damage that a backup can repair."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pocketmq.protocol.text import fastjson
from pocketmq.store.errors import StoreDamagedError
from pocketmq.store.files import disk
from pocketmq.store.files.json_file import JsonFile

OLD, NEW, TORN = b'{"v":"old"}', b'{"v":"new"}', b'{"v":"ne'


class Killed(BaseException):
    """The process was killed."""


@pytest.fixture
def file(tmp_path: Path) -> JsonFile:
    return JsonFile(tmp_path / "config" / "topics.json")


def load(file: JsonFile) -> Any:
    return file.load(fastjson.loads)


def put(file: JsonFile, content: bytes | None, backup: bytes | None) -> None:
    file.path.parent.mkdir(exist_ok=True)
    for path, text in ((file.path, content), (file.backup_path, backup)):
        if text is not None:
            path.write_bytes(text)


def test_what_is_saved_is_loaded(file: JsonFile):
    assert load(file) is None
    file.save(OLD)
    file.save(NEW)
    assert load(file) == {"v": "new"}
    assert file.backup_path.read_bytes() == OLD
    assert sorted(path.name for path in file.path.parent.iterdir()) == ["topics.json", "topics.json.bak"]


def kill_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is killed before the `step`-th rename or fsync."""
    calls = 0

    def guarded(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == step:
                raise Killed
            return real(*arguments)

        return call

    monkeypatch.setattr(os, "replace", guarded(os.replace))
    monkeypatch.setattr(disk, "sync_descriptor", guarded(disk.sync_descriptor))
    monkeypatch.setattr(os, "fsync", guarded(os.fsync))


@pytest.mark.parametrize("step", [1, 2, 3, 4])
@pytest.mark.parametrize("saves", [1, 2])
def test_a_kill_while_saving_leaves_the_old_or_the_new_content(
    file: JsonFile, step: int, saves: int, monkeypatch: pytest.MonkeyPatch
):
    for _ in range(saves):
        file.save(OLD)
    kill_at(step, monkeypatch)
    with pytest.raises(Killed):
        file.save(NEW)
    monkeypatch.undo()
    reopened = JsonFile(file.path)
    assert load(reopened) in ({"v": "old"}, {"v": "new"})
    reopened.save(NEW)
    assert load(reopened) == {"v": "new"}


def test_content_is_on_disk_before_the_file_is_renamed(file: JsonFile, monkeypatch: pytest.MonkeyPatch):
    order: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(disk, "sync_descriptor", lambda fd: (order.append("fsync"), fsync(fd)))
    monkeypatch.setattr(os, "fsync", lambda fd: (order.append("fsync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b: (order.append(Path(b).name), replace(a, b)))
    file.path.parent.mkdir(exist_ok=True)
    file.save(OLD)
    file.save(NEW)
    assert order == ["fsync", "topics.json", "fsync", "fsync", "topics.json.bak", "topics.json", "fsync"]


def no_links(*_: Any) -> None:
    raise OSError("no links here")


@pytest.mark.parametrize("link", [os.link, no_links])
def test_a_save_makes_the_former_file_the_backup(
    file: JsonFile, link: Callable[..., None], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "link", link)
    for version in (b"1", b"2", b"3"):
        file.save(version)
    assert (file.path.read_bytes(), file.backup_path.read_bytes()) == (b"3", b"2")


def test_a_save_keeps_the_permissions_that_the_file_has(file: JsonFile):
    file.save(b"{}")
    file.path.chmod(0o640)
    file.save(b"[]")
    assert file.path.stat().st_mode & 0o777 == 0o640


def test_a_file_with_a_mode_has_it_from_its_first_byte_on(file: JsonFile, monkeypatch: pytest.MonkeyPatch):
    file.save(b"{}")
    file.path.chmod(0o644)
    modes = []
    force = disk.force_file
    monkeypatch.setattr(
        disk, "force_file", lambda fd, path: (modes.append(os.fstat(fd).st_mode & 0o777), force(fd, path))
    )
    JsonFile(file.path, mode=0o600).save(b"[]")
    assert modes == [0o600]
    assert file.path.stat().st_mode & 0o777 == 0o600


def test_readers_find_the_file_at_every_moment_of_a_save(file: JsonFile, monkeypatch: pytest.MonkeyPatch):
    file.save(OLD)
    seen: list[bytes] = []
    replace = os.replace

    def watched(source: Path, target: Path) -> None:
        replace(source, target)
        seen.append(file.path.read_bytes())

    monkeypatch.setattr(os, "replace", watched)
    file.save(NEW)
    assert seen == [OLD, NEW]


@pytest.mark.parametrize("content", [None, b"", TORN])
def test_the_backup_is_loaded_if_the_file_is_unreadable(file: JsonFile, content: bytes | None):
    put(file, content, OLD)
    assert load(file) == {"v": "old"}


@pytest.mark.parametrize("content", [b"", TORN])
def test_an_unreadable_file_never_becomes_the_backup(file: JsonFile, content: bytes):
    put(file, content, OLD)
    load(file)
    file.save(NEW)
    assert file.backup_path.read_bytes() == OLD


def test_without_file_and_backup_the_table_is_new(file: JsonFile):
    put(file, b"", None)
    assert load(file) is None
    put(file, b"", b"")
    assert load(file) is None


@pytest.mark.parametrize("content", [None, b"", TORN])
def test_a_damaged_backup_that_is_needed_is_refused_in_one_line(file: JsonFile, content: bytes | None):
    put(file, content, TORN)
    with pytest.raises(StoreDamagedError, match=r"topics\.json .* its backup is damaged: JSON: ") as caught:
        load(file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("backup", [None, b""])
def test_a_torn_file_without_backup_is_refused(file: JsonFile, backup: bytes | None):
    put(file, TORN, backup)
    with pytest.raises(StoreDamagedError, match="damaged and has no backup"):
        load(file)
    assert file.path.read_bytes() == TORN


def test_a_readable_file_needs_no_backup(file: JsonFile):
    put(file, NEW, TORN)
    assert load(file) == {"v": "new"}
