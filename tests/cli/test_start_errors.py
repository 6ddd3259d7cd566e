"""`pocketmq serve` when it cannot start: it prints one line, exits with 2 and changes nothing.

Stores with every kind of damage that cannot be repaired, and mistakes on the command line beyond `test_serve.py`.
Damage that can be repaired is tested in `tests/store/durability/test_recovery.py`.
"""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from processes import python
from raw_peer import SEND_MESSAGE, SUCCESS, ServedProcess, send_fields

LOG, QUEUE = "mappedFileSizeCommitLog", "mappedFileSizeConsumeQueue"
SIZES = (
    *("--set", f"{LOG}=1048576", "--set", f"{QUEUE}=2000"),
    *("--set", "maxHashSlotNum=100", "--set", "maxIndexNum=400"),
)
NEVER_SECONDS = 20

Damage = Callable[[Path], object]


def refusal(folder: Path, *words: str, program: str = "pocketmq") -> str:
    """Standard error of a server that does not start: one line."""
    free_ports = ("--port", "0", "--namesrv-port", "0")
    serve = ("-m", "pocketmq.cli", "serve", *free_ports, "--log-level", "error")
    ran = python(*serve, *words, cwd=folder, timeout=NEVER_SECONDS)
    assert (ran.returncode, ran.stdout) == (2, ""), ran
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert ran.stderr.startswith(f"{program}: ")
    return ran.stderr


def content(folder: Path) -> dict[str, bytes | None]:
    """Every file except those that record which process had the store open last, and when."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if path.name not in ("lock", "checkpoint")
    }


@pytest.fixture(scope="module")
def good_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a message, a queue, an index, all tables, and settings of the name server; cleanly closed."""
    with ServedProcess(tmp_path_factory.mktemp("good"), SIZES) as server:
        fill(server)
    return server.store


def fill(server: ServedProcess) -> None:
    with server.broker() as broker, server.name_server() as name_server:
        indexed, delayed = (
            send_fields("T", properties=text) for text in ("KEYS\x01k\x02", "DELAY\x0118\x02")
        )
        assert broker.call(SEND_MESSAGE, indexed, b"x").code == SUCCESS
        assert broker.call(SEND_MESSAGE, delayed, b"x").code == SUCCESS
        assert broker.call(200, {}, json.dumps({"groupName": "g"}).encode()).code == SUCCESS
        offset = {"topic": "T", "consumerGroup": "g", "queueId": 0, "commitOffset": 1}
        assert broker.call(15, offset).code == SUCCESS
        assert name_server.call(100, {"namespace": "n", "key": "k", "value": "v"}).code == SUCCESS


def one(store: Path, pattern: str) -> Path:
    (found,) = store.glob(pattern)
    return found


def cut(pattern: str, size: int) -> Damage:
    return lambda store: os.truncate(one(store, pattern), size)


def written(name: str, text: bytes) -> Damage:
    def damage(store: Path) -> None:
        (store / name).write_bytes(text)
        (store / f"{name}.bak").unlink(missing_ok=True)

    return damage


def made_a_folder(name: str) -> Damage:
    def damage(store: Path) -> None:
        (store / name).unlink()
        (store / name).mkdir()

    return damage


