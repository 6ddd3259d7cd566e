"""Many queues with few maps; positions and queue offsets beyond 32 bits; messages of 4 MiB."""

import os
from pathlib import Path

import pytest
from pocketmq.store import PutStatus
from pocketmq.store.files import mapped_file
from pocketmq.store.files.mapped_files import MappedFiles
from pocketmq.store.lookup import queue_table
from pocketmq.store.lookup.queue_unit import UNIT

from store_batches import bodies, leave_as_killed, put


@pytest.fixture
def few_maps(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(queue_table, "most_queue_maps", lambda: 8)
    return 8


def test_queues_beyond_the_limit_of_maps_are_still_written_and_read(open_store, few_maps):
    store = open_store(mapped_file_size_commit_log=1 << 20)
    for turn in range(4):
        for number in range(50):
            put(store, f"t{number}", body=b"%d" % turn)
    assert len(store._queues._maps) <= few_maps
    for leave in (lambda one: one.close(), leave_as_killed):
        assert all(bodies(store, f"t{number}") == [b"0", b"1", b"2", b"3"] for number in range(50))
        leave(store)
        store = open_store(mapped_file_size_commit_log=1 << 20)
        assert all(store.max_offset(f"t{number}", 0) == 4 for number in range(50))
        assert len(store._queues._maps) <= few_maps


def test_opening_after_a_clean_stop_maps_no_queue(open_store):
    store = open_store(mapped_file_size_commit_log=1 << 20)
    for number in range(30):
        put(store, f"t{number}")
    store.close()
    store = open_store(mapped_file_size_commit_log=1 << 20)
    assert len(store._queues._maps) == 0
    assert put(store, "t7").queue_offset == 1


def test_views_of_an_unmapped_file_stay_readable(open_store, few_maps):
    store = open_store(mapped_file_size_commit_log=1 << 20)
    put(store, "t0")
    units = store.consume_queue("t0", 0).units_from(0)
    for number in range(1, 20):
        put(store, f"t{number}")
    assert not store.consume_queue("t0", 0).files[0].is_mapped
    assert UNIT.unpack(units)[0] == 0
    assert store.queue_unit("t0", 0, 0) == UNIT.unpack(units)


def test_limit_of_maps_depends_on_the_descriptors_a_process_may_have(monkeypatch):
    resource = pytest.importorskip("resource")
    for soft, most in ((1024, 256), (100, 64), (1 << 20, 8192), (resource.RLIM_INFINITY, 8192)):
        monkeypatch.setattr(mapped_file.resource, "getrlimit", lambda _, soft=soft: (soft, soft))
        assert mapped_file.most_queue_maps() == most


def test_log_beyond_four_gigabytes_and_queue_beyond_two_thousand_million(open_store, tmp_path: Path):
    """A store that has deleted all but its newest files: sparse files replace the older ones."""
    base, number = 5 << 30, (1 << 31) + 7
    root = tmp_path / "store"
    (root / "commitlog").mkdir(parents=True)
    with (root / "commitlog" / f"{base:020d}").open("wb") as file:
        file.truncate(1 << 20)
    store = open_store(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=200_000)
    queue = store._queues.get_or_create("orders", 0)
    queue.next_offset = number
    for count in range(3):
        result = put(store, body=b"%d" % count, KEYS=f"k{count}")
        assert (result.status, result.queue_offset) == (PutStatus.PUT_OK, number + count)
        assert result.position >= base > 1 << 32
    for leave in (leave_as_killed, lambda one: one.close()):
        leave(store)
        store = open_store(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=200_000)
        assert (store.min_offset("orders", 0), store.max_offset("orders", 0)) == (number, number + 3)
        assert bodies(store) == [b"0", b"1", b"2"]
        assert len(store.query("orders", "k1", 10, 0, 1 << 62).views) == 1


def test_message_of_four_mebibytes_is_stored_and_one_byte_more_is_not(open_store):
    store = open_store(mapped_file_size_commit_log=16 << 20)
    body = os.urandom(4 << 20)
    assert put(store, body=body).status is PutStatus.PUT_OK
    assert put(store, body=body + b"x").status is PutStatus.MESSAGE_ILLEGAL
    assert bodies(store) == [body]


def test_thread_that_makes_a_file_ahead_unmaps_none(tmp_path):
    """The owner may be in the middle of a write into any."""
    maps = mapped_file.OpenMaps(2)
    files = MappedFiles(tmp_path / "log", 4096, 4096, maps)
    for number in range(2):
        files.add_file(4096 * number, 1)
        files[number].written = 4096
    files.prepare_next()
    assert [file.is_mapped for file in files] == [True, True]
    files.add_file(8192, 1)
    files[2].written = 4096
    files.add_file(12288, 1)
    assert len(maps) == 2
    assert files[3].is_mapped


def test_queue_that_is_written_to_stays_mapped(open_store, few_maps):
    store = open_store(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=4000)
    put(store, "hot")
    file = store.consume_queue("hot", 0).files[-1]
    memory = file.memory
    for number in range(100):
        put(store, f"t{number}")
        put(store, "hot")
        assert file.memory is memory
