"""What a store holds after stops of every kind; log, queues and index agree."""

import os
import shutil
import struct
from pathlib import Path

import pytest
from pocketmq.protocol.message.record import decode_record
from pocketmq.store import PutStatus
from pocketmq.store.durability import recovery
from pocketmq.store.durability.checkpoint import Checkpoint
from pocketmq.store.files.mapped_file import MappedFile

from store_batches import bodies, leave_as_killed, put

ALWAYS = (0, 1 << 62)


def fill(store, count, start=0, queues=2):
    for number in range(start, start + count):
        put(store, queue_id=number % queues, body=b"%05d" % number, KEYS=f"k{number}")


def assert_whole(store, count, queues=2):
    """`count` messages of `fill`: in order, found by key, and the next message gets the next queue offset."""
    for queue_id in range(queues):
        expected = [b"%05d" % number for number in range(queue_id, count, queues)]
        assert bodies(store, queue_id=queue_id) == expected
    for number in range(count):
        views = store.query("orders", f"k{number}", 64, *ALWAYS).views
        assert {bytes(decode_record(view).body) for view in views} == {b"%05d" % number}


def mark_unclean(root: Path) -> None:
    """As after an official broker's crash or a power loss: no mark confirms that all pages were kept."""
    (root / "abort").write_text("4711")


def test_clean_stop_leaves_no_abort_and_dispatches_nothing_again(open_store, root):
    store = open_store()
    assert (root / "abort").read_text().split()[0] == str(os.getpid())
    fill(store, 100)
    store.close()
    assert not (root / "abort").exists()
    store = open_store()
    assert store.recovery_report.clean
    assert store.recovery_report.dispatched_records == 0
    assert_whole(store, 100)


def test_units_that_one_queue_lost_are_searched_for_before_the_end_of_the_log(open_store, root, monkeypatch):
    """After a clean stop only the log's end is read otherwise."""
    monkeypatch.setattr(recovery, "_CLEAN_SCAN_BYTES", 500)
    store = open_store()
    fill(store, 20)
    store.close()
    queue = root / "consumequeue" / "orders" / "0" / f"{0:020d}"
    data = queue.read_bytes()
    queue.write_bytes(data[:60] + bytes(20) + data[80:])
    assert_whole(open_store(), 20)


def test_start_after_a_kill_dispatches_only_what_queues_or_index_lack(open_store, root):
    """The page cache survives the process, so the unfinished index file is kept; it may not survive a power loss."""
    store = open_store(max_index_num=1000)
    fill(store, 100)
    leave_as_killed(store)
    names = sorted(path.name for path in (root / "index").iterdir())
    store = open_store(max_index_num=1000)
    assert (store.recovery_report.clean, store.recovery_report.dispatched_records) == (False, 0)
    assert sorted(path.name for path in (root / "index").iterdir()) == names
    assert_whole(store, 100)
    leave_as_killed(store)
    mark_unclean(root)
    store = open_store(max_index_num=1000)
    assert store.recovery_report.dispatched_records == 100
    assert_whole(store, 100)


def test_start_after_a_kill_puts_no_key_into_the_index_twice(open_store):
    """The index knows how far it goes by its newest key only: messages without keys behind it are read again."""
    store = open_store(max_index_num=1000)
    fill(store, 5, queues=1)
    for _ in range(5):
        last = put(store)
    leave_as_killed(store)
    store = open_store(max_index_num=1000)
    assert store.recovery_report.dispatched_records == 5
    assert [len(store.query("orders", f"k{number}", 64, *ALWAYS).views) for number in range(5)] == [1] * 5
    assert len(bodies(store)) == 10
    store.close()
    assert Checkpoint.open(store.config.root / "checkpoint").confirm_physical_offset == last.position


def test_copied_store_is_not_treated_like_one_whose_process_was_killed(open_store, root, tmp_path):
    store = open_store()
    fill(store, 10)
    leave_as_killed(store)
    shutil.copytree(root, tmp_path / "copy")
    assert open_store(tmp_path / "copy").recovery_report.dispatched_records == 10


