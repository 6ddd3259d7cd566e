"""The facade: results of appends, batches, transactions, delays, deletion, light queues, numbers."""

import itertools
import time

import pytest
from pocketmq.protocol.message.batch import BatchElement, encode_batch
from pocketmq.protocol.message.properties import decode_properties, tags_code
from pocketmq.protocol.message.record import decode_record
from pocketmq.store import PutStatus, StoreClosedError, StoreError
from pocketmq.store.put_statistics import PutStatistics

from store_batches import append_batch, bodies, leave_as_killed, new_message, put, queue_offsets


def test_append_returns_the_position_of_the_message(open_store, clock):
    store = open_store()
    first = put(store)
    clock.advance(5)
    second = put(store)
    other = put(store, queue_id=1)
    assert (first.status, first.position, first.queue_offset) == (PutStatus.PUT_OK, 0, 0)
    assert (second.position, second.queue_offset) == (first.size, 1)
    assert second.store_timestamp == first.store_timestamp + 5 == clock.now_ms()
    assert (other.queue_offset, store.log_end) == (0, other.position + other.size)
    assert store.queue_unit("orders", 0, 1) == (second.position, second.size, 0)


def test_arrival_is_announced_after_the_message_is_visible(open_store):
    seen = []

    def on_arrivals(topic, queue_id, arrivals):
        for offset, code, text, *_ in arrivals:
            properties = decode_properties(text)
            seen.append((topic, queue_id, offset, code, properties, store.max_offset(topic, queue_id)))

    store = open_store(on_arrivals=on_arrivals)
    put(store, queue_id=2, TAGS="red", colour="blue")
    assert seen == [("orders", 2, 0, tags_code("red"), {"TAGS": "red", "colour": "blue"}, 1)]


def test_recovery_announces_no_arrivals(open_store):
    seen = []
    store = open_store()
    put(store)
    leave_as_killed(store)
    (store.config.root / "abort").write_text("")
    store = open_store(on_arrivals=lambda topic, queue_id, arrivals: seen.extend(arrivals))
    assert (store.recovery_report.dispatched_records, seen) == (1, [])
    put(store)
    assert len(seen) == 1


def test_batch_is_contiguous_in_one_file_with_consecutive_offsets(open_store):
    store = open_store()
    put(store, body=bytes(3700))
    placed = append_batch(store, [new_message(body=b"%d" % number, KEYS=f"k{number}") for number in range(5)])
    assert queue_offsets(placed) == [1, 2, 3, 4, 5]
    assert placed.positions[0] == 4096, "the whole batch opens the next file"
    for (left, size), (right, _) in itertools.pairwise(zip(placed.positions, placed.sizes, strict=True)):
        assert right == left + size
    assert store.get_message("orders", 0, 1, 32).count == 5
    assert len(store.query("orders", "k3", 9, 0, 1 << 62).views) == 1


def test_batch_with_one_bad_message_stores_none(open_store):
    store = open_store(max_message_size=100)
    head, *_ = store.pack_message(new_message())
    whole = encode_batch([BatchElement(0, b"one", b""), BatchElement(0, b"two", b"")])
    for wrong in (
        encode_batch([BatchElement(0, b"one", b""), BatchElement(0, bytes(101), b"")]),
        encode_batch([BatchElement(0, bytes(100), b"")] * 30),
        whole[:-1],
        whole + b"\0",
        b"",
    ):
        placed = store.append_all([(head, 0, wrong, None, 0, 0, None)])
        assert (placed.refusal, placed.runs) == (PutStatus.MESSAGE_ILLEGAL, [])
    assert (store.log_end, store.max_offset("orders", 0), store.statistics.failed) == (0, 0, 5)
    assert store.append_all([(head, 0, whole, None, 0, 0, None)]).refusal is None
    assert store.max_offset("orders", 0) == 2


def test_delivery_time_is_the_same_after_recovery(open_store):
    store = open_store()
    put(store, topic="SCHEDULE_TOPIC_XXXX", DELAY="3")
    entry = store.queue_unit("SCHEDULE_TOPIC_XXXX", 0, 0)
    leave_as_killed(store)
    (store.config.root / "consumequeue" / "SCHEDULE_TOPIC_XXXX" / "0" / f"{0:020d}").unlink()
    assert open_store().queue_unit("SCHEDULE_TOPIC_XXXX", 0, 0) == entry


