"""Old log files are deleted by the official rules: whole files, oldest first, by age, in the set hour or on request."""

import contextlib
import os
import weakref
from pathlib import Path

import pytest
from pocketmq.protocol.message.record import decode_records
from pocketmq.store import GetStatus, NewMessage, PutStatus
from pocketmq.store.clock import VirtualClock
from pocketmq.store.config import StoreConfig
from pocketmq.store.message_store import MessageStore
from pocketmq.store.retention import HOUR_MS, Retention, SystemDisk

from time_zones import in_zone

FILE_BYTES = 4096


@pytest.fixture
def config(tmp_path: Path) -> StoreConfig:
    return StoreConfig(
        store_path_root_dir=str(tmp_path),
        mapped_file_size_commit_log=FILE_BYTES,
        mapped_file_size_consume_queue=2000,
        max_hash_slot_num=64,
        max_index_num=200,
        delete_when="25",  # an hour that no day has
    )


@pytest.fixture
def store(config: StoreConfig, clock: VirtualClock):
    store = MessageStore(config, clock, flush_in_background=False)
    store.open()
    for _ in range(30):
        store.append(NewMessage("orders", 0, b"x" * 900, b""))
    yield store
    store.close()


def age(store: MessageStore, clock: VirtualClock, hours: float, count: int | None = None) -> None:
    """Make the oldest `count` files (all) as old as that."""
    written = (clock.now_ms() - hours * HOUR_MS) / 1000
    for file in store.log.files[:count]:
        os.utime(file.path, (written, written))


def test_nothing_is_deleted_outside_the_hour(config, store, clock):
    age(store, clock, 1000)
    assert Retention(config, store, clock, FakeDisks()).run() == 0
    assert store.log_start == 0


def test_expired_files_are_deleted_on_request_and_min_offsets_follow(config, store, clock):
    age(store, clock, 72, count=2)
    age_of_rest_hours = 71.9
    for file in store.log.files[2:]:
        written = (clock.now_ms() - age_of_rest_hours * HOUR_MS) / 1000
        os.utime(file.path, (written, written))
    retention = Retention(config, store, clock, FakeDisks())
    retention.request_manual()
    assert retention.run() == 2
    assert store.log_start == 2 * FILE_BYTES
    # Four records of 990 bytes fit a file of 4096.
    assert store.min_offset("orders", 0) == 8
    assert store.max_offset("orders", 0) == 30


def test_the_newest_file_is_kept_however_old(config, store, clock):
    age(store, clock, 10_000)
    retention = Retention(config, store, clock, FakeDisks())
    retention.request_manual()
    while retention.run():
        pass
    assert len(store.log.files) == 1
    assert store.max_offset("orders", 0) == 30


def test_a_round_deletes_at_most_its_batch(config, store, clock):
    config.delete_file_batch_max = 3
    age(store, clock, 100)
    retention = Retention(config, store, clock, FakeDisks())
    retention.request_manual()
    assert retention.run() == 3


def test_a_young_file_protects_those_after_it(config, store, clock):
    age(store, clock, 100)
    now = clock.now_ms() / 1000
    os.utime(store.log.files[0].path, (now, now))
    retention = Retention(config, store, clock, FakeDisks())
    retention.request_manual()
    assert retention.run() == 0


def test_a_request_is_valid_for_twenty_rounds(config, store, clock):
    retention = Retention(config, store, clock, FakeDisks())
    retention.request_manual()
    for _ in range(20):
        retention.run()
    age(store, clock, 100)
    assert retention.run() == 0


class FakeDisks:
    """Disks as full as a test sets them, by the last word of a path."""

    def __init__(self, ratio: float = 0.1, **ratios: float) -> None:
        self.ratio = ratio
        self.ratios = ratios

    def used_ratio(self, path: Path) -> float:
        return self.ratios.get(path.name, self.ratio)


@pytest.mark.parametrize(
    ("ratio", "expired", "young", "takes"),
    [
        (-1.0, 2, 0, True),  # an unknown disk counts as full enough to delete expired files
        (0.75, 0, 0, True),
        (0.76, 2, 0, True),
        (0.85, 2, 0, True),
        (0.86, 7, 7, True),
        (0.90, 7, 7, True),
        (0.91, 7, 7, False),
    ],
)
def test_a_fuller_disk_deletes_more_and_finally_refuses_messages(
    config, store, clock, ratio, expired, young, takes
):
    """With eight files; outside the hour of deletion."""
    age(store, clock, 1)
    retention = Retention(config, store, clock, FakeDisks(ratio))
    assert retention.run() == young
    assert store.admission.accepting == takes
    if not young:
        age(store, clock, 100, count=2)
        assert retention.run() == expired
    status = store.append(NewMessage("orders", 0, b"x", b"")).status
    assert status is (PutStatus.PUT_OK if takes else PutStatus.SERVICE_NOT_AVAILABLE)


