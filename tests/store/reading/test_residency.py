"""Hot or cold by each policy, and the numbers that decide it."""

import mmap
import os

import pytest
from pocketmq.store.reading import residency
from pocketmq.store.reading.residency import total_memory_bytes

from store_batches import put


def test_a_distance_up_to_and_including_the_budget_is_hot(open_store):
    store = open_store(mapped_file_size_commit_log=65536)
    for _ in range(10):
        put(store)
    store.config.access_message_in_memory_max_ratio = 50
    distance = store.log_end - store.queue_unit("orders", 0, 4)[0]
    store.config.memory_size_bytes = distance * 2
    assert [store.is_hot("orders", 0, number) for number in range(10)] == [False] * 4 + [True] * 6
    hotness = store.hotness("orders", 0, 4)
    assert (hotness.policy, hotness.distance_bytes, hotness.memory_budget_bytes) == (
        "distance",
        distance,
        distance,
    )
    assert hotness.hot
    assert hotness.log_end_offset - hotness.position == distance


def test_ratio_of_zero_makes_every_message_cold_by_distance_only(open_store):
    for policy, hot in (("distance", False), ("always-hot", True)):
        store = open_store(residency=policy, access_message_in_memory_max_ratio=0)
        if not store.max_offset("orders", 0):
            put(store)
        assert store.is_hot("orders", 0, 0) is hot
        assert store.get_message("orders", 0, 0, 1).suggest_slave, "batch limits always go by distance"
        store.close()


def test_a_missing_entry_is_neither_hot_nor_cold(open_store):
    store = open_store()
    put(store)
    for topic, queue_id, offset in (("orders", 0, 1), ("orders", 0, -1), ("orders", 1, 0), ("nobody", 0, 0)):
        assert store.is_hot(topic, queue_id, offset) is None
        assert store.hotness(topic, queue_id, offset) is None


def evict(file) -> None:
    """Ask the system to forget a file's pages, as memory pressure would."""
    file.sync()
    descriptor = os.open(file.path, os.O_RDONLY)
    for _ in range(3):
        file.map.madvise(mmap.MADV_DONTNEED)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system cannot be asked to forget pages")
def test_resident_policy_asks_the_system(open_store):
    store = open_store(residency="resident", mapped_file_size_commit_log=1 << 20)
    put(store, body=b"x" * 10_000)
    assert store.is_hot("orders", 0, 0) is True, "it was just written, so its pages are in memory"
    evict(store.log.files[0])
    if store.is_hot("orders", 0, 0):
        pytest.skip("this file system keeps its pages in memory")
    assert store.hotness("orders", 0, 0).hot is False
    assert bytes(store.get_message("orders", 0, 0, 1).views[0])
    assert store.is_hot("orders", 0, 0) is True, "reading it has brought it back"


def test_default_ratio_is_thirty_per_cent_of_the_machine(open_store):
    store = open_store()
    put(store)
    assert store.hotness("orders", 0, 0).memory_budget_bytes == int(total_memory_bytes() * 0.3)


def test_container_limit_counts_as_memory(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(residency, "_CGROUP_LIMITS", (str(limit), str(tmp_path / "missing")))
    machine = total_memory_bytes()
    limit.write_text("max\n")
    assert total_memory_bytes() == machine
    limit.write_text("1048576\n")
    assert total_memory_bytes() == 1048576


def test_unknown_memory_counts_as_24_gib(monkeypatch):
    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(residency.os, "sysconf", unknown)
    assert total_memory_bytes() == 24 << 30


@pytest.mark.parametrize("policy", ["distance", "resident", "always-hot"])
def test_policy_names_are_the_values_of_the_setting(open_store, policy):
    store = open_store(residency=policy)
    put(store)
    assert store.hotness("orders", 0, 0).policy == policy
