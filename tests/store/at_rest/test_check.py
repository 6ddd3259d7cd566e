"""`check_store` finds each kind of damage, names its place, and changes nothing; a store of ours has no damage."""

import json
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.broker.tables.offset_table import OffsetTable
from pocketmq.store import StoreError, StoreLockedError
from pocketmq.store.at_rest.check import check_store
from pocketmq.store.at_rest.contents import StoreContents
from pocketmq.store.at_rest.findings import Report
from pocketmq.store.at_rest.queue_records import QueueRecords
from pocketmq.store.timer.timer_checkpoint import TimerCheckpoint, write_timer_checkpoint
from pocketmq.store.timer.timer_log import UNIT_BYTES

from store_batches import leave_as_killed, put

LOOK = """
import sys
from pathlib import Path
from pocketmq.store.at_rest.check import check_store
check_store(Path(sys.argv[1]))
"""


@pytest.fixture
def root(open_store, clock, tmp_path: Path) -> Path:
    """A store of several files of each kind, stopped cleanly."""
    store = open_store(mapped_file_size_commit_log=2048, max_hash_slot_num=8, max_index_num=32)
    for number in range(60):
        put(store, queue_id=number % 2, body=b"%d" % number, KEYS=f"k{number}")
        clock.advance(10)
    table = OffsetTable(tmp_path / "store" / "config", clock.now_ms)
    table.commit("orders", "readers", 0, 30)
    table.persist()
    store.close()
    return tmp_path / "store"


