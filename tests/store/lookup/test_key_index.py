"""The hash index: bytes, chains, collisions, files that fill up, queries by time."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pocketmq.core.key_hash import hash_starts, key_hash
from pocketmq.protocol.message.java_strings import java_hash
from pocketmq.protocol.message.record import decode_record
from pocketmq.store.lookup import index_file, key_index

from store_batches import new_message, put

ALWAYS = (0, 1 << 62)


def found(store, key, topic="orders", limit=64, window=ALWAYS, **keywords):
    result = store.query(topic, key, limit, *window, **keywords)
    return [decode_record(view).queue_offset for view in result.views]


def index_files(tmp_path):
    return sorted((tmp_path / "store" / "index").iterdir())


def test_hash_and_slot_are_those_of_the_official_vector():
    assert key_hash(hash_starts("demo-topic")[0], "key-1") == 345990917
    assert 345990917 % 5_000_000 == 990917


@given(st.text(max_size=40), st.lists(st.text(max_size=70) | st.text("01\u00e9\U0001f4e6", max_size=5)))
def test_a_hash_is_that_of_the_whole_text(topic: str, keys: list[str]):
    of_keys, of_tags = hash_starts(topic)
    for key in keys * 2:
        assert key_hash(of_keys, key) == abs(java_hash(f"{topic}#{key}")) & 0x7FFFFFFF
        assert key_hash(of_tags, key) == abs(java_hash(f"{topic}#T#{key}")) & 0x7FFFFFFF


def test_smallest_integer_hashes_to_zero():
    # "polygenelubricants" has the hash -2^31, whose absolute value does not fit Java's int.
    assert key_hash(0, "polygenelubricants") == 0


def test_file_has_the_documented_bytes(open_store, clock, tmp_path):
    store = open_store(emulate=4)
    first = put(store, KEYS="a")
    clock.advance(2500)
    second = put(store, KEYS="a")
    data = index_files(tmp_path)[0].read_bytes()
    assert len(data) == 40 + 4 * 64 + 20 * 100
    assert struct.unpack_from(">qqqqii", data) == (
        first.store_timestamp,
        second.store_timestamp,
        first.position,
        second.position,
        1,
        3,
    )
    key_hash = abs(java_hash("orders#a"))
    assert struct.unpack_from(">i", data, 40 + 4 * (key_hash % 64)) == (2,)
    assert struct.unpack_from(">iqii", data, 40 + 256 + 20) == (key_hash, first.position, 0, 0)
    assert struct.unpack_from(">iqii", data, 40 + 256 + 40) == (key_hash, second.position, 2, 1)


def test_default_file_has_the_official_size(open_store, tmp_path):
    store = open_store(max_hash_slot_num=5_000_000, max_index_num=20_000_000)
    put(store, KEYS="a")
    assert index_files(tmp_path)[0].stat().st_size == 420_000_040
    assert len(index_files(tmp_path)[0].name) == 17


def test_message_is_found_by_unique_key_each_key_and_tag(open_store):
    store = open_store()
    put(store, UNIQ_KEY="7F0000010A3C18B4AAC27B5C0E3D0001", KEYS="one  two", TAGS="red")
    put(store, KEYS="two")
    assert found(store, "7F0000010A3C18B4AAC27B5C0E3D0001") == [0]
    assert found(store, "one") == [0]
    assert found(store, "two") == [0, 1]
    assert found(store, "red") == []
    assert found(store, "red", index_type="T") == [0]
    assert found(store, "one", topic="others") == []


def test_four_x_does_not_index_tags(open_store, tmp_path):
    store = open_store(emulate=4)
    put(store, TAGS="red")
    assert found(store, "red", index_type="T") == []
    assert index_files(tmp_path) == []


def test_colliding_keys_are_returned_together(open_store):
    """ "Aa" and "BB" have one Java hash; the caller compares keys."""
    store = open_store()
    put(store, KEYS="Aa")
    put(store, KEYS="BB")
    put(store, KEYS="C")
    assert found(store, "Aa") == found(store, "BB") == [0, 1]


def test_keys_of_one_slot_do_not_hide_each_other(open_store):
    store = open_store(max_hash_slot_num=1)
    for number in range(40):
        put(store, KEYS=f"k{number}")
    assert [found(store, f"k{number}") for number in range(40)] == [[number] for number in range(40)]


def test_full_file_is_followed_by_one_that_begins_at_its_end(open_store, clock, tmp_path):
    store = open_store(max_index_num=4)
    for number in range(8):
        put(store, KEYS=f"k{number}")
        clock.advance(1000)
    files = index_files(tmp_path)
    assert [file.end_position for file in store._index.files] == [
        store.queue_unit("orders", 0, number)[0] for number in (2, 5, 7)
    ]
    assert len(files) == 3
    # First unit of the second file: its time is relative to the end of the first file, one second earlier.
    assert struct.unpack_from(">iqii", files[1].read_bytes(), 40 + 256 + 20)[2] == 1
    assert [found(store, f"k{number}") for number in range(8)] == [[number] for number in range(8)]


def test_query_is_limited_by_time_and_count_newest_first(open_store, clock):
    store = open_store()
    times = []
    for _ in range(6):
        times.append(put(store, KEYS="same").store_timestamp)
        clock.advance(10_000)
    assert found(store, "same", window=(times[2], times[4])) == [2, 3, 4]
    assert found(store, "same", window=(times[5] + 1000, times[5] + 2000)) == []
    assert found(store, "same", limit=2) == [4, 5]


def test_transaction_rollback_is_not_indexed_and_prepared_is(open_store):
    store = open_store()
    for sys_flag, key in ((0x4, "half"), (0xC, "gone"), (0x8, "done")):
        message = new_message(KEYS=key)
        message.sys_flag = sys_flag
        store.append(message)
    assert [len(store.query("orders", key, 64, *ALWAYS).views) for key in ("half", "gone", "done")] == [
        1,
        0,
        1,
    ]
    assert store.max_offset("orders", 0) == 1, "only the committed message is in the queue"
    records = [
        decode_record(view)
        for key in ("half", "done")
        for view in store.query("orders", key, 9, *ALWAYS).views
    ]
    assert [record.queue_offset for record in records] == [0, 0]


def test_index_can_be_switched_off(open_store, tmp_path):
    store = open_store(message_index_enable=False)
    put(store, KEYS="a")
    assert found(store, "a") == []
    assert index_files(tmp_path) == []


def test_file_of_another_name_is_ignored(open_store, tmp_path):
    store = open_store()
    put(store, KEYS="a")
    store.close()
    (tmp_path / "store" / "index" / "notes.txt").write_text("mine")
    assert found(open_store(), "a") == [0]
    assert (tmp_path / "store" / "index" / "notes.txt").read_text() == "mine"


def test_query_reports_the_newest_entry(open_store, clock):
    store = open_store()
    put(store, KEYS="a")
    clock.advance(50)
    last = put(store, KEYS="b")
    result = store.query("orders", "a", 1, *ALWAYS)
    assert result.index_last_update_timestamp == last.store_timestamp
    assert result.index_last_update_position == last.position


@pytest.mark.parametrize("link", [2, 99, -5])
def test_damaged_chain_ends_the_search(open_store, link):
    store = open_store(emulate=4)
    put(store, KEYS="a")
    put(store, KEYS="a")
    struct.pack_into(">i", store._index.files[0].file.map, 40 + 256 + 40 + 16, link)
    assert found(store, "a") == [1]


def test_file_made_in_the_hour_that_clocks_repeat_follows_the_one_before(
    open_store, clock, tmp_path, monkeypatch
):
    """The local time goes back; the names must rise all the same, and nobody may count milliseconds for that."""
    store = open_store(max_index_num=10)
    names = iter(["20251026025959000", "20251026020001000", "20251026020001000", "20251026030001000"])
    looked_at = []
    exists = Path.exists
    monkeypatch.setattr(key_index, "_file_name", lambda _: next(names))
    monkeypatch.setattr(Path, "exists", lambda path: looked_at.append(path) or exists(path))
    for number in range(9 * 4):
        put(store, KEYS=f"k{number}")
    found = [file.file.path.name for file in store._index.files]
    assert found == ["20251026025959000", "20251026025959001", "20251026025959002", "20251026030001000"]
    assert len(looked_at) < 20
    store.close()
    monkeypatch.undo()
    assert [file.file.path.name for file in open_store(max_index_num=10)._index.files] == found


@pytest.mark.parametrize("damage", ["many uncounted", "count", "negative", "positions"])
def test_file_with_a_damaged_head_is_filled_again(open_store, tmp_path, monkeypatch, damage):
    """A count that is too low must not have the start take back millions of units."""
    monkeypatch.setattr(index_file, "_MOST_UNCOUNTED", 5)
    store = open_store()
    for number in range(20):
        put(store, KEYS=f"k{number}")
    store.close()
    (path,) = index_files(tmp_path)
    data = bytearray(path.read_bytes())
    fields = list(struct.unpack_from(">qqqqii", data))
    if damage == "positions":
        fields[2] = fields[3] + 1
    else:
        fields[5] = {"many uncounted": 2, "count": 1 << 30, "negative": -1}[damage]
    struct.pack_into(">qqqqii", data, 0, *fields)
    path.write_bytes(data)
    store = open_store()
    assert [found(store, f"k{number}") for number in range(20)] == [[number] for number in range(20)]
