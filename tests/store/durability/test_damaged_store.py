"""Damage beyond a torn end: missing files, queues with holes, files of newer brokers. The store names or repairs it.

`test_recovery.py` tests stops of every kind, `test_power_loss.py` what a disk may lose.
"""

import shutil
import struct

import pytest
from pocketmq.store import StoreDamagedError
from pocketmq.store.at_rest.check import check_store
from pocketmq.store.durability import recovery

from store_batches import bodies, leave_as_killed, put

NUMBER_AT, QUEUE_ID_AT, TOPIC_AT = 20, 12, 88 + len(b"body") + 1


def test_log_file_missing_between_others_is_named_and_nothing_changes(open_store, root):
    store = open_store()
    for _ in range(20):
        put(store, body=b"x" * 900)
    store.close()
    missing = sorted((root / "commitlog").iterdir())[2]
    content = missing.read_bytes()
    missing.unlink()
    before = {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
    with pytest.raises(StoreDamagedError, match=f"{missing.name} is missing: put it back"):
        open_store()
    assert {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()} == before
    missing.write_bytes(content)
    assert open_store().max_offset("orders", 0) == 20


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["gap", "hole"])
def test_damaged_queue_is_rebuilt_from_the_log(open_store, root, clean, damage):
    store = open_store(mapped_file_size_commit_log=1 << 20)
    for number in range(45):
        put(store, body=b"%d" % number)
    store.close() if clean else leave_as_killed(store)
    files = sorted((root / "consumequeue" / "orders" / "0").iterdir())
    if damage == "gap":
        files[2].unlink()
    else:
        data = files[3].read_bytes()
        files[3].write_bytes(data[:60] + bytes(40) + data[100:])
    store = open_store(mapped_file_size_commit_log=1 << 20)
    assert bodies(store) == [b"%d" % number for number in range(45)]
    assert put(store).queue_offset == 45


@pytest.mark.parametrize("lost", ["nothing", "queues", "trust"])
@pytest.mark.parametrize(
    ("at", "damage"),
    [
        (TOPIC_AT, b"or/ers"),
        (TOPIC_AT, b"orde\0s"),
        (TOPIC_AT - 1, b"\x01.\x00\x05"),
        (QUEUE_ID_AT, struct.pack(">i", -1)),
        (NUMBER_AT, struct.pack(">q", -1)),
        (NUMBER_AT, struct.pack(">q", (1 << 63) - 1)),
    ],
    ids=["slash", "nul", "dot", "queue", "negative", "endless"],
)
def test_record_that_no_queue_can_hold_does_not_hide_the_others(open_store, root, at, damage, lost):
    """In the official broker a topic with a slash gets nested directories, which no later start finds."""
    store = open_store()
    for number in range(3):
        put(store, body=b"%04d" % number)
    store.close()
    log = root / "commitlog" / ("0" * 20)
    data = log.read_bytes()
    log.write_bytes(data[:at] + damage + data[at + len(damage) :])
    if lost == "queues":
        shutil.rmtree(root / "consumequeue")
    elif lost == "trust":
        (root / "abort").write_text("4711")
    report = check_store(root)
    assert "no queue has that" in "".join(finding.what for finding in report.findings)
    store = open_store()
    put(store, body=b"0003")
    assert bodies(store)[-3:] == [b"0001", b"0002", b"0003"]
    assert store.max_offset("orders", 0) == 4
    store.close()
    assert open_store().max_offset("orders", 0) == 4


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("consumequeue/CURRENT", "queues are kept in RocksDB"),
        ("config/rdb/CURRENT", "tables are kept in RocksDB"),
        ("compaction/compactionLog/orders/0", "compacted topics"),
        ("batchconsumequeue/orders/0", "batch queues"),
    ],
)
def test_unreadable_files_of_newer_brokers_are_named(open_store, root, place, reason):
    (root / place).parent.mkdir(parents=True)
    (root / place).write_text("")
    before = sorted(root.rglob("*"))
    with pytest.raises(StoreDamagedError, match=reason):
        open_store()
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize(
    "name", ["commitlog", "consumequeue", "index", "config", "checkpoint", "abort", "lock"]
)
def test_file_instead_of_a_directory_and_the_reverse_are_named_and_nothing_is_created(open_store, root, name):
    root.mkdir()
    is_folder = name in ("commitlog", "consumequeue", "index", "config")
    (root / name).write_text("in the way") if is_folder else (root / name).mkdir()
    fault = "is not a directory" if is_folder else "is a directory"
    with pytest.raises(StoreDamagedError, match=rf"{root / name} {fault}"):
        open_store()
    assert [path.name for path in root.iterdir()] == [name]


def test_directories_that_official_brokers_always_create_are_accepted(open_store, root):
    for place in ("rocksdbstore/default", "compaction/compactionLog", "compaction/compactionCq", "timerlog"):
        (root / place).mkdir(parents=True)
    (root / "rocksdbstore" / "CURRENT").write_text("MANIFEST-000004")
    open_store()


def test_recovery_of_a_large_log_reports_its_progress(open_store, caplog, monkeypatch):
    store = open_store(mapped_file_size_commit_log=4 << 20)
    for _ in range(9000):
        put(store)
    leave_as_killed(store)
    monkeypatch.setattr(recovery, "_SECONDS_BETWEEN_LINES", 0.0)
    with caplog.at_level("INFO"):
        open_store(mapped_file_size_commit_log=4 << 20)
    assert "recovery has read 0 of at most 4 MiB of the log" in caplog.text