def content(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def change(path: Path, at: int, data: bytes) -> None:
    old = path.read_bytes()
    path.write_bytes(old[:at] + data + old[at + len(data) :])


def damages(report: Report) -> list[str]:
    return [
        f"{Path(finding.place).name}: {finding.what}"
        for finding in report.findings
        if finding.severity == "damage"
    ]


def test_store_after_a_clean_stop_has_no_damage_and_is_not_changed(root):
    before = content(root)
    report = check_store(root)
    assert content(root) == before
    assert (report.damaged, report.findings, report.clean) == (False, [], True)
    assert (report.records, report.queues, report.units) == (60, 2, 60)
    assert report.log_files >= 4
    assert report.index_files >= 2
    assert report.index_entries == 60
    assert report.last_store_time_ms - report.first_store_time_ms == 590


def test_store_whose_clock_was_set_back_has_no_damage(open_store, clock):
    store = open_store()
    put(store)
    clock.advance(60_000)
    put(store)
    clock.advance(61_000)
    store.flush_pass()
    clock.set_now_ms(clock.now_ms() - 3_600_000)
    put(store)
    store.abandon()
    assert not check_store(store.config.root).damaged


def test_killed_store_has_no_damage_but_was_not_stopped_cleanly(open_store, tmp_path):
    store = open_store()
    for _ in range(10):
        put(store)
    leave_as_killed(store)
    report = check_store(tmp_path / "store")
    assert (report.damaged, report.clean) == (False, False)
    assert ["not clean" in finding.what for finding in report.findings] == [True]


QUEUE, INDEX = "consumequeue/orders", "index"
CHANGED = {
    "a body": ("commitlog", -1, 88, b"\xff", "no valid record at position"),
    "a body in an older file": ("commitlog", 0, 88, b"\xff", "yet later files hold some"),
    "the place of an entry": (
        *(f"{QUEUE}/0", 0, 20, (7).to_bytes(8, "big")),
        "unit 1 points to position 7, where its message does not begin",
    ),
    "an entry is empty": (f"{QUEUE}/1", -1, 180, bytes(20), "has no unit 29"),
    "a head of the index": (INDEX, 0, 36, (1 << 30).to_bytes(4, "big"), "its head is impossible"),
    "an entry of the index": (
        *(INDEX, 0, 40 + 8 * 4 + 20 * 3 + 4, (1 << 40).to_bytes(8, "big")),
        "entry 3 is impossible",
    ),
    "the checkpoint": (
        *("", 0, 40, (1 << 40).to_bytes(8, "big")),
        "logicsPhysicalOffset 1099511627776 is behind the log's end",
    ),
}
"""Folder, which of its files, where, by what; and what is said of it."""
WRITTEN = {
    "no JSON": ("consumerOffset", ']"offsetTable":{}}', "consumerOffset.json: is damaged"),
    "a letter as a queue": (
        *("consumerOffset", '{"offsetTable":{"orders@readers":{"a":1}}}'),
        "consumerOffset.json: is damaged",
    ),
    "a number as topics": ("topics", '{"topicConfigTable":7}', "topics.json: is damaged"),
    "an offset behind the end": (
        *("consumerOffset", '{"offsetTable":{"orders@readers":{"0":31}}}'),
        "group readers has offset 31 in orders-0, which ends at 30",
    ),
}
"""Table, its text; and what is said of it."""


def assert_found(root: Path, what: str) -> None:
    before = content(root)
    found = damages(check_store(root))
    assert content(root) == before
    assert any(what in line for line in found), found


@pytest.mark.parametrize(("folder", "which", "at", "data", "what"), CHANGED.values(), ids=CHANGED)
def test_a_change_is_found_and_named(root, folder, which, at, data, what, monkeypatch):
    if folder == INDEX:
        monkeypatch.setattr("pocketmq.store.at_rest.check_index.first_unit_at", lambda _: 40 + 4 * 8)
    change(sorted((root / folder).iterdir())[which] if folder else root / "checkpoint", at, data)
    assert_found(root, what)


@pytest.mark.parametrize(("table", "text", "what"), WRITTEN.values(), ids=WRITTEN)
def test_a_table_that_says_what_cannot_be_is_named(root, table, text, what):
    (root / "config" / f"{table}.json").write_text(text)
    assert_found(root, what)


@pytest.mark.parametrize(
    "name", ["timermetrics", "transactionMetrics", "consumerOrderInfo.json", "users.json"]
)
def test_every_table_that_a_start_reads_is_read(root, name):
    (root / "config" / name).write_text('{"timingCount":{"orders":{"count":')
    assert_found(root, f"{name}: is damaged")


@pytest.mark.parametrize(
    ("log_bytes", "found"),
    [
        (208, []),
        (104, []),
        (100, ["timerlog: ends at 100, timercheck says 104"]),
        (None, ["timerlog: ends at 0, timercheck says 104"]),
    ],
)
def test_a_timer_log_that_lacks_what_was_forced_is_named(root, log_bytes, found):
    mark = TimerCheckpoint(last_timer_log_flush_position=2 * UNIT_BYTES)
    write_timer_checkpoint(root / "config" / "timercheck", mark)
    if log_bytes is not None:
        (root / "timerlog").mkdir()
        (root / "timerlog" / f"{0:020}").write_bytes(bytes(log_bytes))
    assert damages(check_store(root)) == found


@pytest.mark.parametrize("name", ["timerwheel", "config/timercheck", "config/topics.json"])
def test_a_folder_in_the_place_of_a_file_is_named(root, name):
    path = root / name
    path.unlink(missing_ok=True)
    path.mkdir()
    (found,) = [one for one in damages(check_store(root)) if one.startswith(path.name) or name in one]
    assert "folder" in found or "directory" in found


def test_what_is_missing_is_named(root):
    shutil.rmtree(root / QUEUE / "1")
    assert_found(root, "1: is missing; the log holds 30 messages of it")
    log = sorted((root / "commitlog").iterdir())
    log[1].unlink()
    assert_found(root, f"{log[1].name}: is missing")
    log[-1].write_bytes(log[-1].read_bytes()[:-1])
    assert_found(root, "is 2047 bytes long, its neighbours 2048")


def test_open_store_is_refused(open_store, tmp_path):
    """Record locks belong to a process: another one must hold it."""
    open_store()
    run = subprocess.run([sys.executable, "-c", LOOK, tmp_path / "store"], capture_output=True, text=True)
    assert StoreLockedError.__name__ in run.stderr
    assert "in use by another process" in run.stderr


@pytest.mark.parametrize(
    ("place", "what"),
    [("nothing", "does not exist"), ("file", "is not a directory"), ("folder", "is no store")],
)
def test_directory_without_a_store_is_refused(tmp_path, place, what):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match=what):
        check_store(tmp_path / place)


def test_contents_are_queues_and_their_newest_messages(root, open_store):
    contents = StoreContents(root)
    queues = contents.queues()
    assert [(queue.topic, queue.queue_id, queue.min_offset, queue.max_offset) for queue in queues] == [
        ("orders", 0, 0, 30),
        ("orders", 1, 0, 30),
    ]
    messages = contents.newest(queues[1], 3)
    assert [(message.queue_offset, message.body) for message in messages] == [
        (27, b"55"),
        (28, b"57"),
        (29, b"59"),
    ]
    assert messages[-1].properties["KEYS"] == "k59"
    assert queues[1].newest_store_time_ms == messages[-1].store_time_ms
    assert contents.queues("other") == []


def test_contents_begin_at_the_start_of_the_log(open_store, tmp_path):
    store = open_store()
    for number in range(40):
        put(store, body=b"x" * 500 + b"%d" % number)
    store.delete_oldest_log_file()
    minimum = store.min_offset("orders", 0)
    store.close()
    queue = StoreContents(tmp_path / "store").queues()[0]
    assert (queue.min_offset, queue.max_offset) == (minimum, 40)
    assert not check_store(tmp_path / "store").damaged


