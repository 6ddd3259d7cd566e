"""What is flushed to disk and when, with a virtual clock and a disk that counts and fails on request."""

import os
from pathlib import Path

import pytest
from pocketmq.store import PutStatus, VirtualClock, WallClock
from pocketmq.store.admission import RETRY_MS
from pocketmq.store.durability import flusher
from pocketmq.store.durability.checkpoint import Checkpoint
from pocketmq.store.errors import DiskFailedError
from pocketmq.store.files import disk as disk_module
from pocketmq.store.files import mapped_file

from store_batches import bodies, put

PAGE = 4096


BIG = {"mapped_file_size_commit_log": 1 << 20, "mapped_file_size_consume_queue": 60_000}


def test_log_is_flushed_every_half_second_once_four_pages_wait(open_store, clock, disk):
    store = open_store(**BIG)
    put(store, body=bytes(3 * PAGE))
    clock.advance(500)
    store.flush_pass()
    assert store.flushed_position == 0
    put(store, body=bytes(PAGE))
    store.flush_pass()
    assert store.flushed_position == 0, "not due yet"
    clock.advance(500)
    store.flush_pass()
    assert store.flushed_position == store.log_end > 4 * PAGE


def test_a_single_byte_is_flushed_after_ten_seconds(open_store, clock, disk):
    store = open_store(**BIG)
    for _ in range(2):
        before = store.flushed_position
        put(store)
        for _ in range(19):
            clock.advance(500)
            store.flush_pass()
            assert store.flushed_position == before
        clock.advance(500)
        store.flush_pass()
        assert store.flushed_position == store.log_end


def test_without_new_messages_the_disk_is_not_called(open_store, clock, disk):
    store = open_store(**BIG)
    put(store)
    clock.advance(61_000)
    store.flush_pass()
    calls = disk.calls
    clock.advance(61_000)
    store.flush_pass()
    # The index records no flushed position and is flushed once more.
    assert disk.calls <= calls + 1


def test_checkpoint_is_written_only_after_the_data_it_covers(open_store, clock, disk, tmp_path):
    path = tmp_path / "store" / "checkpoint"
    store = open_store(**BIG)
    clock.advance(1)
    put(store, KEYS="a")
    clock.advance(1)
    last = put(store, KEYS="b")
    clock.advance(10_000)
    store.flush_pass()
    marks = Checkpoint.open(path)
    assert marks.physic_msg_timestamp == last.store_timestamp
    assert (marks.logics_msg_timestamp, marks.logics_physical_offset) == (0, 0)
    clock.advance(50_000)
    store.flush_pass()
    marks = Checkpoint.open(path)
    assert marks.logics_msg_timestamp == last.store_timestamp
    assert marks.logics_physical_offset == last.position
    assert marks.index_msg_timestamp == last.store_timestamp - 1, "its newest millisecond may still grow"
    assert path.stat().st_size == 4096


def test_failed_disk_moves_no_flushed_position_even_when_it_works_again(open_store, clock, disk, tmp_path):
    """After a failed flush the kernel counts the pages as written: a second try would confirm lost data."""
    store = open_store(**BIG)
    put(store)
    disk.broken = True
    clock.advance(61_000)
    for _ in range(2):
        with pytest.raises(DiskFailedError, match=r"cannot force .*commitlog.*: Input/output error"):
            store.flush_pass()
        disk.broken = False
        clock.advance(61_000)
    assert store.flushed_position == 0
    assert Checkpoint.open(tmp_path / "store" / "checkpoint").logics_physical_offset == 0