@pytest.mark.parametrize(("emulate", "at_90", "at_86"), [(5, False, False), (4, True, True)])
def test_messages_are_accepted_again_at_the_level_of_the_line(config, store, clock, emulate, at_90, at_86):
    config.emulate = emulate
    disks = FakeDisks(0.91)
    retention = Retention(config, store, clock, disks)
    retention.run()
    assert not store.admission.accepting
    for ratio, takes in ((0.90, at_90), (0.86, at_86), (0.85, True)):
        disks.ratio = ratio
        retention.run()
        assert store.admission.accepting == takes, ratio


def test_the_queues_disk_counts_too(config, store, clock):
    (Path(config.store_path_root_dir) / "consumequeue").mkdir(exist_ok=True)
    retention = Retention(config, store, clock, FakeDisks(commitlog=0.1, consumequeue=0.95))
    assert retention.run() > 0
    assert not store.admission.accepting


def test_no_file_is_deleted_before_its_time_if_that_is_forbidden(config, store, clock):
    config.clean_file_forcibly_enable = False
    age(store, clock, 1)
    retention = Retention(config, store, clock, FakeDisks(0.99))
    assert retention.run() == 0
    assert not store.admission.accepting


def test_levels_are_settings_of_five_x_within_bounds(config, store, clock):
    config.disk_space_warning_level_ratio, config.disk_space_clean_forcibly_ratio = 99, 10
    config.disk_max_used_space_ratio = 5
    age(store, clock, 1)
    disks = FakeDisks(0.31)
    assert Retention(config, store, clock, disks).run() > 0, "the least forcible level is 30"
    disks.ratio = 0.91
    Retention(config, store, clock, disks).run()
    assert not store.admission.accepting, "the highest warning level is 90"


def test_a_full_disk_deletes_ten_files_a_round_and_views_of_them_stay_readable(config, clock, tmp_path):
    config.store_path_root_dir = str(tmp_path / "other")
    store = MessageStore(config, clock, flush_in_background=False)
    store.open()
    for number in range(60):
        store.append(NewMessage("orders", 0, (b"%d:" % number).ljust(900, b"."), b""))
    before = store.get_message("orders", 0, 0, 4)
    assert before.count == 4
    retention = Retention(config, store, clock, FakeDisks(0.88))
    assert retention.run() == 10
    assert (store.min_offset("orders", 0), store.max_offset("orders", 0)) == (40, 60)
    bodies = [bytes(record.body) for view in before.views for record in decode_records(view)]
    assert bodies[0] == b"0:".ljust(900, b".")
    assert store.get_message("orders", 0, 0, 4).status is GetStatus.OFFSET_TOO_SMALL
    assert retention.run() == 4
    assert retention.run() == 0, "the newest file stays"
    store.close()


def test_system_disk_rounds_up_to_whole_per_cent(tmp_path, monkeypatch):
    usage = SystemDisk().used_ratio(tmp_path)
    assert 0 <= usage <= 1
    assert usage * 100 == pytest.approx(round(usage * 100))
    assert SystemDisk().used_ratio(tmp_path / "nothing") == -1.0


def test_the_hours_of_delete_when_are_local_time(config, store, clock):
    from datetime import datetime

    with in_zone("Asia/Tokyo"):
        hour = datetime.fromtimestamp(clock.now_ms() / 1000).hour
        config.delete_when = f"99;{hour}"
        age(store, clock, 100)
        assert Retention(config, store, clock, FakeDisks()).run() > 0


def test_flusher_frees_the_blocks_of_a_deleted_log_file(store):
    """Giving up a file of 1 GiB takes the disk half a second, and unmapping it the processor tens of milliseconds:
    the event loop must not wait for either."""

    def open_deleted_files() -> list[str]:
        links = []
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # the listing's own
                links.append(os.readlink(f"/proc/self/fd/{name}"))
        here = str(store.config.commit_log_dir)
        return [link for link in links if link.endswith("(deleted)") and link.startswith(here)]

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("finds open files through /proc")
    first, second = (file.path for file in store.log.files[:2])
    maps = [weakref.ref(file.map) for file in store.log.files[:2]]
    store.delete_oldest_log_file()
    store.delete_oldest_log_file()
    assert not first.exists()
    assert not second.exists()
    assert len(open_deleted_files()) == 2
    assert all(memory() is not None for memory in maps)
    store.flush_pass()
    assert sum(memory() is not None for memory in maps) == 1
    assert len(open_deleted_files()) == 1, "one in a pass, so that no waiter for the disk waits for all"
    store.close()
    assert open_deleted_files() == []