def test_a_log_in_another_folder_is_read_from_there(tmp_path, open_store):
    """storePathCommitLog: earlier, the check reported every queue unit of such a store as damaged."""
    elsewhere = tmp_path / "elsewhere"
    store = open_store(store_path_commit_log=str(elsewhere))
    for _ in range(30):
        put(store)
    store.close()
    report = check_store(tmp_path / "store", commit_log=elsewhere)
    assert (report.records, report.damaged) == (30, False)
    (queue,) = StoreContents(tmp_path / "store", commit_log=elsewhere).queues()
    assert (queue.max_offset, queue.newest_store_time_ms > 0) == (30, True)


def test_the_check_ends_a_queue_where_recovery_ends_it(tmp_path, open_store):
    """A torn page: units of zeros in the middle of a file, whole units after them."""
    root = tmp_path / "store"
    store = open_store()
    for _ in range(8):
        put(store)
    store.close()
    path = root / "consumequeue" / "orders" / "0" / f"{0:020d}"
    content = bytearray(path.read_bytes())
    content[2 * 20 : 3 * 20] = bytes(20)
    path.write_bytes(content)
    report = check_store(root)
    assert (report.units, report.damaged) == (2, True)
    assert StoreContents(root).queues()[0].max_offset == 2


def topics_with(root: Path, *names: str) -> None:
    topics = {name: {"topicName": name} for name in names}
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": topics}))


def test_messages_of_a_deleted_topic_are_no_damage(open_store, tmp_path):
    store = open_store()
    for number in range(3):
        put(store, "gone", queue_id=number % 2)
        put(store, "again")
        put(store, "lost")
    put(store, "again", queue_id=1)
    for topic in ("gone", "again"):
        store.delete_topic_queues(topic)
    put(store, "again", body=b"new")
    store.close()
    root = tmp_path / "store"
    topics_with(root, "again", "lost")
    report = check_store(root)
    assert damages(report) == []
    said = "".join(finding.what for finding in report.findings)
    assert "2 messages of this deleted topic" in said
    for count in (3, 1):
        assert f"{count} messages in the log are from before its topic was deleted and created again" in said
    shutil.rmtree(root / "consumequeue" / "lost")
    assert damages(check_store(root)) == ["0: is missing; the log holds 3 messages of it"]


def test_a_queue_that_ended_at_the_second_of_two_deletions_is_no_damage(open_store, tmp_path):
    store = open_store()
    put(store, "again")
    for _ in range(2):
        put(store, "again", queue_id=1)
        store.delete_topic_queues("again")
        put(store, "again")
    store.close()
    root = tmp_path / "store"
    topics_with(root, "again")
    report = check_store(root)
    assert damages(report) == []
    assert "1 messages in the log are from before" in "".join(finding.what for finding in report.findings)


def test_system_topic_that_no_table_lists_is_not_remarked(open_store, tmp_path):
    store = open_store()
    for topic in ("RMQ_SYS_TRANS_OP_HALF_TOPIC", "orders"):
        put(store, topic)
    store.close()
    root = tmp_path / "store"
    topics_with(root, "payments")
    [finding] = check_store(root).findings
    assert finding.what.startswith("does not know topic orders")


def test_index_file_that_was_cut_short_is_found_and_made_again(open_store, root):
    whole = sorted((root / "index").iterdir())[0].stat().st_size
    for which in (0, -1):
        file = sorted((root / "index").iterdir())[which]
        file.write_bytes(file.read_bytes()[:300])
        assert damages(check_store(root)) == [f"{file.name}: is 300 bytes long, its neighbours {whole}"]
        store = open_store(mapped_file_size_commit_log=2048, max_hash_slot_num=8, max_index_num=32)
        assert [len(store.query("orders", f"k{number}", 9, 0, 1 << 62).views) for number in range(60)] == [
            1
        ] * 60
        store.close()
        assert damages(check_store(root)) == []


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1 << 40), st.integers(1, 99)), max_size=30))
def test_records_of_a_queue_are_found_as_in_a_dictionary(added):
    records, expected = QueueRecords(), {}
    for number, position, size in added:
        if number == 0:
            expected = {}
        records.add(number, position, size)
        expected[number] = position, size
    for number in range(8):
        index = records.index(number)
        assert (records.place_of(index) if index >= 0 else None) == expected.get(number)
    assert records.end == max(expected, default=-1) + 1


def test_records_of_a_queue_take_twenty_bytes_each():
    records = QueueRecords()
    tracemalloc.start()
    for number in range(20_000):
        records.add(number, number * 300, 300)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 20_000 * 30