@pytest.mark.parametrize("marker", [b"", b"\xff" * 50, b"1 2"], ids=["empty", "garbage", "two words"])
def test_a_marker_that_says_nothing_is_not_a_reason_to_trust_the_pages(open_store, root, marker):
    store = open_store()
    fill(store, 10)
    leave_as_killed(store)
    (root / "abort").write_bytes(marker)
    report = open_store().recovery_report
    assert (report.clean, report.intact, report.dispatched_records) == (False, False, 10)


def test_unit_of_a_killed_process_that_the_index_does_not_count_is_removed(open_store):
    """Killed between unit and header: the slot points to a unit that would point to itself if it were counted again."""
    store = open_store(emulate=4, max_hash_slot_num=1)
    fill(store, 6, queues=1)
    leave_as_killed(store)
    file = store._index.files[0]
    struct.pack_into(">qqqqii", file.file.map, 0, 1, 2, 0, store.queue_unit("orders", 0, 3)[0], 1, 5)
    store = open_store(emulate=4, max_hash_slot_num=1)
    assert store._index.files[0].count == 7
    assert_whole(store, 6, queues=1)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("missing", [["consumequeue"], ["index"], ["consumequeue", "index"], ["checkpoint"]])
def test_deleted_directories_are_rebuilt(open_store, root, clean, missing):
    """15 log files: more than the ten that 5.5.0 scans by default."""
    store = open_store(max_index_num=1000)
    count = 0
    while len(store.log.files) < 15:
        fill(store, 1, start=count)
        count += 1
    store.close()
    for name in missing:
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not clean:
        mark_unclean(root)
    store = open_store(max_index_num=1000)
    assert_whole(store, count)
    assert store.min_offset("orders", 0) == 0


def test_official_limit_of_scanned_files_can_be_set(open_store, root):
    store = open_store()
    count = 0
    while len(store.log.files) < 15:
        fill(store, 1, start=count, queues=1)
        count += 1
    store.close()
    shutil.rmtree(root / "consumequeue")
    store = open_store(commit_log_recover_max_num=10)
    assert 0 < store.min_offset("orders", 0) < store.max_offset("orders", 0) == count
    first = store.get_message("orders", 0, store.min_offset("orders", 0), 1)
    assert decode_record(first.views[0]).position == store.log.files[-10].base


def test_queues_and_index_are_emptied_if_the_log_was_deleted(open_store, root):
    store = open_store()
    fill(store, 10)
    store.close()
    shutil.rmtree(root / "commitlog")
    store = open_store()
    report = store.recovery_report
    assert (report.scanned_records, report.dispatched_records, report.cut_bytes, report.placeholders) == (
        0,
        0,
        0,
        0,
    )
    assert (store.log_end, store.max_offset("orders", 0)) == (0, 0)
    assert put(store).queue_offset == 0
    assert store.query("orders", "k1", 9, *ALWAYS).views == []


@pytest.mark.parametrize("whole_record_crc", [False, True])
def test_cut_at_each_byte_of_the_last_record_drops_only_that_record(open_store, tmp_path, whole_record_crc):
    """Without the optional CRC nothing covers the text of the properties: a cut inside it cannot be detected."""
    settings = {"enabled_append_prop_crc": whole_record_crc, "force_verify_prop_crc": whole_record_crc}
    store = open_store(**settings)
    fill(store, 5, queues=1)
    start = store.log_end
    fill(store, 1, start=5, queues=1)
    end = store.log_end - (0 if whole_record_crc else len(b"KEYS\x01k5\x02"))
    leave_as_killed(store)
    pristine = tmp_path / "store"
    for cut in range(start, end):
        directory = tmp_path / f"cut{cut}"
        shutil.copytree(pristine, directory)
        log = directory / "commitlog" / f"{0:020d}"
        log.write_bytes(log.read_bytes()[:cut].ljust(4096, b"\0"))
        store = open_store(directory, **settings)
        assert store.log_end == start
        assert bodies(store) == [b"%05d" % number for number in range(5)]
        assert store.query("orders", "k5", 9, *ALWAYS).views == []
        assert put(store, body=b"again").queue_offset == 5
        assert bodies(store)[-1] == b"again"
        store.close()


def test_the_report_counts_the_bytes_behind_the_end(open_store, root):
    store = open_store()
    fill(store, 4)
    torn = put(store, body=b"torn")
    leave_as_killed(store)
    store = open_store()
    assert store.recovery_report.cut_bytes == 0
    leave_as_killed(store)
    mark_unclean(root)
    log = root / "commitlog" / f"{0:020d}"
    log.write_bytes(log.read_bytes().replace(b"torn", b"TORN"))
    assert open_store().recovery_report.cut_bytes == 4096 - torn.position