@pytest.mark.parametrize("mode", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_store_refuses_messages_once_the_disk_has_failed(open_store, clock, disk, root, mode):
    store = open_store(flush_disk_type=mode, **BIG)
    put(store, body=b"before")
    clock.advance(61_000)
    store.flush_pass()
    store.dispatch_flushed()
    put(store, body=b"lost?")
    disk.broken = True
    clock.advance(61_000)
    with pytest.raises(DiskFailedError):
        store.flush_pass()
    disk.broken = False
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert not store.admission.accepting
    assert "Input/output error" in store.admission.disk_failure
    clock.advance(RETRY_MS)
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE, "no room on disk may pass, this does not"
    store.admission.refuse_while(disk_is_used_up=False)
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE
    shown = [b"before"] if mode == "SYNC_FLUSH" else [b"before", b"lost?"]
    assert bodies(store) == shown, "what was not forced is not shown under SYNC_FLUSH"
    with pytest.raises(DiskFailedError):
        store.force_log(store.log_end)
    with pytest.raises(DiskFailedError):
        store.flush_pass()
    store.close()
    assert len((root / "abort").read_text().split()) == 1, (
        "recovery must not trust the page cache after a disk failure"
    )
    store = open_store(flush_disk_type=mode, **BIG)
    assert put(store).status is PutStatus.PUT_OK


@pytest.mark.parametrize("name", ["consumequeue", "index", "checkpoint"])
def test_failure_of_any_file_counts(open_store, clock, monkeypatch, name):
    def sync(descriptor: int) -> None:
        if name in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(5, "Input/output error")

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("finds out which file a descriptor is through /proc")
    monkeypatch.setattr(disk_module, "sync_descriptor", sync)
    store = open_store(**BIG)
    put(store, KEYS="k")
    clock.advance(61_000)
    with pytest.raises(DiskFailedError, match=name):
        store.flush_pass()
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE


def test_lack_of_file_descriptors_is_no_disk_failure(open_store, clock, monkeypatch):
    store = open_store(**BIG)
    put(store)
    clock.advance(61_000)
    with monkeypatch.context() as patch:
        patch.setattr(
            mapped_file.os, "open", lambda *_: (_ for _ in ()).throw(OSError(24, "Too many open files"))
        )
        with pytest.raises(OSError, match="Too many"):
            store.flush_pass()
    clock.advance(61_000)
    store.flush_pass()
    assert store.flushed_position == store.log_end
    assert put(store).status is PutStatus.PUT_OK


def test_all_that_was_appended_shares_one_flush(open_store, disk):
    store = open_store(flush_disk_type="SYNC_FLUSH", **BIG)
    for _ in range(10):
        put(store)
    assert store.flushed_position == 0
    calls_before = disk.calls
    store.flush_pass()
    assert store.flushed_position == store.log_end
    assert disk.calls == calls_before + 1


def test_sync_flush_shows_messages_only_once_they_are_on_disk(open_store, disk):
    """5.3 and later; call_soon returns the dispatch to the owner's thread."""
    arrivals: list[int] = []
    later: list = []
    store = open_store(
        flush_disk_type="SYNC_FLUSH",
        call_soon=later.append,
        on_arrivals=lambda topic, queue_id, arrived: arrivals.extend(each[0] for each in arrived),
        **BIG,
    )
    assert [put(store).queue_offset for _ in range(3)] == [0, 1, 2]
    assert store.max_offset("orders", 0) == 0
    assert store.dispatch_behind_bytes == store.log_end
    store.flush_pass()
    assert (store.max_offset("orders", 0), arrivals) == (0, [])
    for function in later:
        function()
    assert (store.max_offset("orders", 0), arrivals) == (3, [0, 1, 2])
    assert store.dispatch_behind_bytes == 0
    assert put(store).queue_offset == 3


@pytest.mark.parametrize("settings", [{"emulate": 4}, {"read_uncommitted": True}])
def test_other_lines_show_messages_at_once_under_sync_flush(open_store, disk, settings):
    store = open_store(flush_disk_type="SYNC_FLUSH", **settings, **BIG)
    put(store)
    assert store.max_offset("orders", 0) == 1


def test_close_flushes_and_dispatches(open_store, disk):
    arrivals: list[int] = []
    store = open_store(
        flush_disk_type="SYNC_FLUSH",
        on_arrivals=lambda topic, queue_id, arrived: arrivals.extend(each[0] for each in arrived),
        **BIG,
    )
    put(store)
    store.close()
    assert (store.flushed_position, arrivals) == (store.log_end, [0])
    assert open_store(**BIG).max_offset("orders", 0) == 1


def test_store_that_cannot_be_flushed_at_close_counts_as_crashed(open_store, disk, tmp_path):
    store = open_store(**BIG)
    put(store)
    disk.broken = True
    store.close()
    assert (tmp_path / "store" / "abort").exists()
    disk.broken = False
    store = open_store(**BIG)
    assert not store.recovery_report.clean
    assert store.max_offset("orders", 0) == 1


def test_checkpoint_keeps_fields_it_does_not_use(tmp_path: Path):
    path = tmp_path / "checkpoint"
    path.write_bytes(bytes(24) + (777).to_bytes(8, "big") + bytes(16) + b"tail".ljust(4048, b"\0"))
    checkpoint = Checkpoint.open(path)
    assert checkpoint.master_flushed_offset == 777
    checkpoint.physic_msg_timestamp = 5000
    checkpoint.flush()
    assert path.read_bytes()[24:32] == (777).to_bytes(8, "big")
    assert path.read_bytes()[48:52] == b"tail"
    checkpoint.logics_msg_timestamp = 4000
    assert checkpoint.min_timestamp == 1000
    checkpoint.logics_msg_timestamp = 100
    assert checkpoint.min_timestamp == 0


def test_short_checkpoint_is_extended(tmp_path: Path):
    path = tmp_path / "checkpoint"
    path.write_bytes((9).to_bytes(8, "big"))
    checkpoint = Checkpoint.open(path)
    assert (checkpoint.physic_msg_timestamp, checkpoint.logics_physical_offset) == (9, 0)
    assert path.stat().st_size == 4096


def test_virtual_clock_moves_only_when_advanced():
    clock = VirtualClock(1000)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1000, 0)
    clock.advance(5)
    clock.set_now_ms(50)
    assert (clock.now_ms(), clock.monotonic_ms()) == (50, 5)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)
    assert WallClock().now_ms() > 1_700_000_000_000


