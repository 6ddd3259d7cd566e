"""What `pocketmq admin` writes below /tmp cannot be led elsewhere, nor read, by another user of the machine."""

import os
import stat
from pathlib import Path

import pytest
from pocketmq.cli.admin import messages
from pocketmq.cli.admin.messages import write_file


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(messages, "SHARED", tmp_path / "rocketmq")
    return tmp_path / "rocketmq"


def test_a_file_and_its_folders_are_for_its_owner_only(shared: Path) -> None:
    path = shared / "msgbodys" / "7F"
    for body in (b"longer", b"body"):
        write_file(path, body)
        assert path.read_bytes() == body
    modes = [stat.S_IMODE(one.stat().st_mode) for one in (path, path.parent, shared)]
    assert modes == [0o600, 0o700, 0o700]


def test_a_link_is_not_followed(shared: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"whole")
    shared.mkdir()
    (shared / "7F").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        write_file(shared / "7F", b"body")
    assert victim.read_bytes() == b"whole"


def test_a_folder_that_is_a_link_is_refused(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    shared.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="is a link, or belongs to another user"):
        write_file(shared / "msgbodys" / "7F", b"body")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(shared: Path) -> None:
    shared.mkdir()
    os.chown(shared, 65534, 65534)
    with pytest.raises(OSError, match="is a link, or belongs to another user"):
        write_file(shared / "7F", b"body")


def test_other_folders_are_the_users_own_choice(shared: Path, tmp_path: Path) -> None:
    write_file(tmp_path / "mine" / "topic.json", b"{}")
    assert (tmp_path / "mine" / "topic.json").read_bytes() == b"{}"