def test_older_files_are_not_checked_for_damage(open_store, root):
    """As in the official broker: only files from the recovery start on are read."""
    store = open_store()
    fill(store, 100, queues=1)
    assert len(store.log.files) >= 3
    store.close()
    log = root / "commitlog" / f"{0:020d}"
    log.write_bytes(b"\xff" * 4096)
    assert open_store().max_offset("orders", 0) == 100


def test_bytes_after_the_cut_do_not_become_records_again(open_store, root):
    """Official brokers leave them, and read them as records again once the log has grown up to them.

    No queue points behind the damage, as after an official broker's cut.
    """
    store = open_store()
    fill(store, 20, queues=1)
    offset, _, _ = store.queue_unit("orders", 0, 10)
    store.close()
    log = root / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    data[offset + 4] ^= 0xFF
    log.write_bytes(data)
    (root / "consumequeue" / "orders" / "0" / f"{200:020d}").unlink()
    store = open_store()
    put(store, body=b"new", KEYS="k10")
    store.close()
    mark_unclean(root)
    store = open_store()
    assert bodies(store) == [b"%05d" % number for number in range(10)] + [b"new"]


def test_crash_while_rolling_to_the_next_file(open_store, root):
    """The next file exists, empty, and the filler is missing: the record that caused it was never acknowledged."""
    store = open_store()
    fill(store, 30, queues=1)
    while len(store.log.files) == 1:
        fill(store, 1, start=store.max_offset("orders", 0), queues=1)
    count = store.max_offset("orders", 0)
    last_end = store.queue_unit("orders", 0, count - 2)[0] + store.queue_unit("orders", 0, count - 2)[1]
    leave_as_killed(store)
    for name in (f"{0:020d}", f"{4096:020d}"):
        log = root / "commitlog" / name
        keep = last_end if name == f"{0:020d}" else 0
        log.write_bytes(log.read_bytes()[:keep].ljust(4096, b"\0"))
    store = open_store()
    assert_whole(store, count - 1, queues=1)
    fill(store, 5, start=count - 1, queues=1)
    assert_whole(store, count + 4, queues=1)


def test_filler_at_the_very_end_leads_to_a_new_file(open_store, root):
    store = open_store()
    fill(store, 60, queues=1)
    leave_as_killed(store)
    count = store.max_offset("orders", 0)
    kept = [n for n in range(count) if store.queue_unit("orders", 0, n)[0] < 4096]
    for path in sorted((root / "commitlog").iterdir())[1:]:
        path.unlink()
    store = open_store()
    assert store.log_end == 4096
    assert_whole(store, len(kept), queues=1)
    assert put(store).position == 4096


def test_newest_units_lost_from_a_queue_are_dispatched_again(open_store, root):
    """A power loss may keep the log and lose pages of the queues."""
    store = open_store()
    fill(store, 40, queues=2)
    leave_as_killed(store)
    queue = root / "consumequeue" / "orders" / "1"
    for path in sorted(queue.iterdir())[1:]:
        path.unlink()
    first = sorted(queue.iterdir())[0]
    first.write_bytes(first.read_bytes()[:60].ljust(200, b"\0"))
    assert_whole(open_store(), 40)


def test_checkpoint_of_an_older_broker_counts_by_its_times(open_store, clock, root):
    """4.9 leaves byte 40 at 0; then the timestamps count, with their margin of 3 s."""
    store = open_store(message_index_enable=False)
    fill(store, 40, queues=1)
    old_files = len(store.log.files)
    clock.advance(10_000)
    fill(store, 60, start=40, queues=1)
    leave_as_killed(store)
    stamp = clock.now_ms() - 5000
    (root / "checkpoint").write_bytes(struct.pack(">qqqqqq", stamp, stamp, 0, 0, 0, 0).ljust(4096, b"\0"))
    store = open_store(message_index_enable=False)
    assert store.recovery_report.scanned_from == (old_files - 1) * 4096
    assert store.max_offset("orders", 0) == 100