def test_flushing_many_queues_does_not_block_the_loop(open_store, clock, disk, monkeypatch):
    """The flusher's thread visits every queue with the interpreter's lock: it must release it now and then."""
    monkeypatch.setattr(flusher, "_QUEUES_IN_A_TURN", 10)
    turns: list[float] = []
    monkeypatch.setattr(flusher.time, "sleep", turns.append)
    store = open_store(**BIG)
    for number in range(35):
        put(store, f"t{number}")
    clock.advance(1000)
    store.flush_pass()
    assert turns == [flusher._TURN_SECONDS] * 3


def test_a_pass_forces_a_limited_number_of_queues_and_the_next_goes_on_behind_them(
    open_store, clock, disk, monkeypatch
):
    monkeypatch.setattr(flusher, "_QUEUES_FORCED_IN_A_PASS", 2)
    store = open_store(**BIG, flush_consume_queue_least_pages=0)
    for number in range(5):
        put(store, f"t{number}")
    forced: list[list[str]] = []
    for _ in range(4):
        clock.advance(1000)
        store.flush_pass()
        queues = list(store._queues)
        forced.append([queue.topic for queue in queues if queue.files.flushed == queue.files.end])
    assert forced == [["t0", "t1"], ["t0", "t1", "t2", "t3"], *[["t0", "t1", "t2", "t3", "t4"]] * 2]


def test_a_thorough_pass_forces_all_queues(open_store, clock, disk, monkeypatch):
    monkeypatch.setattr(flusher, "_QUEUES_FORCED_IN_A_PASS", 2)
    store = open_store(**BIG)
    for number in range(5):
        put(store, f"t{number}")
    clock.advance(60_000)
    store.flush_pass()
    assert all(queue.files.flushed == queue.files.end for queue in store._queues)


def test_messages_that_wait_for_the_disk_do_not_wait_for_the_queues(open_store, clock, monkeypatch):
    """Forcing 64 queues takes milliseconds, all queues of a topic a tenth of a second: sends must not be held up."""
    store = open_store(flush_disk_type="SYNC_FLUSH", flush_consume_queue_least_pages=0, **BIG)
    for number in range(5):
        put(store, f"t{number}")
        store.flush_pass()
        store.dispatch_flushed()
    forced: list[str] = []

    def force(descriptor: int) -> None:
        kind = Path(os.readlink(f"/proc/self/fd/{descriptor}")).parts[-4:]
        forced.append("log" if "commitlog" in kind else kind[-3])
        if forced[-1] == "t1":
            put(store, "late")

    monkeypatch.setattr(disk_module, "sync_descriptor", force)
    clock.advance(1000)
    store.flush_pass()
    assert forced[:4] == ["t0", "t1", "log", "t2"]
    assert store.flushed_position == store.log_end