def test_prepared_and_rolled_back_messages_are_not_in_the_queue(open_store):
    store = open_store()
    for sys_flag, queue_offset in ((0x0, 0), (0x4, 0), (0xC, 0), (0x8, 1), (0x0, 2)):
        message = new_message()
        message.sys_flag = sys_flag
        assert store.append(message).queue_offset == queue_offset
    assert store.max_offset("orders", 0) == 3


def test_deleted_topic_starts_again_at_zero(open_store, tmp_path):
    store = open_store()
    put(store, body=b"old")
    assert [queue.queue_id for queue in store.queues_of("orders")] == [0]
    store.delete_topic_queues("orders")
    store.delete_topic_queues("orders")
    assert not (tmp_path / "store" / "consumequeue" / "orders").exists()
    assert store.max_offset("orders", 0) == 0
    assert put(store, body=b"new").queue_offset == 0
    assert bodies(store) == [b"new"]


def test_deleting_the_oldest_file_moves_min_offsets_and_spares_the_last(open_store, tmp_path):
    store = open_store(max_index_num=10)
    put(store, topic="only old")
    for number in range(80):
        put(store, KEYS=f"k{number}")
    files = len(store.log.files)
    index_files = len(list((tmp_path / "store" / "index").iterdir()))
    while store.delete_oldest_log_file():
        files -= 1
        oldest = store.queue_unit("orders", 0, store.min_offset("orders", 0))[0]
        assert oldest == store.log_start == store.log.files[0].base
    assert files == len(store.log.files) == 1
    assert (store.min_offset("only old", 0), store.max_offset("only old", 0)) == (1, 1)
    assert len(list((tmp_path / "store" / "index").iterdir())) < index_files
    assert store.query("orders", "k0", 9, 0, 1 << 62).views == []
    assert store.store_time("orders", 0, 0) == -1


def test_four_x_keeps_the_min_offset_of_a_queue_whose_messages_are_deleted(open_store):
    store = open_store(emulate=4)
    put(store, topic="only old")
    for _ in range(80):
        put(store)
    store.delete_oldest_log_file()
    assert (store.min_offset("only old", 0), store.max_offset("only old", 0)) == (0, 1)
    assert store.get_message("only old", 0, 0, 32).status.name == "MESSAGE_WAS_REMOVING"


def test_slave_and_closed_stores_refuse_messages(open_store):
    store = open_store(broker_role="SLAVE")
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE
    assert append_batch(store, [new_message()]).refusal is PutStatus.SERVICE_NOT_AVAILABLE
    assert not store.admission.accepting
    store.close()
    store.close()
    assert put(store).status is PutStatus.SERVICE_NOT_AVAILABLE
    with pytest.raises(StoreClosedError):
        store.force_log(0)
    with pytest.raises(StoreClosedError):
        store.flush_pass()


@pytest.mark.parametrize(("topic", "queue_id"), [("a/b", 0), ("..", 0), ("", 0), ("a\0b", 0), ("orders", -1)])
def test_names_that_cannot_be_directories_are_illegal(open_store, topic, queue_id, tmp_path):
    store = open_store()
    assert put(store, topic=topic, queue_id=queue_id).status is PutStatus.MESSAGE_ILLEGAL
    assert not (tmp_path / "store" / "consumequeue").exists()


@pytest.mark.parametrize(
    "settings",
    [{"mapped_file_size_commit_log": 10}, {"max_hash_slot_num": 0}, {"store_path_commit_log": "/a,/b"}],
)
def test_impossible_settings_are_named_by_their_official_key(open_store, settings):
    with pytest.raises(StoreError, match=r"mappedFileSizeCommitLog|maxHashSlotNum|storePathCommitLog"):
        open_store(**settings)


def test_root_that_is_a_file_is_one_clear_error(open_store, tmp_path):
    (tmp_path / "store").write_text("")
    with pytest.raises(StoreError, match="store is not a directory"):
        open_store()


def test_log_may_be_in_another_folder(open_store, tmp_path):
    store = open_store(store_path_commit_log=str(tmp_path / "elsewhere"))
    put(store)
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == [f"{0:020d}"]
    assert not (tmp_path / "store" / "commitlog").exists()


def test_size_of_queue_files_is_rounded_up_to_whole_units(open_store, tmp_path):
    store = open_store(mapped_file_size_consume_queue=81)
    put(store)
    assert (tmp_path / "store" / "consumequeue" / "orders" / "0" / f"{0:020d}").stat().st_size == 100


LIGHT = {"enable_lmq": True, "enable_multi_dispatch": True}


