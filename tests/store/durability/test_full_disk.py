"""A full disk refuses messages; it neither ends the process nor leaves a message half stored.

The disk is a counter around the system call that reserves blocks; the last test fills a real disk, a small tmpfs, in a
process of its own, because a mistake there is a SIGBUS.
"""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pocketmq.store import MessageStore, PutStatus, StoreError, VirtualClock
from pocketmq.store.admission import RETRY_MS
from pocketmq.store.files import disk as disk_module

from store_batches import append_batch, bodies, leave_as_killed, new_message, put

OpenStore = Callable[..., MessageStore]
Put = Callable[..., Any]


class FakeDisk:
    """Reserves its blocks until none are left."""

    def __init__(self) -> None:
        self.free_bytes = 1 << 40
        self.error = errno.ENOSPC
        self.refusals = 0
        self.full_for = ""
        """Part of the path of the files that get nothing, whatever is free."""

    def reserve(self, descriptor: int, start: int, length: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if length > self.free_bytes or (self.full_for and self.full_for in path):
            self.refusals += 1
            raise OSError(self.error, os.strerror(self.error))
        self.free_bytes -= length


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> FakeDisk:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("finds out which file a descriptor is through /proc")
    disk = FakeDisk()
    monkeypatch.setattr(disk_module, "reserve_blocks", disk.reserve)
    return disk


LARGE: dict[str, Any] = {"mapped_file_size_commit_log": 64 << 20, "mapped_file_size_consume_queue": 200_000}


def fill(store: MessageStore, *, body: bytes = b"x" * 100_000) -> int:
    """Append messages until one is refused because of the full disk; returns those stored."""
    stored = 0
    while (result := put(store, body=body)).status is PutStatus.PUT_OK:
        stored += 1
        assert stored < 10_000
    assert result.status is PutStatus.SERVICE_NOT_AVAILABLE
    return stored


def test_no_part_of_a_refused_message_is_stored_and_the_store_accepts_more_once_the_disk_has_room(
    disk: FakeDisk, open_store: OpenStore, clock: VirtualClock
) -> None:
    store = open_store(**LARGE)
    put(store)
    disk.free_bytes = 0
    stored = fill(store)
    end = store.log_end
    assert stored > 0
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert (store.log_end, len(bodies(store))) == (end, stored + 1)
    disk.free_bytes = 1 << 30
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE, "it does not look every time"
    assert not store.admission.accepting
    clock.advance(RETRY_MS)
    result = put(store, body=b"y" * 100_000)
    assert (result.status, result.queue_offset) == (PutStatus.PUT_OK, stored + 1)
    assert store.admission.accepting


def test_full_disk_is_checked_once_a_second_however_many_messages_arrive(
    disk: FakeDisk, open_store: OpenStore, clock: VirtualClock
) -> None:
    disk.free_bytes = 0
    store = open_store(**LARGE)
    at_start = disk.refusals
    for _ in range(1000):
        assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert disk.refusals == at_start + 1
    clock.advance(RETRY_MS)
    put(store)
    assert disk.refusals == at_start + 2


def test_no_log_file_is_opened_that_has_no_room(
    disk: FakeDisk, open_store: OpenStore, clock: VirtualClock
) -> None:
    store = open_store()
    while store.log_end < 3800:
        put(store, body=b"a" * 100)
    disk.full_for = "commitlog"
    count = store.max_offset("orders", 0)
    assert put(store, body=b"b" * 1000).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert len(list((store.config.root / "commitlog").iterdir())) == 1
    disk.full_for = ""
    clock.advance(RETRY_MS)
    assert put(store, body=b"b" * 1000).status is PutStatus.PUT_OK
    assert bodies(store) == [b"a" * 100] * count + [b"b" * 1000]


@pytest.mark.parametrize("what", ["consumequeue", "index"])
def test_message_without_room_in_queue_or_index_appears_once_the_disk_has_room(
    disk: FakeDisk, open_store: OpenStore, clock: VirtualClock, what: str
) -> None:
    arrived: list[int] = []
    store = open_store(
        on_arrivals=lambda topic, queue, arrivals: arrived.extend(each[0] for each in arrivals)
    )
    disk.full_for = what
    assert put(store, body=b"first", KEYS="k").status is PutStatus.PUT_OK, "it is in the log"
    assert put(store, body=b"second", KEYS="k").status is PutStatus.SERVICE_NOT_AVAILABLE
    assert arrived == []
    store.dispatch_flushed()
    assert arrived == []
    disk.full_for = ""
    store.dispatch_flushed()  # what the flusher requests after each of its passes
    assert arrived == [0]
    clock.advance(RETRY_MS)
    assert put(store, body=b"third", KEYS="k").status is PutStatus.PUT_OK
    assert arrived == [0, 1]
    assert bodies(store) == [b"first", b"third"]
    assert len(store.query("orders", "k", 10, 0, 1 << 60).views) == 2


@pytest.mark.parametrize("what", ["consumequeue", "index"])
def test_messages_of_one_append_without_room_in_queue_or_index_appear_once_the_disk_has_room(
    disk: FakeDisk, open_store: OpenStore, what: str
) -> None:
    arrived: list[int] = []
    store = open_store(
        on_arrivals=lambda topic, queue, arrivals: arrived.extend(each[0] for each in arrivals),
        mapped_file_size_commit_log=1 << 16,
    )
    put(store, body=b"first")  # a queue has room for ten messages
    for _ in range(98):
        put(store, queue_id=1, KEYS="other")  # and the index for 99 keys
    arrived.clear()
    disk.full_for = what
    messages = [store.pack_message(new_message(body=b"%d" % number, KEYS="k")) for number in range(12)]
    placed = store.append_all(messages)
    assert (placed.refusal, len(placed.sizes)) == (None, 12), "they are in the log"
    assert store.log_end == placed.end
    assert store.append_all(messages[:1]).refusal is PutStatus.SERVICE_NOT_AVAILABLE
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert arrived == []
    disk.full_for = ""
    store.dispatch_flushed()
    assert arrived == list(range(1, 13))
    assert bodies(store) == [b"first", *(b"%d" % number for number in range(12))]
    assert len(store.query("orders", "k", 99, 0, 1 << 60).views) == 12


def test_sync_flush_store_dispatches_once_the_disk_has_room_again(
    disk: FakeDisk, open_store: OpenStore, clock: VirtualClock
) -> None:
    store = open_store(flush_disk_type="SYNC_FLUSH")
    put(store, body=b"first")
    disk.full_for = "consumequeue"
    store.flush_pass()
    store.dispatch_flushed()
    assert bodies(store) == []
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE
    disk.full_for = ""
    clock.advance(RETRY_MS)
    assert put(store, body=b"second").status is PutStatus.PUT_OK
    store.flush_pass()
    store.dispatch_flushed()
    assert bodies(store) == [b"first", b"second"]


def test_batch_is_stored_whole_or_not_at_all(
    disk: FakeDisk, open_store: OpenStore, clock: VirtualClock
) -> None:
    store = open_store(**LARGE)
    put(store)
    batch = [new_message(body=b"x" * 1_000_000) for _ in range(5)]
    disk.full_for = "commitlog"
    assert append_batch(store, batch).refusal is PutStatus.SERVICE_NOT_AVAILABLE
    assert store.max_offset("orders", 0) == 1
    disk.full_for = "consumequeue"
    clock.advance(RETRY_MS)
    batch = [new_message(queue_id=1, body=b"%d" % number) for number in range(5)]
    assert append_batch(store, batch).refusal is None
    disk.full_for = ""
    store.dispatch_flushed()
    assert bodies(store, queue_id=1) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_restart_finds_the_messages_stored_before_the_disk_was_full(
    disk: FakeDisk, open_store: OpenStore
) -> None:
    store = open_store(**LARGE)
    put(store)
    disk.free_bytes = 0
    stored = fill(store)
    leave_as_killed(store)
    disk.free_bytes = 1 << 30
    store = open_store(**LARGE)
    assert len(bodies(store)) == stored + 1
    assert put(store).queue_offset == stored + 1


def test_a_queue_that_recovery_cannot_write_is_named_in_one_line(
    disk: FakeDisk, open_store: OpenStore
) -> None:
    store = open_store()
    disk.full_for = "consumequeue"
    put(store)
    leave_as_killed(store)
    with pytest.raises(
        StoreError, match=r"cannot make room for \d+ bytes in .*consumequeue.*: No space left"
    ):
        open_store()


def test_disk_that_cannot_reserve_blocks_is_written_without(disk: FakeDisk, open_store: OpenStore) -> None:
    disk.error, disk.free_bytes = errno.EOPNOTSUPP, 0
    store = open_store(**LARGE)
    for _ in range(10):
        assert put(store, KEYS="k").status is PutStatus.PUT_OK
    assert len(bodies(store)) == 10
    assert disk.refusals == 3, "once for each file: log, queue, index"


FILL = """
import sys
from pocketmq.store import MessageStore, NewMessage, StoreConfig, VirtualClock, PutStatus
from pocketmq.protocol.message.properties import encode_properties
clock = VirtualClock()
config = StoreConfig(
    store_path_root_dir=sys.argv[1], mapped_file_size_commit_log=64 << 20, max_hash_slot_num=1000, max_index_num=4000
)
store = MessageStore(config, clock)
store.open()
stored = 0
properties = {"UNIQ_KEY": "u", "KEYS": "a b c"}
for number in range(14_000):
    message = NewMessage(f"t{number % 50}", 0, bytes(1000), encode_properties(properties))
    stored += store.append(message).status is PutStatus.PUT_OK
    clock.advance(100)
visible = sum(store.max_offset(f"t{number}", 0) for number in range(50))
store.close()
print(stored, visible)
"""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can mount a small disk"
)
def test_a_small_real_disk_is_filled_completely_without_ending_the_process(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        run = subprocess.run([sys.executable, "-c", FILL, folder / "store"], capture_output=True, text=True)
    finally:
        subprocess.run(["umount", folder], check=True)
    assert run.returncode == 0, run.stderr
    stored, visible = map(int, run.stdout.split())
    assert stored > 5000
    assert visible >= stored - 1, "one message may have found room in the log but none in its queue"