def test_byte_40_of_the_checkpoint_decides_where_the_scan_begins(open_store, root):
    store = open_store(message_index_enable=False)
    fill(store, 100, queues=1)
    ends = [file.base for file in store.log.files]
    leave_as_killed(store)
    (root / "checkpoint").write_bytes(struct.pack(">qqqqqq", 0, 0, 0, 0, 0, ends[2] + 5).ljust(4096, b"\0"))
    store = open_store(message_index_enable=False)
    assert store.recovery_report.scanned_from == ends[2]
    assert store.max_offset("orders", 0) == 100


def test_recreated_topic_survives_a_crash_with_its_new_messages_only(open_store):
    store = open_store()
    fill(store, 10, queues=1)
    store.delete_topic_queues("orders")
    assert put(store, body=b"new 0").queue_offset == 0
    put(store, body=b"new 1")
    leave_as_killed(store)
    assert bodies(open_store()) == [b"new 0", b"new 1"]


def test_store_whose_log_starts_after_zero_keeps_its_offsets(open_store, root):
    """As after deleting old files, or at a slave that joined late."""
    store = open_store()
    fill(store, 100, queues=1)
    while store.delete_oldest_log_file():
        pass
    minimum, maximum = store.min_offset("orders", 0), store.max_offset("orders", 0)
    assert 0 < minimum < maximum == 100
    store.close()
    for clean in (True, False):
        if not clean:
            mark_unclean(root)
        store = open_store()
        assert (store.min_offset("orders", 0), store.max_offset("orders", 0)) == (minimum, maximum)
        assert bodies(store) == [b"%05d" % number for number in range(minimum, 100)]
        store.close()
    shutil.rmtree(root / "consumequeue")
    store = open_store()
    assert store.min_offset("orders", 0) == minimum
    assert store.queue_unit("orders", 0, minimum - 1) == (0, 0x7FFFFFFF, 0), (
        "units of deleted records are pre-blank"
    )
    assert bodies(store) == [b"%05d" % number for number in range(minimum, 100)]


def test_queue_or_index_that_cannot_be_written_stops_the_store_and_a_restart_repairs_it(open_store, root):
    store = open_store()
    (root / "consumequeue").write_text("in the way")
    assert put(store, KEYS="a").status is PutStatus.PUT_OK, "the message is in the log"
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert store.dispatch_behind_bytes > 0
    store.close()
    assert (root / "abort").exists(), "not a clean stop: something is still to be dispatched"
    (root / "consumequeue").unlink()
    assert bodies(open_store()) == [b"body"]


def test_queues_of_a_killed_process_are_flushed_before_the_checkpoint_advances(
    open_store, clock, monkeypatch
):
    """The kill left them in the page cache only: after a later power loss the checkpoint must not cover them."""
    store = open_store()
    put(store, "quiet")
    leave_as_killed(store)
    store = open_store()
    forced: list[str] = []
    monkeypatch.setattr(MappedFile, "sync", lambda file, descriptor=None: forced.append(str(file.path)))
    put(store, "busy")
    clock.advance(61_000)
    store.flush_pass()
    assert any("quiet" in path for path in forced)


def test_full_index_files_of_a_killed_process_are_flushed(open_store, clock, root, monkeypatch):
    store = open_store()
    for number in range(120):
        put(store, KEYS=f"k{number}")
        clock.advance(1)
    leave_as_killed(store)
    store = open_store()
    first = sorted(path.name for path in (root / "index").iterdir())[0]
    forced: list[str] = []
    monkeypatch.setattr(MappedFile, "sync", lambda file, descriptor=None: forced.append(file.path.name))
    clock.advance(61_000)
    store.flush_pass()
    assert first in forced


def test_a_clock_set_back_confuses_no_recovery(open_store, clock):
    """A store written three days ahead, by virtual time, is opened by the wall's: its marks are of the future."""
    start_ms = clock.now_ms()
    store = open_store()
    clock.advance(3 * 86_400_000)
    fill(store, 60)
    store.flush_pass()
    leave_as_killed(store)
    clock.set_now_ms(start_ms)
    store = open_store()
    assert_whole(store, 60)
    fill(store, 60, start=60)
    leave_as_killed(store)
    store = open_store()
    assert_whole(store, 120)
    fill(store, 30, start=120)
    store.close()
    store = open_store()
    assert store.recovery_report.clean
    assert_whole(store, 150)