DAMAGES: dict[str, tuple[Damage, str]] = {
    "short_log_file": (
        cut("commitlog/0*", 1000),
        "00000000000000000000 is 1000 bytes long; the configured size is",
    ),
    "short_queue_file": (cut("consumequeue/T/0/0*", 100), "is 100 bytes long; the configured size is 2000"),
    "stranger_in_the_log": (written("commitlog/notes.txt", b"x"), "notes.txt does not belong here"),
    "topics_are_a_folder": (made_a_folder("config/topics.json"), "topics.json: Is a directory"),
    **{
        f"{name} {text!r}": (written(f"{name}.json", text), "is damaged and has no backup")
        for name, text in (
            ("namesrv/kvConfig", b"{"),
            ("config/topics", b"{"),
            ("config/topics", b"[]"),
            ("config/subscriptionGroup", b"\xff\xfe\x00"),
            ("config/consumerOffset", b'{"offsetTable":5}'),
            ("config/delayOffset", b'{"offsetTable":{"1":"x"}}'),
        )
    },
}


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_damaged_store_is_refused_and_not_changed(
    good_store: Path, tmp_path: Path, damage: Damage, message: str
) -> None:
    store = tmp_path / "store"
    shutil.copytree(good_store, store)
    damage(store)
    before = content(store)
    assert message in refusal(tmp_path, "--store", str(store), *SIZES)
    assert content(store) == before


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (f"{LOG}=2097152", "bytes long; the configured size is"),
        (f"{QUEUE}=4000", "bytes long; the configured size is"),
        ("brokerName=other", "belongs to broker broker-a, not other: set brokerName=broker-a"),
    ],
)
def test_store_made_with_other_settings_is_refused(
    good_store: Path, tmp_path: Path, setting: str, message: str
) -> None:
    before = content(good_store)
    assert message in refusal(tmp_path, "--store", str(good_store), *SIZES, "--set", setting)
    assert content(good_store) == before


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/pocketmq"])
def test_store_that_cannot_be_a_folder_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_bytes(b"x")
    refusal(tmp_path, "--store", place)
    assert (tmp_path / "file").read_bytes() == b"x"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own with half a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", folder], check=True)


needs_mount = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can mount a small disk"
)


@needs_mount
def test_read_only_disk_is_refused(small_disk: Path, tmp_path: Path, good_store: Path) -> None:
    shutil.copytree(good_store / "config", small_disk / "store" / "config")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    before = content(small_disk)
    assert "Read-only file system" in refusal(tmp_path, "--store", str(small_disk / "store"), *SIZES)
    assert content(small_disk) == before


@needs_mount
def test_disk_without_room_is_refused(small_disk: Path, tmp_path: Path) -> None:
    with contextlib.suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))
    assert "No space left on device" in refusal(tmp_path, "--store", str(small_disk / "store"), *SIZES)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_store_without_permission_is_refused(tmp_path: Path, mode: int) -> None:
    store = tmp_path / "store"
    store.mkdir()
    store.chmod(mode)
    assert "Permission denied" in refusal(tmp_path, "--store", str(store))
    store.chmod(0o700)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-c", "."), "cannot read .: Is a directory"),
        (
            ("--ports-file", "no/ports.json"),
            "cannot write --ports-file no/ports.json: No such file or directory",
        ),
        (("--set", "listenPort=x"), "--set: listenPort must be a whole number, got 'x'"),
        (
            ("--host", "no.such.host.invalid"),
            "--host: bindAddress must be an IP address or a host name with one",
        ),
        (("--host", "a..b"), "--host: bindAddress must be an IP address or a host name with one"),
        (("--namesrv", "here"), "--namesrv: namesrvAddr must have the form host:port;host:port, got 'here'"),
        (("--ephemeral",), "--ephemeral and --store exclude each other"),
        (("--set", "mappedFileSizeCommitLog=1"), "mappedFileSizeCommitLog must be between"),
        (("--set", "messageDelayLevel=1s soon"), "'soon' is no number followed by s, m, h or d"),
        (("--set", "storePathCommitLog=a,b"), "storePathCommitLog with several paths is not supported"),
        (("--host", "203.0.113.7"), "cannot listen on 203.0.113.7:0"),
        (("--admin-port", "0", "--set", "authenticationEnabled=true"), "--admin-port: access control is on"),
        (("--admin-port", "0", "--set", "authorizationEnabled=true"), "--open-admin-port allows that"),
        (("--admin-port", "0", "--emulate", "4.9", "--set", "aclEnable=true"), "access control is on"),
    ],
)
def test_bad_value_is_refused(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    assert message in refusal(tmp_path, "--store", "s", *words)


@pytest.mark.parametrize("words", [("--bogus",), ("--port", "70000"), ("--port", "x"), ("extra",)])
def test_wrong_option_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    refusal(tmp_path, *words, program="pocketmq serve")
    assert list(tmp_path.iterdir()) == []


def test_empty_address_is_no_address(tmp_path: Path) -> None:
    """Existing files have lines such as `brokerIP1=`: clients then get the address we listen on."""
    with ServedProcess(tmp_path, ["--set", "brokerIP1=", "--set", "brokerIP2="]) as server:
        server.assert_serves()
