"""`pocketmq store check` and `show`: text for people, JSON for programs, exit codes for scripts."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from pocketmq.cli.main import main
from pocketmq.protocol.message.properties import encode_properties
from pocketmq.store import MessageStore, NewMessage, StoreConfig, VirtualClock

from time_zones import in_zone


@pytest.fixture(autouse=True)
def in_new_york() -> Iterator[None]:
    with in_zone("EST5EDT"):
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = StoreConfig(
        store_path_root_dir=str(tmp_path / "store"),
        mapped_file_size_commit_log=4096,
        message_index_enable=False,
    )
    store = MessageStore(config, VirtualClock(1_700_000_000_000), flush_in_background=False)
    store.open()
    properties = {"TAGS": "paid", "KEYS": "o-1"}
    for number in range(5):
        body = b"body %d\n" % number
        store.append(NewMessage("orders", 0, body, encode_properties(properties)))
    store.close()
    return tmp_path / "store"


def run(*words: object) -> Result:
    return CliRunner().invoke(main, ["store", *map(str, words)])


def test_undamaged_store_is_reported_as_undamaged(folder: Path) -> None:
    result = run("check", folder)
    assert result.exit_code == 0
    assert "last stop   clean" in result.output
    assert "5 records, 2023-11-14 17:13:20.000-05:00 to 2023-11-14 17:13:20.000-05:00" in result.output
    assert result.output.endswith("whole\n")


def test_damage_is_a_line_with_its_consequence_and_exit_code_1(folder: Path) -> None:
    log = folder / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[90] ^= 1
    log.write_bytes(data)
    result = run("check", folder)
    assert result.exit_code == 1
    assert f"damage: {log}: no valid record at position 0, though the file holds bytes there" in result.output
    assert "a start: it would put placeholders there, or cut the log" in result.output
    report = json.loads(run("check", folder, "--json").output)
    assert report["damaged"]
    assert report["findings"][0]["place"] == str(log)


def test_folder_without_a_store_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    for command in ("check", "show"):
        result = run(command, tmp_path / "none")
        assert (result.exit_code, result.output) == (2, f"pocketmq: {tmp_path / 'none'} does not exist\n")


def test_queues_are_listed_with_their_offsets(folder: Path) -> None:
    lines = run("show", folder).output.splitlines()
    assert lines[1].split() == ["orders", "0", "0", "5", "2023-11-14", "17:13:20.000-05:00"]
    assert json.loads(run("show", folder, "--json").output)["max_offset"] == 5


def test_messages_of_a_topic_are_shown(folder: Path) -> None:
    result = run("show", folder, "--topic", "orders", "-c", 2)
    lines = result.output.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("queue 0 offset 4 position ")
    assert lines[1].endswith("TAGS=paid KEYS=o-1 body 4\\n")
    assert run("show", folder, "--topic", "none").exit_code == 2
    assert run("show", folder, "--topic", "orders", "--queue", 3).exit_code == 2