def test_record_is_in_each_light_queue_it_names(open_store):
    store = open_store(**LIGHT)
    put(store, body=b"1", INNER_MULTI_DISPATCH="%LMQ%a,%LMQ%b,plain", WAIT="true")
    put(store, body=b"2", INNER_MULTI_DISPATCH="%LMQ%b")
    record = decode_record(store.read_record(store.queue_unit("orders", 0, 1)[0]))
    assert decode_properties(record.properties) == {
        "INNER_MULTI_DISPATCH": "%LMQ%b",
        "INNER_MULTI_QUEUE_OFFSET": "1",
    }
    first = decode_properties(decode_record(store.read_record(0)).properties)
    assert first == {"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b,plain", "INNER_MULTI_QUEUE_OFFSET": "0,0,"}
    for _ in range(2):
        assert bodies(store) == [b"1", b"2"]
        assert bodies(store, "%LMQ%a") == [b"1"]
        assert bodies(store, "%LMQ%b") == [b"1", b"2"]
        assert store.consume_queue("plain", 0) is None
        leave_as_killed(store)
        store = open_store(**LIGHT)
    put(store, body=b"3", INNER_MULTI_DISPATCH="%LMQ%a")
    assert bodies(store, "%LMQ%a") == [b"1", b"3"]


@pytest.mark.parametrize("topic", ["%RETRY%g", "%DLQ%g", "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer"])
def test_internal_topics_do_not_dispatch_to_light_queues(open_store, topic):
    store = open_store(**LIGHT)
    put(store, topic=topic, INNER_MULTI_DISPATCH="%LMQ%a")
    assert store.consume_queue("%LMQ%a", 0) is None


@pytest.mark.parametrize("name", ["%LMQ%a/b", "%LMQ%" + "x" * 251])
def test_light_queue_whose_name_cannot_be_a_directory_is_skipped(open_store, name):
    store = open_store(**LIGHT)
    put(store, body=b"1", INNER_MULTI_DISPATCH=f"{name},%LMQ%a")
    leave_as_killed(store)
    store = open_store(**LIGHT)
    assert put(store, body=b"2", INNER_MULTI_DISPATCH=f"%LMQ%a,{name}").queue_offset == 1
    assert bodies(store) == bodies(store, "%LMQ%a") == [b"1", b"2"]
    assert store.consume_queue(name, 0) is None


def test_number_of_light_queues_is_limited(open_store):
    store = open_store(max_lmq_consume_queue_num=2, **LIGHT)
    assert put(store, INNER_MULTI_DISPATCH="%LMQ%a,%LMQ%b").status is PutStatus.PUT_OK
    assert put(store, INNER_MULTI_DISPATCH="%LMQ%c").status is PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED
    assert put(store, INNER_MULTI_DISPATCH="%LMQ%a").status is PutStatus.PUT_OK


def test_statistics_count_messages_bytes_and_refusals(open_store):
    store = open_store()
    results = [put(store), put(store), put(store, topic="")]
    statistics = store.statistics
    assert (statistics.messages, statistics.failed) == (2, 1)
    assert statistics.bytes == results[0].size + results[1].size
    store.get_message("orders", 0, 0, 32)
    store.get_message("orders", 0, 2, 32)
    assert (store.reader.found_times, store.reader.missed_times, store.reader.transferred_messages) == (
        1,
        1,
        2,
    )


def test_put_times_fall_into_the_official_classes():
    statistics = PutStatistics()
    statistics.messages = 5
    for elapsed_ms in (1, 9, 150, 10_000):
        statistics.count_slow_append(elapsed_ms)
    counted = {name: count for name, count in statistics.distribution() if count}
    assert counted == {"<=0ms": 1, "0~10ms": 2, "100~200ms": 1, "10s~": 1}
    assert statistics.entire_time_max_ms == 10_000
    assert len(statistics.distribution()) == 13


def test_slow_appends_of_every_kind_are_counted(open_store, monkeypatch):
    """Batches, too: one of 4 MiB may take a second."""
    store = open_store(mapped_file_size_commit_log=1 << 20)
    put(store)
    before, times = sum(store.statistics.slow), itertools.count(0, 60_000_000)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(times))
    put(store)
    append_batch(store, [new_message(), new_message()])
    store.append_all([store.pack_message(new_message())] * 3)
    assert sum(store.statistics.slow) - before == 3
    assert store.statistics.entire_time_max_ms == 60
